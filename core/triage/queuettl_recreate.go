package triage

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
)

// recreation makes one queue anew with another time to live, and loses nothing:
//
//	hold     a holding queue takes over its bindings
//	divert   the queue loses them: what is handed over now waits in the holding queue
//	empty    its messages move to the holding queue
//	delete   the queue goes, if nobody consumes it and nothing is in it
//	declare  it is declared with the new time to live and its other arguments
//	return   it has its bindings back, and then the holding queue has none
//	refill   the messages move back
//	clear    the holding queue goes, if nothing is in it
//	end      the exchanges of the move go
//
// Whatever interrupts it, every message is in one of the two queues, at worst in
// both, with its id: the attempt that a hand-over names makes the second one
// harmless. The same again finds what there is and goes on. Where the queue may
// not be deleted any more (somebody consumes it) it is given back what it had.
//
// Messages move through fanout exchanges of their own, because by its routing key
// a hand-over that expires finds its way among the dead letters.
type recreation struct {
	q       *QueueTTLs
	worker  int64
	queue   string
	holding string
	out     string // the exchange to the holding queue
	back    string // the exchange to the queue
	target  int64

	bindings  []broker.Binding
	arguments map[string]any
}

// Recreated is what became of one queue.
type Recreated struct {
	Worker  int64  `json:"worker"`
	Queue   string `json:"queue"`
	Outcome string `json:"outcome"` // done, refused or failed
	Reason  string `json:"reason,omitempty"`
	Moved   int    `json:"moved"` // messages that went into the queue again
}

func (q *QueueTTLs) recreation(one QueueTTL, target int64) *recreation {
	queue := message.WorkerExecutionsQueue(one.Worker)
	return &recreation{
		q: q, worker: one.Worker, queue: queue, holding: broker.HoldingQueue(one.Worker), out: queue + ".out", back: queue + ".back",
		target: target, arguments: maps.Clone(one.arguments),
		bindings: []broker.Binding{{Source: message.ExchangeExecutions, Queue: queue, RoutingKey: message.DispatchKey(one.Worker)}},
	}
}

// Refusals of a recreation.
var errQueueInUse = errors.New("the queue is in use")

// guard says why the queue must not be taken away now; empty means that it may.
func (q *QueueTTLs) guard(ctx context.Context, one QueueTTL) (string, error) {
	state, err := q.broker.QueueState(ctx, one.Queue)
	switch {
	case err != nil:
		return "", err
	case state.Consumers > 0:
		return fmt.Sprintf("%d consume it: stop the worker first (`attune-executor workers drain %d` lets it finish)", state.Consumers, one.Worker), nil
	case one.Present:
		return "the worker still sends heartbeats: stop it, and wait until it is inactive", nil
	case one.Type != "" && one.Type != "classic":
		return fmt.Sprintf("it is a %s queue, which cannot be deleted under the condition that it is empty", one.Type), nil
	case one.unacked > 0:
		return "somebody holds messages of it unacknowledged: wait some seconds and try again", nil
	}
	return "", nil
}

// recreate runs the steps. A refusal is no error.
func (q *QueueTTLs) recreate(ctx context.Context, one QueueTTL, target int64) (Recreated, error) {
	result := Recreated{Worker: one.Worker, Queue: one.Queue, Outcome: outcomeDone}
	r := q.recreation(one, target)
	reason, err := q.guard(ctx, one)
	if err != nil {
		return result, err
	}
	if reason == "" && one.Exists && (one.Argument == nil || *one.Argument != target) {
		if reason, err = r.takeAway(ctx); err != nil {
			return result, err
		}
	} else if !one.Interrupted {
		if reason != "" { // else it has become what it should be by itself
			result.Outcome, result.Reason = outcomeRefused, reason
		}
		return result, nil
	} else if err := r.recall(ctx); err != nil {
		return result, err
	}
	differs, moved, err := r.giveBack(ctx)
	result.Moved = moved
	if err != nil {
		return result, err
	}
	if reason == "" {
		reason = differs
	}
	if reason != "" {
		result.Outcome, result.Reason = outcomeRefused, reason+"; nothing was lost"
	}
	return result, nil
}

// outcomeRefused: a guard said no.
const outcomeRefused = "refused"

// takeAway diverts and empties the queue and deletes it, or says why not.
func (r *recreation) takeAway(ctx context.Context) (refused string, err error) {
	if err := r.wire(ctx); err != nil {
		return "", err
	}
	if err := r.step(ctx, "hold", r.hold); err != nil {
		return "", err
	}
	if err := r.step(ctx, "divert", func(ctx context.Context) error { return r.q.broker.UnbindQueues(ctx, r.bindings) }); err != nil {
		return "", err
	}
	for range 5 { // what was on its way when it was diverted may come after its emptying
		if err := r.step(ctx, "empty", func(ctx context.Context) error {
			_, err := r.q.broker.MoveMessages(ctx, r.queue, r.out)
			return err
		}); err != nil {
			return "", err
		}
		err = r.step(ctx, "delete", func(ctx context.Context) (err error) {
			_, refused, err = r.q.broker.DeleteQueueIfIdle(ctx, r.queue)
			return err
		})
		if err != nil || refused == "" {
			return refused, err
		}
	}
	return refused, nil
}

// giveBack declares the queue where it is missing, and gives it its bindings and
// messages. A queue that somebody has declared meanwhile stays as it is, and is
// told of.
func (r *recreation) giveBack(ctx context.Context) (differs string, moved int, err error) {
	err = r.step(ctx, "declare", func(ctx context.Context) error {
		err := r.q.broker.DeclareQueue(ctx, r.queue, r.declaration())
		if refused, ok := errors.AsType[*broker.TopologyError](err); ok {
			differs = "somebody has declared it meanwhile: " + refused.Reason
			return nil
		}
		return err
	})
	if err != nil {
		return "", 0, err
	}
	if err := r.step(ctx, "return", r.giveBindingsBack); err != nil {
		return differs, 0, err
	}
	held, err := r.q.broker.QueueState(ctx, r.holding)
	if err != nil || !held.Exists { // an earlier run has ended but for its exchanges
		return differs, 0, errors.Join(err, r.end(ctx))
	}
	for range 5 { // what was on its way when the holding queue lost its bindings
		err := r.step(ctx, "refill", func(ctx context.Context) error {
			n, err := r.q.broker.MoveMessages(ctx, r.holding, r.back)
			moved += n
			return err
		})
		if err != nil {
			return differs, moved, err
		}
		left := ""
		if err := r.step(ctx, "clear", func(ctx context.Context) (err error) {
			_, left, err = r.q.broker.DeleteQueueIfIdle(ctx, r.holding)
			return err
		}); err != nil {
			return differs, moved, err
		}
		if left == "" {
			return differs, moved, r.end(ctx)
		}
	}
	return differs, moved, fmt.Errorf("%w: %s", errQueueInUse, r.holding)
}
