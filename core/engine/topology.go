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

	engine *Engine
}

// Start implements supervise.Service. It returns at once: a broker that is
// away is awaited by the broker's own supervisor.
func (t *topology) Start(ctx context.Context) error { return t.Launch(ctx, nil, t.run) }

func (t *topology) run(ctx context.Context) {
	changes := t.engine.broker.Watch()
	for {
		if t.engine.broker.State() == broker.StateConnected {
			t.declare(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-changes:
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
