package worker

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	amqp "github.com/rabbitmq/amqp091-go"
)

// envelope is the frame of every message.
type envelope struct {
	MessageID     string          `json:"message_id"`
	CorrelationID string          `json:"correlation_id"`
	MessageType   string          `json:"message_type"`
	Version       string          `json:"version"`
	Timestamp     time.Time       `json:"timestamp"`
	Headers       map[string]any  `json:"headers"`
	Payload       json.RawMessage `json:"payload"`
}

// takeDispatches starts a job for each message, as soon as a permit is free,
// and acknowledges it when the job starts.
func (w *Worker) takeDispatches(ctx context.Context, dispatches <-chan amqp.Delivery) {
	for delivery := range dispatches {
		if !w.opened(ctx) {
			return
		}
		var message envelope
		var payload struct {
			ExecutionID int64  `json:"execution_id"`
			ActionRef   string `json:"action_ref"`
		}
		err := json.Unmarshal(delivery.Body, &message)
		if err == nil {
			err = json.Unmarshal(message.Payload, &payload)
		}
		if err != nil || payload.ExecutionID == 0 {
			w.logger.Warn("Dispatch cannot be read", "worker", w.Name, "error", err)
			_ = delivery.Nack(false, false) // a lost connection brings it back
			continue
		}
		select {
		case <-ctx.Done():
			return
		case w.permit <- struct{}{}:
		}
		job := Job{
			ExecutionID: payload.ExecutionID, ActionRef: payload.ActionRef,
			MessageID: message.MessageID, Redelivered: delivery.Redelivered,
		}
		w.jobs.Go(func() {
			defer func() { <-w.permit }()
			_ = delivery.Ack(false) // a lost connection brings it back, and it runs twice
			if err := w.work(ctx, job); err != nil && ctx.Err() == nil {
				w.logger.Warn("Job failed in the worker itself", "worker", w.Name, "execution", job.ExecutionID,
					"error", err)
			}
		})
	}
}

// opened waits for the gate, if there is one, and reports whether the worker still
// works.
func (w *Worker) opened(ctx context.Context) bool {
	if w.cfg.Gate == nil {
		return true
	}
	select {
	case <-ctx.Done():
		return false
	case <-w.cfg.Gate:
		return true
	}
}

func (w *Worker) takeCancels(cancels <-chan amqp.Delivery) {
	for delivery := range cancels {
		var message envelope
		var payload struct {
			ExecutionID int64 `json:"execution_id"`
		}
		if json.Unmarshal(delivery.Body, &message) != nil || json.Unmarshal(message.Payload, &payload) != nil {
			continue
		}
		w.mu.Lock()
		cancel := w.cancels[payload.ExecutionID]
		w.mu.Unlock()
		if cancel != nil {
			cancel()
		}
	}
}

// work is the life of one job: the reports come before the writes at the start
// and after them at the end.
func (w *Worker) work(ctx context.Context, job Job) error {
	var status string
	var actionID *int64
	err := w.pool.QueryRow(ctx, `select status::text, action, config from execution where id = $1`, job.ExecutionID).
		Scan(&status, &actionID, &job.Config)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	if status == "cancelled" {
		return nil
	}
	end := w.begin(ctx, job)
	answer := Answer{Status: "cancelled"}
	var cancelled bool
	if status != "canceling" {
		answer, cancelled, err = w.run(ctx, job)
	}
	if err != nil || answer.Never || ctx.Err() != nil {
		end(false)
		return err
	}
	defer end(true)
	if cancelled || answer.Status == "cancelled" {
		answer.Status, answer.Result = "cancelled", map[string]any{"succeeded": false, "cancelled": true}
	}
	for range max(answer.Times, 1) {
		if err := w.report(ctx, job, actionID, answer); err != nil {
			return err
		}
	}
	return nil
}

// begin writes the start into the record; the returned function writes the end.
func (w *Worker) begin(_ context.Context, job Job) func(answered bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := len(w.record)
	w.record = append(w.record, Run{Job: job, Start: time.Now()})
	w.running++
	w.mostAtOne = max(w.mostAtOne, w.running)
	return func(answered bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.running--
		if answered {
			w.record[at].End = time.Now()
		}
	}
}

// run reports and writes running, and asks the test what comes of the job.
func (w *Worker) run(ctx context.Context, job Job) (answer Answer, cancelled bool, err error) {
	jobCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.mu.Lock()
	w.cancels[job.ExecutionID] = cancel
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		delete(w.cancels, job.ExecutionID)
		w.mu.Unlock()
	}()
	if !w.cfg.SkipRunning {
		if err := w.started(ctx, job); err != nil {
			return Answer{}, false, err
		}
	}
	answer = w.cfg.Behave(jobCtx, job)
	return answer, jobCtx.Err() != nil && ctx.Err() == nil, nil
}

// started tells that the execution runs, then writes it.
func (w *Worker) started(ctx context.Context, job Job) error {
	if err := w.statusChanged(ctx, job, "scheduled", "running"); err != nil {
		return err
	}
	_, err := w.pool.Exec(ctx, `update execution set status = 'running', started_at = $2 where id = $1`,
		job.ExecutionID, time.Now())
	return err
}

// report writes the end by id, whatever the row says by now, and tells it.
func (w *Worker) report(ctx context.Context, job Job, actionID *int64, answer Answer) error {
	if answer.Status == "" {
		answer.Status = "completed"
	}
	if answer.Result == nil {
		answer.Result = map[string]any{"succeeded": answer.Status == "completed", "exit_code": 0, "duration_ms": 1}
	}
	result, err := json.Marshal(answer.Result)
	if err != nil {
		return err
	}
	_, err = w.pool.Exec(ctx,
		`update execution set status = $2::text::execution_status_enum, result = $3 where id = $1`,
		job.ExecutionID, answer.Status, string(result))
	if err != nil {
		return err
	}
	if err := w.statusChanged(ctx, job, "running", answer.Status); err != nil {
		return err
	}
	id := int64(0) // what is sent when the action is unknown
	if actionID != nil {
		id = *actionID
	}
	return w.send(ctx, "ExecutionCompleted", "execution.completed", map[string]any{
		"execution_id": job.ExecutionID, "action_id": id, "action_ref": job.ActionRef,
		"status": "Completed", // also after a failure: the row has the truth
		"result": json.RawMessage(result), "completed_at": time.Now().UTC(),
	})
}

func (w *Worker) statusChanged(ctx context.Context, job Job, from, to string) error {
	return w.send(ctx, "ExecutionStatusChanged", "execution.status.changed", map[string]any{
		"execution_id": job.ExecutionID, "action_ref": job.ActionRef,
		"previous_status": from, "new_status": to, "changed_at": time.Now().UTC(),
	})
}

func (w *Worker) send(ctx context.Context, messageType, key string, payload any) error {
	raw, err := json.Marshal(payload)
	if err != nil {
		return err
	}
	id, now := uuid.NewString(), time.Now().UTC()
	body, err := json.Marshal(envelope{
		MessageID: id, CorrelationID: id, MessageType: messageType, Version: "1.0", Timestamp: now,
		Headers: map[string]any{"retry_count": 0, "source_service": "worker"}, Payload: raw,
	})
	if err != nil {
		return err
	}
	return w.publish.PublishWithContext(ctx, "attune.executions", key, false, false, amqp.Publishing{
		DeliveryMode: amqp.Persistent, ContentType: "application/json",
		MessageId: id, CorrelationId: id, Timestamp: now, Body: body,
	})
}
