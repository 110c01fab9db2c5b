package rehearsal

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"
)

// publish sends a message as the services of the installation do.
func (r *rehearsal) publish(ctx context.Context, exchange, key, kind string, payload any) error {
	id := uuid.NewString()
	body, err := json.Marshal(map[string]any{
		"message_id": id, "correlation_id": id, "message_type": kind, "version": "1.0", "timestamp": time.Now().UTC(),
		"headers": map[string]any{"retry_count": 0, "source_service": "api"}, "payload": payload,
	})
	if err != nil {
		return fmt.Errorf("encode %s: %w", kind, err)
	}
	return r.publishRaw(ctx, exchange, key, body)
}

func (r *rehearsal) publishRaw(ctx context.Context, exchange, key string, body []byte) error {
	confirm, err := r.channel.PublishWithDeferredConfirmWithContext(ctx, exchange, key, false, false, amqp.Publishing{
		DeliveryMode: amqp.Persistent, ContentType: "application/json", MessageId: uuid.NewString(), Body: body,
	})
	if err == nil {
		_, err = confirm.WaitContext(ctx)
	}
	if err != nil {
		return fmt.Errorf("publish %s: %w", key, err)
	}
	return nil
}

// request publishes that an execution is to be scheduled.
func (r *rehearsal) request(ctx context.Context, id int64) error {
	payload := map[string]any{"execution_id": id, "enforcement_id": nil}
	var action, parent *int64
	var ref string
	var config json.RawMessage
	err := r.pool.QueryRow(ctx, "SELECT action, action_ref, parent, config FROM execution WHERE id = $1",
		id).Scan(&action, &ref, &parent, &config)
	if err != nil {
		return fmt.Errorf("read execution %d: %w", id, err)
	}
	payload["action_id"], payload["action_ref"], payload["parent_id"], payload["config"] = action, ref, parent, config
	return r.publish(ctx, "attune.executions", "execution.requested", "ExecutionRequested", payload)
}

// dispatch puts the message of a hand-over into the worker's queue, which it
// declares as its worker has.
func (r *rehearsal) dispatch(ctx context.Context, id int64, name string) error {
	var worker int64
	var ref string
	err := r.pool.QueryRow(ctx, "SELECT w.id, e.action_ref FROM worker w, execution e WHERE w.name = $1 AND e.id = $2",
		name, id).Scan(&worker, &ref)
	if err != nil {
		return fmt.Errorf("read worker %s: %w", name, err)
	}
	queue, key := fmt.Sprintf("worker.%d.executions", worker), fmt.Sprintf("execution.dispatch.worker.%d", worker)
	_, err = r.channel.QueueDeclare(queue, true, false, false, false, amqp.Table{
		"x-dead-letter-exchange": "attune.dlx", "x-message-ttl": int32(5 * time.Minute / time.Millisecond),
	})
	if err == nil {
		err = r.channel.QueueBind(queue, key, "attune.executions", false, nil)
	}
	if err != nil {
		return fmt.Errorf("declare %s: %w", queue, err)
	}
	return r.publish(ctx, "attune.executions", key, "ExecutionRequested", map[string]any{
		"execution_id": id, "worker_id": worker, "action_ref": ref, "config": nil,
		"scheduled_attempt_updated_at": time.Now().UTC(),
	})
}

// completed publishes that an execution has ended.
func (r *rehearsal) completed(ctx context.Context, id int64) error {
	return r.publish(ctx, "attune.executions", "execution.completed", "ExecutionCompleted", map[string]any{
		"execution_id": id, "action_id": 0, "action_ref": "demo.work", "status": "Completed", "result": nil,
		"completed_at": time.Now().UTC(),
	})
}
