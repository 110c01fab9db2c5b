package engine

import (
	"context"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/supervise"
)

// topology declares the exchanges, queues and dead-letter routes of the
// engine whenever a connection has come up, because a broker may have lost
// them with the connection.
type topology struct {
	supervise.Base

	engine  *Engine
	changes <-chan broker.StateChange
}

// Start implements supervise.Service. It declares before it returns when the
// broker is there, so that what starts after it finds its queues; a broker
// that is away is awaited in the background.
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

func (t *topology) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.changes:
		}
		t.engine.report.Wake() // who looks at the replica should not have to wait for the next report
		if t.engine.broker.State() == broker.StateConnected {
			t.declare(ctx)
		}
	}
}

const declareTimeout = 15 * time.Second

// declare makes what is missing. A failure is logged with what differs; the
// consumers retry by themselves, and the next connection declares again.
func (t *topology) declare(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, declareTimeout)
	defer cancel()
	if err := t.engine.broker.DeclareExecutor(ctx); err != nil && ctx.Err() == nil {
		t.engine.logger.ErrorContext(ctx, "Topology could not be declared", "error", err)
		return
	}
	workers, err := t.engine.query.ReadFleet(ctx)
	if err != nil {
		t.engine.logger.WarnContext(ctx, "Dead-letter routes of workers could not be read", "error", err)
		return
	}
	for _, w := range workers {
		if err := t.engine.broker.BindWorkerDeadLetters(ctx, w.ID); err != nil && ctx.Err() == nil {
			t.engine.logger.WarnContext(ctx, "Dead-letter routes of a worker could not be bound", "worker_id", w.ID, "error", err)
			return
		}
	}
}
