package submit

import (
	"context"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

// The pauses between two reads of an execution grow, because most executions end soon and others take hours.
const (
	waitFirst = 20 * time.Millisecond
	waitLast  = time.Second
)

// NotFoundError reports that the execution does not exist.
type NotFoundError struct{ ID int64 }

// Error names the execution.
func (e *NotFoundError) Error() string { return fmt.Sprintf("there is no execution %d", e.ID) }

// Wait returns the execution after its end. It reads the row, so it needs neither the broker nor an engine. It
// also waits for an unreachable database; only the end of ctx ends the wait.
func (s *Submitter) Wait(ctx context.Context, id int64) (store.Execution, error) {
	pause := waitFirst
	for {
		rows, err := s.store.GetExecutions(ctx, []int64{id})
		switch {
		case err != nil && ctx.Err() == nil && store.ClassOf(err) != store.ClassUnreachable:
			return store.Execution{}, fmt.Errorf("read execution %d: %w", id, err)
		case err == nil && len(rows) == 0:
			return store.Execution{}, &NotFoundError{ID: id}
		case err == nil && rows[0].Status.Terminal():
			return rows[0], nil
		}
		if !supervise.Sleep(ctx, pause) {
			return store.Execution{}, fmt.Errorf("wait for execution %d: %w", id, context.Cause(ctx))
		}
		pause = min(pause*3/2, waitLast)
	}
}

// AwaitPublished waits until the broker has confirmed the messages of the outbox row. It needs a
// relay that publishes them.
func (s *Submitter) AwaitPublished(ctx context.Context, outboxID int64) error {
	pause := waitFirst
	for {
		waiting, err := s.store.OutboxRowExists(ctx, outboxID)
		if err == nil && !waiting {
			return nil
		}
		if !supervise.Sleep(ctx, pause) {
			return fmt.Errorf("wait for the broker: %w", context.Cause(ctx))
		}
		pause = min(pause*3/2, waitLast)
	}
}
