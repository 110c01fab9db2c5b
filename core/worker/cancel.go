package worker

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
)

// canceller ends the contexts of executions that somebody wants cancelled. The
// message is the fast way, the poll of the rows the sure one.
type canceller struct {
	store  *store.Store
	worker int64
	roster *roster
	logger *slog.Logger
}

// run takes cancel requests. A request for an execution that is not in hand
// leaves no trace: if it comes before the dispatch, the start finds the row
// cancelled or canceling.
func (c *canceller) run(ctx context.Context, batches <-chan *broker.Batch) {
	for {
		select {
		case <-ctx.Done():
			return
		case batch, ok := <-batches:
			if !ok {
				return
			}
			c.take(ctx, batch)
		}
	}
}

func (c *canceller) take(ctx context.Context, batch *broker.Batch) {
	for i := range batch.Deliveries {
		request, err := message.Decode[message.ExecutionCancelRequested](batch.Deliveries[i].Body)
		if err != nil {
			c.logger.WarnContext(ctx, "Cancel request cannot be read and is dead-lettered", "error", err)
			batch.Deliveries[i].GiveUp(ctx, err, 1)
			continue
		}
		found := c.roster.interrupt(request.Payload.ExecutionID, ErrCancelled)
		c.logger.DebugContext(ctx, "Cancel requested", "execution_id", request.Payload.ExecutionID, "in_hand", found)
	}
	if err := batch.Ack(); err != nil {
		c.logger.DebugContext(ctx, "Cancel requests could not be acknowledged", "error", err)
	}
}

// poll compares what runs with its rows: a cancel whose message was lost ends
// it, and so does a row that is no longer this worker's to run.
func (c *canceller) poll(ctx context.Context) error {
	active := c.roster.active()
	if len(active) == 0 {
		return nil
	}
	ids := make([]int64, 0, len(active))
	for id := range active {
		ids = append(ids, id)
	}
	rows, err := c.store.ReadRunStates(ctx, ids)
	if err != nil {
		return fmt.Errorf("read the rows of %d running executions: %w", len(ids), err)
	}
	for _, row := range rows {
		switch {
		case row.Status == attune.StatusCanceling, row.Status == attune.StatusCancelled:
			c.roster.interrupt(row.ID, ErrCancelled)
		case row.Status == attune.StatusRunning && row.Attempt == active[row.ID] && row.Worker != nil && *row.Worker == c.worker:
		default:
			if c.roster.interrupt(row.ID, ErrTaken) {
				c.logger.DebugContext(ctx, "Execution is not this worker's any more",
					"execution_id", row.ID, "status", string(row.Status))
			}
		}
	}
	return nil
}
