package worker

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/attune-go/attune/lab/installation/wire"
)

// consumeDispatches starts a job for each message, as soon as a permit is free, and acknowledges the
// message when the job starts.
func (w *Worker) consumeDispatches(ctx context.Context, dispatches <-chan amqp.Delivery) {
	for delivery := range dispatches {
		if w.cfg.Gate != nil {
			select {
			case <-ctx.Done():
				return
			case <-w.cfg.Gate:
			}
		}
		var message wire.Envelope
		var payload struct {
			ExecutionID int64  `json:"execution_id"`
			ActionRef   string `json:"action_ref"`
		}
		err := json.Unmarshal(delivery.Body, &message)
		if err == nil {
			err = json.Unmarshal(message.Payload, &payload)
		}
		if err != nil || payload.ExecutionID == 0 {
			w.logger.Warn("Dispatch not readable", "worker", w.Name, "error", err)
			_ = delivery.Nack(false, false) // after a lost connection the broker redelivers it
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
			_ = delivery.Ack(false) // after a lost connection the broker redelivers it, and it runs twice
			if err := w.work(ctx, job); err != nil && ctx.Err() == nil {
				w.logger.Warn("Worker failed to process a job", "worker", w.Name, "execution", job.ExecutionID,
					"error", err)
			}
		})
	}
}

func (w *Worker) consumeCancels(cancels <-chan amqp.Delivery) {
	for delivery := range cancels {
		var message wire.Envelope
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

// work processes one job. At the start its report comes before the write, at the end after it.
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
	end := w.begin(job)
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

// begin records the start of a job; the returned function records the end.
func (w *Worker) begin(job Job) func(answered bool) {
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

// run reports and writes running, and lets the test decide the outcome.
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
		if err := w.statusChanged(ctx, job, "scheduled", "running"); err != nil {
			return Answer{}, false, err
		}
		_, err := w.pool.Exec(ctx, `update execution set status = 'running', started_at = $2 where id = $1`,
			job.ExecutionID, time.Now())
		if err != nil {
			return Answer{}, false, err
		}
	}
	answer = w.cfg.Behave(jobCtx, job)
	return answer, jobCtx.Err() != nil && ctx.Err() == nil, nil
}

// report writes the end by id without checking the row, and reports it.
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
	id := int64(0) // the id of an unknown action
	if actionID != nil {
		id = *actionID
	}
	return w.wire.Send(ctx, wire.Executions, "execution.completed", "ExecutionCompleted", map[string]any{
		"execution_id": job.ExecutionID, "action_id": id, "action_ref": job.ActionRef,
		"status": "Completed", // also after a failure: the row has the real status
		"result": json.RawMessage(result), "completed_at": time.Now().UTC(),
	})
}

func (w *Worker) statusChanged(ctx context.Context, job Job, from, to string) error {
	return w.wire.Send(ctx, wire.Executions, "execution.status.changed", "ExecutionStatusChanged", map[string]any{
		"execution_id": job.ExecutionID, "action_ref": job.ActionRef,
		"previous_status": from, "new_status": to, "changed_at": time.Now().UTC(),
	})
}
