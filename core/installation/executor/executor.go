// Package executor is the executor of an existing installation as its published
// documents describe it, for tests and rehearsals: what it reads and writes, the
// messages it waits for, and what it leaves undone. It shares no code with the
// engine.
//
// It admits by policy, hands executions to live workers in turn, releases slots,
// and goes on with workflows that others have started, as far as their transitions
// and inputs hold no expressions of their own. It matches no events, starts no
// workflows, repeats no tasks and opens no inquiries. It does not look at the
// runtimes and labels of workers.
package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	exchange       = "attune.executions"
	requestsQueue  = "attune.execution.requests.queue"
	completedQueue = "attune.execution.completed.queue"

	prefetch   = 10
	busyPause  = 50 * time.Millisecond // before a message about a fresh claim is put back
	claimStale = 30 * time.Second
)

// errClaimed sends a message back to its queue: another claim is still fresh.
var errClaimed = errors.New("the execution is being claimed")

// Executor is one running executor.
type Executor struct {
	pool    *pgxpool.Pool
	conn    *amqp.Connection
	publish *amqp.Channel
	stop    context.CancelFunc
	loops   sync.WaitGroup
	turn    int // of the workers; only the scheduler uses it

	mu   sync.Mutex
	errs []error // guarded by mu
}

// Start declares what the published executor declares and consumes until Stop.
// databaseURL names a database whose schema is "attune".
func Start(ctx context.Context, databaseURL, amqpURL string) (*Executor, error) {
	cfg, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, fmt.Errorf("read the database URL: %w", err)
	}
	cfg.ConnConfig.RuntimeParams["search_path"] = "attune, public"
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec // the schema may change between two statements
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	e := &Executor{stop: stop}
	if e.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		stop()
		return nil, fmt.Errorf("open the database: %w", err)
	}
	if e.conn, err = amqp.Dial(amqpURL); err != nil {
		e.Stop()
		return nil, fmt.Errorf("connect to the broker: %w", err)
	}
	if err := e.consume(ctx); err != nil {
		e.Stop()
		return nil, err
	}
	return e, nil
}

// Stop ends consuming after the message under way. Unacknowledged messages go
// back to their queues.
func (e *Executor) Stop() {
	e.stop()
	e.loops.Wait()
	if e.conn != nil {
		_ = e.conn.CloseDeadline(time.Now().Add(5 * time.Second)) // it may have been lost
	}
	e.pool.Close()
}

// Err is every error that has cost a message, as it does in the published
// executor; nil if none has.
func (e *Executor) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return errors.Join(e.errs...)
}

func (e *Executor) consume(ctx context.Context) error {
	var err error
	if e.publish, err = e.conn.Channel(); err != nil {
		return fmt.Errorf("open a channel: %w", err)
	}
	if err := declare(e.publish); err != nil {
		return fmt.Errorf("declare exchanges and queues: %w", err)
	}
	if err := e.publish.Confirm(false); err != nil {
		return fmt.Errorf("ask for confirms: %w", err)
	}
	for _, one := range []struct {
		queue, tag string
		handle     func(context.Context, int64) error
	}{
		{requestsQueue, "executor.scheduler", e.schedule},
		{completedQueue, "executor.completion", e.complete},
	} {
		channel, err := e.conn.Channel()
		if err != nil {
			return fmt.Errorf("open a channel: %w", err)
		}
		if err := channel.Qos(prefetch, 0, false); err != nil {
			return fmt.Errorf("set the prefetch: %w", err)
		}
		deliveries, err := channel.Consume(one.queue, one.tag, false, false, false, false, nil)
		if err != nil {
			return fmt.Errorf("consume %s: %w", one.queue, err)
		}
		e.loops.Go(func() { e.run(ctx, deliveries, one.handle) })
	}
	return nil
}

// run handles one message at a time. An error costs the message, unless the
// execution is only being claimed.
func (e *Executor) run(ctx context.Context, deliveries <-chan amqp.Delivery,
	handle func(context.Context, int64) error) {
	for {
		select {
		case <-ctx.Done():
			return
		case delivery, open := <-deliveries:
			if !open {
				return
			}
			var message struct {
				Payload struct {
					ExecutionID int64 `json:"execution_id"`
				} `json:"payload"`
			}
			err := json.Unmarshal(delivery.Body, &message)
			if err == nil {
				err = handle(ctx, message.Payload.ExecutionID)
			}
			switch {
			case ctx.Err() != nil:
				return // not acknowledged: the broker delivers it again
			case err == nil:
				_ = delivery.Ack(false) // a lost connection brings it back
			case errors.Is(err, errClaimed):
				select {
				case <-ctx.Done():
				case <-time.After(busyPause):
				}
				_ = delivery.Nack(false, true)
			default:
				e.mu.Lock()
				e.errs = append(e.errs, err)
				e.mu.Unlock()
				_ = delivery.Nack(false, false)
			}
		}
	}
}

// declare makes the published topology.
func declare(channel *amqp.Channel) error {
	for name, kind := range map[string]string{
		"attune.events": "topic", exchange: "topic", "attune.notifications": "fanout", "attune.dlx": "direct",
	} {
		if err := channel.ExchangeDeclare(name, kind, true, false, false, false, nil); err != nil {
			return err
		}
	}
	dead := amqp.Table{"x-dead-letter-exchange": "attune.dlx"}
	for _, queue := range []struct {
		name, exchange, key string
		args                amqp.Table
	}{
		{"attune.dlx.queue", "attune.dlx", "#", nil},
		{"attune.executor.events.queue", "attune.events", "event.created", dead},
		{"attune.enforcements.queue", exchange, "enforcement.#", dead},
		{requestsQueue, exchange, "execution.requested", dead},
		{"attune.execution.status.queue", exchange, "execution.status.changed", dead},
		{completedQueue, exchange, "execution.completed", dead},
		{"attune.inquiry.responses.queue", exchange, "inquiry.responded", dead},
	} {
		if _, err := channel.QueueDeclare(queue.name, true, false, false, false, queue.args); err != nil {
			return err
		}
		if err := channel.QueueBind(queue.name, queue.key, queue.exchange, false, nil); err != nil {
			return err
		}
	}
	return nil
}

// send publishes one message and waits for its confirm.
func (e *Executor) send(ctx context.Context, kind, key string, payload any) error {
	id, now := uuid.NewString(), time.Now().UTC()
	body, err := json.Marshal(map[string]any{
		"message_id": id, "correlation_id": id, "message_type": kind, "version": "1.0", "timestamp": now,
		"headers": map[string]any{"retry_count": 0, "source_service": "executor"}, "payload": payload,
	})
	if err != nil {
		return fmt.Errorf("encode %s: %w", kind, err)
	}
	confirm, err := e.publish.PublishWithDeferredConfirmWithContext(ctx, exchange, key, false, false, amqp.Publishing{
		DeliveryMode: amqp.Persistent, ContentType: "application/json",
		MessageId: id, CorrelationId: id, Timestamp: now, Body: body,
	})
	if err != nil {
		return fmt.Errorf("publish %s: %w", key, err)
	}
	if _, err := confirm.WaitContext(ctx); err != nil {
		return fmt.Errorf("wait for the confirm of %s: %w", key, err)
	}
	return nil
}

// Request publishes that an execution is to be scheduled.
func (e *Executor) Request(ctx context.Context, id int64) error {
	var payload struct {
		ExecutionID   int64           `json:"execution_id"`
		ActionID      *int64          `json:"action_id"`
		ActionRef     string          `json:"action_ref"`
		ParentID      *int64          `json:"parent_id"`
		EnforcementID *int64          `json:"enforcement_id"`
		Config        json.RawMessage `json:"config"`
	}
	err := e.pool.QueryRow(ctx,
		"SELECT id, action, action_ref, parent, enforcement, config FROM execution WHERE id = $1", id).
		Scan(&payload.ExecutionID, &payload.ActionID, &payload.ActionRef, &payload.ParentID, &payload.EnforcementID,
			&payload.Config)
	if err != nil {
		return fmt.Errorf("read promoted execution %d: %w", id, err)
	}
	return e.send(ctx, "ExecutionRequested", "execution.requested", payload)
}
