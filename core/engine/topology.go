package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/supervise"
)

// topology declares the exchanges, queues and dead-letter routes of the engine after every connect,
// because a broker may have lost them, and at intervals, because an operator may have deleted some.
// It also declares the routes of workers that register later.
type topology struct {
	supervise.Base

	engine  *Engine
	changes <-chan broker.StateChange
	bound   map[int64]bool // workers whose dead letters have routes; only the service uses it
}

// Start implements supervise.Service. If the broker is up, it declares before it returns, so that
// later services find their queues; otherwise it declares in the background.
func (t *topology) Start(ctx context.Context) error {
	t.changes = t.engine.broker.Watch()
	return t.Launch(ctx, func(ctx context.Context) error { t.first(ctx); return nil }, t.run)
}

// firstWait is how long the start waits for a connection.
const firstWait = 3 * time.Second

func (t *topology) first(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, firstWait)
	defer cancel()
	for t.engine.broker.State() != broker.StateConnected {
		select {
		case <-ctx.Done():
			return
		case <-t.changes:
		}
	}
	t.declare(ctx)
}

// routesInterval is how long a new worker may wait for the routes of its dead letters. Workers of
// this project declare them themselves, others do not.
const routesInterval = 10 * time.Second

// redeclareInterval is how long deleted objects may be missing.
const redeclareInterval = 5 * time.Minute

func (t *topology) run(ctx context.Context) {
	newcomers, everything := time.NewTicker(routesInterval), time.NewTicker(redeclareInterval)
	defer newcomers.Stop()
	defer everything.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.changes:
			t.engine.report.Wake() // the state must not wait for the next report
			t.whenConnected(ctx, t.declare)
		case <-everything.C:
			t.whenConnected(ctx, t.declare)
		case <-newcomers.C:
			t.whenConnected(ctx, t.routes)
		}
	}
}

func (t *topology) whenConnected(ctx context.Context, do func(context.Context)) {
	if t.engine.broker.State() == broker.StateConnected {
		do(ctx)
	}
}

const declareTimeout = 15 * time.Second

// declare declares missing objects. It logs a failure with the difference; the consumers retry by
// themselves, and the next connect declares again.
func (t *topology) declare(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, declareTimeout)
	defer cancel()
	t.bound = map[int64]bool{}
	if err := t.engine.declare(bounded); err != nil && ctx.Err() == nil {
		t.engine.logger.ErrorContext(ctx, "Topology could not be declared", "error", err)
		return
	}
	t.routes(ctx)
}

// declare declares what the engine needs. A missing queue of requests has lost its messages, so the
// sweep looks for their executions at once.
func (e *Engine) declare(ctx context.Context) error {
	requests, err := e.broker.QueueState(ctx, message.QueueExecutionRequests)
	if err != nil {
		return err
	}
	if err := e.broker.DeclareExecutor(ctx); err != nil {
		return fmt.Errorf("declare the queues of the engine: %w", err)
	}
	if err := e.broker.DeclareBatches(ctx); err != nil {
		return fmt.Errorf("declare the queue of completions in batches: %w", err)
	}
	if !requests.Exists {
		e.sweep.MessagesLost()
	}
	return nil
}

// routes binds the dead letters of workers that this replica has not bound on this connection.
func (t *topology) routes(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, declareTimeout)
	defer cancel()
	workers, err := t.engine.query.ReadFleet(bounded)
	if t.engine.gate.Tick("dead-letter routes", err) > 0 {
		return
	}
	if err != nil {
		t.engine.logger.WarnContext(ctx, "Dead-letter routes of workers could not be read", "error", err)
		return
	}
	if t.bound == nil {
		t.bound = map[int64]bool{}
	}
	for _, w := range workers {
		if t.bound[w.ID] {
			continue
		}
		if err := t.engine.broker.BindWorkerDeadLetters(bounded, w.ID); err != nil {
			if ctx.Err() == nil {
				t.engine.logger.WarnContext(ctx, "Dead-letter routes of a worker could not be bound", "worker_id", w.ID,
					"error", err)
			}
			return
		}
		t.bound[w.ID] = true
	}
}
