package worker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/telemetry"
)

// canceller ends the contexts of cancelled executions. Only the row decides: a message makes the
// canceller read the row at once, and the poll reads it anyway.
type canceller struct {
	member *membership
	roster *roster
}

// A message may arrive before its row is committed, so the row is read repeatedly for a while.
const (
	confirmEvery = 200 * time.Millisecond
	confirmFor   = 5 * time.Second
)

// run handles cancel requests. A request for an execution that is not in hand is forgotten: if it
// arrives before the dispatch, the start finds the row cancelled or canceling.
func (c *canceller) run(ctx context.Context, batches <-chan *broker.Batch) {
	again := time.NewTimer(time.Hour)
	defer again.Stop()
	asked := map[int64]time.Time{} // the rows to read, and until when
	for {
		select {
		case <-ctx.Done():
			return
		case batch, ok := <-batches:
			if !ok {
				return
			}
			c.record(ctx, batch, asked)
		case <-again.C:
		}
		c.confirm(ctx, asked)
		if len(asked) > 0 {
			again.Reset(confirmEvery)
		}
	}
}

// record adds the executions of a batch that are in hand. The others may run in the process that has taken the name.
func (c *canceller) record(ctx context.Context, batch *broker.Batch, asked map[int64]time.Time) {
	unknown := false
	for i := range batch.Deliveries {
		request, err := message.Decode[message.ExecutionCancelRequested](batch.Deliveries[i].Body)
		switch {
		case err != nil:
		case request.MessageType != message.TypeExecutionCancelRequested:
			err = fmt.Errorf("a %s is no cancel request", request.MessageType)
		case request.Payload.WorkerID != c.member.id:
			err = fmt.Errorf("the cancel request is for worker %d, not %d", request.Payload.WorkerID, c.member.id)
		}
		if err != nil {
			c.member.logger.WarnContext(telemetry.Often(ctx), "Cancel request cannot be read and is dead-lettered",
				"message_id", batch.Deliveries[i].MessageID, "error", err)
			batch.Deliveries[i].GiveUp(ctx, err, 1)
			continue
		}
		id := request.Payload.ExecutionID
		inHand := c.roster.inHand(id)
		c.member.logger.DebugContext(ctx, "Cancel requested", "execution_id", id, "in_hand", inHand)
		if inHand {
			asked[id] = time.Now().Add(confirmFor)
		}
		unknown = unknown || !inHand
	}
	if unknown && !c.member.owns(ctx) {
		giveBack(ctx, batch, c.member.logger)
		return
	}
	if err := batch.Ack(); err != nil {
		c.member.logger.DebugContext(ctx, "Cancel requests could not be acknowledged", "error", err)
	}
}

// confirm reads the rows of requests. It interrupts executions that are cancelled or no longer
// belong to this worker. A request that its row never confirms changes nothing.
func (c *canceller) confirm(ctx context.Context, asked map[int64]time.Time) {
	if len(asked) == 0 {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	rows, err := c.member.store.ReadRunStates(bounded, slices.Collect(maps.Keys(asked)))
	if err != nil {
		c.member.logger.DebugContext(ctx, "Rows of cancel requests could not be read", "error", err)
	}
	for _, row := range rows {
		switch {
		case !c.roster.inHand(row.ID):
			delete(asked, row.ID)
		case row.Status == lifecycle.StatusCanceling, row.Status == lifecycle.StatusCancelled:
			c.roster.interrupt(row.ID, ErrCancelled)
			delete(asked, row.ID)
		case c.roster.interruptExcept(row.ID, c.inForce(row), ErrTaken):
			delete(asked, row.ID)
		}
	}
	for id, until := range asked {
		if time.Now().After(until) {
			c.member.logger.WarnContext(telemetry.Often(ctx),
				"Cancel request ignored, the row of the execution is not cancelled", "execution_id", id)
			delete(asked, id)
		}
	}
}

// inForce is the attempt with which a row may run at this worker; noAttempt if it may not.
func (c *canceller) inForce(row store.ReadRunStatesRow) int32 {
	if row.Worker == nil || *row.Worker != c.member.id || row.Status.Terminal() {
		return noAttempt
	}
	return row.Attempt
}

// poll compares running executions with their rows. It ends an execution whose cancel message was
// lost, or whose row no longer belongs to this worker.
func (c *canceller) poll(ctx context.Context) error {
	active := c.roster.active()
	if len(active) == 0 {
		return nil
	}
	ids := make([]int64, 0, len(active))
	for id := range active {
		ids = append(ids, id)
	}
	rows, err := c.member.store.ReadRunStates(ctx, ids)
	if err != nil {
		return fmt.Errorf("read the rows of %d running executions: %w", len(ids), err)
	}
	for _, row := range rows {
		switch {
		case row.Status == lifecycle.StatusCanceling, row.Status == lifecycle.StatusCancelled:
			c.roster.interrupt(row.ID, ErrCancelled)
		case row.Status == lifecycle.StatusRunning && row.Attempt == active[row.ID] && row.Worker != nil &&
			*row.Worker == c.member.id:
		default:
			if c.roster.interruptExcept(row.ID, c.inForce(row), ErrTaken) {
				c.member.logger.DebugContext(ctx, "Execution stopped, another worker or program has it",
					"execution_id", row.ID, "status", string(row.Status))
			}
		}
	}
	return nil
}
