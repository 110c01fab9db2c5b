package recovery

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/store"
)

// Undelivered handles messages to workers that no queue accepted. It notes a dispatch, so that a
// sweep finds another worker, and suspects its worker. It drops a cancel request: a worker without
// a queue runs nothing, and a loop requests the cancel again.
type Undelivered struct {
	logger *slog.Logger
	wake   func() // wakes the sweep
}

// NewUndelivered makes the handler. It calls wake after each commit that noted a dispatch.
func NewUndelivered(logger *slog.Logger, wake func()) *Undelivered {
	return &Undelivered{logger: logger, wake: wake}
}

// reasonNoQueue is the reason for suspecting a worker.
const reasonNoQueue = "its queue does not exist: a dispatch was returned"

// Accept implements outbox.Config.Undeliverable.
func (u *Undelivered) Accept(ctx context.Context, tx *store.Tx, returned []outbox.Message) (map[string]bool, error) {
	taken := make(map[string]bool, len(returned))
	var note store.NoteUndeliveredParams
	for _, m := range returned {
		worker, known := message.WorkerOfKey(m.RoutingKey)
		if !known || m.Exchange != message.ExchangeExecutions {
			continue
		}
		if strings.HasPrefix(m.RoutingKey, message.CancelKey(worker)) {
			taken[m.ID] = true
			continue
		}
		sent, err := dispatches(m)
		if err != nil {
			continue // another program's message: the relay tries it again
		}
		taken[m.ID] = true
		for _, one := range sent {
			note.Executions = append(note.Executions, one.ExecutionID)
			note.Attempts = append(note.Attempts, one.Attempt)
			note.Workers = append(note.Workers, worker)
		}
	}
	if len(note.Executions) == 0 {
		return taken, nil
	}
	note.Reason = reasonNoQueue
	if err := tx.NoteUndelivered(ctx, note); err != nil {
		return nil, fmt.Errorf("note %d undelivered dispatches: %w", len(note.Executions), err)
	}
	tx.AfterCommit(func() {
		u.logger.WarnContext(ctx, "Dispatches returned by the broker are reassigned",
			"executions", note.Executions, "workers", note.Workers)
		u.wake()
	})
	return taken, nil
}

func dispatches(m outbox.Message) ([]message.Dispatch, error) {
	if !message.IsBatch(m.Type) {
		sent, err := message.Decode[message.Dispatch](m.Body)
		return []message.Dispatch{sent.Payload}, err
	}
	singles, err := message.Split(m.Body)
	list := make([]message.Dispatch, 0, len(singles))
	for _, one := range singles {
		sent, err := message.DecodePayload[message.Dispatch](one.Payload)
		if err != nil {
			return nil, err
		}
		list = append(list, sent)
	}
	return list, err
}
