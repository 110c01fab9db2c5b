package triage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/attune-go/attune/core/broker"
)

// argumentsKey is the argument of a holding queue that keeps the arguments of
// the queue it stands in for. The broker keeps what it does not know.
const argumentsKey = "attune-arguments"

// wire reads what the queue is bound to, from itself and from a holding queue that
// is there already.
func (r *recreation) wire(ctx context.Context) error {
	bound, err := r.q.management.QueueBindings(ctx, r.queue)
	if err != nil && !errors.Is(err, broker.ErrNotFound) {
		return err
	}
	r.add(bound)
	return r.recall(ctx)
}

// recall reads from the holding queue what the queue was bound to and declared
// with.
func (r *recreation) recall(ctx context.Context) error {
	info, err := r.q.management.Queue(ctx, r.holding)
	if errors.Is(err, broker.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if text, ok := info.Arguments[argumentsKey].(string); ok && len(r.arguments) == 0 {
		if err := json.Unmarshal([]byte(text), &r.arguments); err != nil {
			return fmt.Errorf("read the arguments of %s that %s keeps: %w", r.queue, r.holding, err)
		}
	}
	bound, err := r.q.management.QueueBindings(ctx, r.holding)
	if err != nil {
		return err
	}
	r.add(bound)
	return nil
}

// add remembers bindings, as those of the queue.
func (r *recreation) add(bindings []broker.Binding) {
	for _, one := range bindings {
		one.Queue = r.queue
		known := one.Source == r.out || one.Source == r.back
		for _, other := range r.bindings {
			known = known || one == other
		}
		if !known {
			r.bindings = append(r.bindings, one)
		}
	}
}

// held are the bindings as those of the holding queue.
func (r *recreation) held() []broker.Binding {
	held := make([]broker.Binding, len(r.bindings))
	for i, one := range r.bindings {
		one.Queue = r.holding
		held[i] = one
	}
	return held
}

// hold makes the holding queue, in which nothing expires, and binds it.
func (r *recreation) hold(ctx context.Context) error {
	state, err := r.q.broker.QueueState(ctx, r.holding)
	if err != nil {
		return err
	}
	if !state.Exists {
		text, err := json.Marshal(r.arguments)
		if err != nil {
			return fmt.Errorf("keep the arguments of %s: %w", r.queue, err)
		}
		if err := r.q.broker.DeclareQueue(ctx, r.holding, broker.Table{argumentsKey: string(text)}); err != nil {
			return err
		}
	}
	if err := r.q.broker.DeclareRelay(ctx, r.out, r.holding); err != nil {
		return err
	}
	return r.q.broker.BindQueues(ctx, r.held())
}

// declaration are the arguments of the queue with the new time to live.
func (r *recreation) declaration() broker.Table {
	arguments := broker.WorkerTopology(r.worker, 0).Queues[0].Arguments
	if len(r.arguments) > 0 {
		arguments = broker.Table{}
	}
	for key, value := range r.arguments {
		if n, ok := value.(float64); ok && n == math.Trunc(n) {
			value = int64(n) // JSON has one kind of number
		}
		arguments[key] = value
	}
	arguments["x-message-ttl"] = r.target
	return arguments
}

// giveBindingsBack binds the queue before the holding queue is unbound: for that
// moment what is handed over goes into both.
func (r *recreation) giveBindingsBack(ctx context.Context) error {
	if err := r.q.broker.DeclareRelay(ctx, r.back, r.queue); err != nil {
		return err
	}
	if err := r.q.broker.BindQueues(ctx, r.bindings); err != nil {
		return err
	}
	return r.q.broker.UnbindQueues(ctx, r.held())
}

// end takes the exchanges away.
func (r *recreation) end(ctx context.Context) error {
	return r.step(ctx, "end", func(ctx context.Context) error {
		return errors.Join(r.q.broker.DeleteExchange(ctx, r.out), r.q.broker.DeleteExchange(ctx, r.back))
	})
}

// step runs one step with a name for errors. What it does may be done again.
func (r *recreation) step(ctx context.Context, name string, do func(context.Context) error) error {
	if err := do(ctx); err != nil {
		return fmt.Errorf("recreate %s, step %s: %w", r.queue, name, err)
	}
	if err := r.q.reached(name); err != nil {
		return fmt.Errorf("recreate %s, after step %s: %w", r.queue, name, err)
	}
	return nil
}
