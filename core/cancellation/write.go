package cancellation

import (
	"context"
	"fmt"
	"slices"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/store"
)

// write stores the decisions, in one round trip.
func (p *page) write(ctx context.Context, tx *store.Tx) error {
	pipe := tx.Pipeline()
	if recorded := p.recorded(); len(recorded) > 0 {
		pipe.Exec(store.NoteCancels, p.request.Actor, p.request.Reason, recorded)
	}
	var ended, asked columns
	var results []string
	for _, d := range p.ended {
		ended.add(d)
		results = append(results, string(d.result))
	}
	for _, d := range p.asked {
		if d.rule.Step == StepAsk {
			asked.add(d)
		}
	}
	if len(ended.ids) > 0 {
		pipe.Exec(store.EndCancelled, ended.ids, ended.statuses, ended.workers, ended.attempts, results)
		pipe.Exec(store.CancelFollowers, ended.ids)
	}
	if len(asked.ids) > 0 {
		pipe.Exec(store.AskToStop, asked.ids, asked.statuses, asked.workers, asked.attempts)
	}
	if p.ledger != nil && len(p.left) > 0 {
		p.ledger.Write(pipe)
	}
	var later *store.Result[int64]
	if len(p.request.later) > 0 {
		later = store.Many[int64](pipe, store.NoteLaterCancels, p.request.Actor, p.request.Reason, p.request.later)
	}
	if pipe.Len() == 0 {
		return nil
	}
	if err := pipe.Send(ctx); err != nil {
		return fmt.Errorf("cancel %d executions and send requests for %d: %w", len(p.ended), len(p.asked), err)
	}
	if later != nil {
		p.stored = append(p.stored, later.Rows()...)
	}
	return nil
}

// columns are the values that the rows must still have.
type columns struct {
	ids, workers []int64
	statuses     []string
	attempts     []int32
}

func (c *columns) add(d decided) {
	c.ids, c.workers = append(c.ids, d.ID), append(c.workers, d.Worker)
	c.statuses, c.attempts = append(c.statuses, string(d.Status)), append(c.attempts, d.Attempt)
}

// recorded returns the executions whose cancel request is stored: all changed ones, and failed ones, which
// must not be retried. It has none that are left alone: Poll would stop them.
func (p *page) recorded() []int64 {
	if p.request.recorded {
		return nil
	}
	var ids []int64
	for _, row := range p.facts {
		if row.Retry != 0 || p.leaves(row) {
			continue
		}
		switch row.Status {
		case lifecycle.StatusCompleted, lifecycle.StatusCancelled:
		default:
			ids = append(ids, row.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// compose adds the messages: a completion for every end, a cancel request for every worker with such
// executions, and a request for the next execution of each changed queue.
func (p *page) compose(ctx context.Context, tx *store.Tx) error {
	for _, d := range p.ended {
		m, err := admission.CompletedMessage(admission.EndedExecution{
			ExecutionID: d.ID, ActionID: d.Action, ActionRef: d.ActionRef, Status: lifecycle.StatusCancelled,
			Result: d.result,
		}, p.At, p.request.Source)
		if err != nil {
			return err
		}
		p.Messages = append(p.Messages, m)
	}
	for _, d := range slices.Concat(p.ended, p.asked) {
		if !d.rule.Tell || d.Gone {
			continue
		}
		route := message.Route{Exchange: message.ExchangeExecutions, Key: message.CancelKey(d.Worker)}
		m, err := outbox.EncodeTo(route, message.TypeExecutionCancelRequested,
			message.ExecutionCancelRequested{ExecutionID: d.ID, WorkerID: d.Worker}, p.At, p.request.Source)
		if err != nil {
			return err
		}
		p.Messages = append(p.Messages, m)
	}
	slices.Sort(p.left)
	heads, err := admission.Heads(ctx, tx.Queries, slices.Compact(p.left))
	if err != nil {
		return err
	}
	for _, head := range heads {
		m, err := admission.NudgeMessage(head, p.At, p.request.Source)
		if err != nil {
			return err
		}
		p.Messages = append(p.Messages, m)
	}
	return nil
}
