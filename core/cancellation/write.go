package cancellation

import (
	"context"
	"fmt"
	"slices"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/store"
)

// write stores the decisions, in one round trip.
func (p *page) write(ctx context.Context, tx *store.Tx) error {
	pipe := tx.Pipeline()
	if noted := p.noted(); len(noted) > 0 {
		pipe.Exec(store.NoteCancels, p.order.Actor, p.order.Reason, noted)
	}
	p.writeEnded(pipe)
	p.writeAsked(pipe)
	if p.ledger != nil && len(p.left) > 0 {
		p.ledger.Write(pipe)
	}
	if pipe.Len() == 0 {
		return nil
	}
	if err := pipe.Send(ctx); err != nil {
		return fmt.Errorf("cancel %d executions and ask for %d: %w", len(p.ended), len(p.asked), err)
	}
	return nil
}

// noted are the executions whose cancel request is stored: all changed ones, and failed ones that
// might be repeated.
func (p *page) noted() []int64 {
	if p.order.noted {
		return nil
	}
	var ids []int64
	for _, row := range p.facts {
		if row.Repetition != 0 {
			continue
		}
		switch row.Status {
		case attune.StatusCompleted, attune.StatusCancelled:
		default:
			ids = append(ids, row.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

func (p *page) writeEnded(pipe *store.Pipeline) {
	n := len(p.ended)
	if n == 0 {
		return
	}
	ids, workers, attempts := make([]int64, n), make([]int64, n), make([]int32, n)
	statuses, results := make([]string, n), make([]string, n)
	for i, d := range p.ended {
		ids[i], workers[i], attempts[i] = d.ID, d.Worker, d.Attempt
		statuses[i], results[i] = string(d.Status), string(d.result)
	}
	pipe.Exec(store.EndCancelled, ids, statuses, workers, attempts, results)
	pipe.Exec(store.CancelFollowers, ids)
}

func (p *page) writeAsked(pipe *store.Pipeline) {
	var ids, workers []int64
	var statuses []string
	var attempts []int32
	for _, d := range p.asked {
		if d.rule.Step == StepAsk {
			ids, statuses = append(ids, d.ID), append(statuses, string(d.Status))
			workers, attempts = append(workers, d.Worker), append(attempts, d.Attempt)
		}
	}
	if len(ids) > 0 {
		pipe.Exec(store.AskToStop, ids, statuses, workers, attempts)
	}
}

// compose makes the messages: a completion for every end, a cancel request for every worker with
// such executions, and a request for the next execution of each changed queue.
func (p *page) compose(ctx context.Context, tx *store.Tx) error {
	for _, d := range p.ended {
		m, err := admission.CompletedMessage(admission.EndedExecution{
			ExecutionID: d.ID, ActionID: d.Action, ActionRef: d.ActionRef, Status: attune.StatusCancelled,
			Result: d.result,
		}, p.At, p.order.Source)
		if err != nil {
			return err
		}
		p.Messages = append(p.Messages, m)
	}
	for _, d := range slices.Concat(p.ended, p.asked) {
		if !d.rule.Tell || d.Gone {
			continue
		}
		m, err := p.stopMessage(d)
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
		m, err := admission.NudgeMessage(head, p.At, p.order.Source)
		if err != nil {
			return err
		}
		p.Messages = append(p.Messages, m)
	}
	return nil
}

// stopMessage tells the worker of an execution to stop it.
func (p *page) stopMessage(d decided) (outbox.Message, error) {
	envelope := message.New(message.TypeExecutionCancelRequested, message.ExecutionCancelRequested{
		ExecutionID: d.ID, WorkerID: d.Worker,
	}, p.At, p.order.Source)
	body, err := envelope.Encode()
	if err != nil {
		return outbox.Message{}, fmt.Errorf("encode the request to stop execution %d: %w", d.ID, err)
	}
	return outbox.Message{
		ID: envelope.MessageID, Exchange: message.ExchangeExecutions, RoutingKey: message.CancelKey(d.Worker),
		Type: message.TypeExecutionCancelRequested, Body: body,
	}, nil
}
