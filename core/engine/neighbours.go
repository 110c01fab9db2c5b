package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

const (
	// neighbourWait is how long a start waits for an executor that is stopping.
	neighbourWait  = 5 * time.Second
	neighbourPause = 500 * time.Millisecond
)

// OtherExecutorError refuses the start of a replica beside another executor.
type OtherExecutorError struct{ Consumers []string }

// Error names the evidence for the other executor and the next steps.
func (e *OtherExecutorError) Error() string {
	return "another executor consumes from the engine's queues: " + strings.Join(e.Consumers, "; ") +
		": stop it, see with attune-executor doctor that it is gone, and start again;" +
		" with --beside a replica starts although both would admit the same executions"
}

// neighbours is the start step between the first connection and the first message: it refuses to
// start beside another executor, and takes over the queues of a stopped one.
type neighbours struct {
	supervise.Base

	engine *Engine
}

// Start implements supervise.Service. Without a broker it cannot see another executor; the alert
// other_executor reports it later.
func (n *neighbours) Start(ctx context.Context) error {
	return n.Launch(ctx, n.first, func(ctx context.Context) { <-ctx.Done() })
}

func (n *neighbours) first(ctx context.Context) error {
	e := n.engine
	if !e.beside && e.broker.State() == broker.StateConnected {
		if err := n.refuse(ctx); err != nil {
			return err
		}
	}
	return e.takeOver(ctx)
}

func (n *neighbours) refuse(ctx context.Context) error {
	e := n.engine
	management := e.newManagement()
	if management != nil {
		defer management.Close()
	}
	for begin := time.Now(); ; {
		others, err := e.otherExecutors(ctx, management, e.id) // this replica has a row and no consumer yet
		switch {
		case err != nil:
			e.logger.WarnContext(ctx, "Consumers of the engine's queues could not be read", "error", err)
			return nil
		case len(others) == 0:
			return nil
		case time.Since(begin) > neighbourWait:
			return &OtherExecutorError{Consumers: others}
		}
		if !supervise.Sleep(ctx, neighbourPause) {
			return context.Cause(ctx)
		}
	}
}

// otherExecutors describes the consumers that are not replicas of this engine. Without management
// rights it compares their number with the replicas; the replica without has no consumer yet.
func (e *Engine) otherExecutors(ctx context.Context, management *broker.Management,
	without uuid.UUID,
) ([]string, error) {
	replicas, err := e.query.LiveReplicas(ctx, replicaSilent.Seconds())
	if err != nil {
		return nil, fmt.Errorf("list the replicas: %w", err)
	}
	replicas = slices.DeleteFunc(replicas, func(r store.LiveReplicasRow) bool { return r.ID == without })
	var listed []broker.QueueConsumer
	if management != nil {
		listed, _ = management.Consumers(ctx) // without it the number decides
	}
	rows, err := e.query.KnownReplicas(ctx)
	if err != nil {
		return nil, fmt.Errorf("list all replicas: %w", err)
	}
	known := make([]string, len(rows))
	for i, id := range rows {
		known[i] = id.String()
	}
	return alerting.OtherExecutors(ctx, e.broker, listed, len(replicas), known, e.cfg.MessageQueue.RabbitMQ.Quorum())
}

// newManagement is a client of the management API, nil if none is configured.
func (e *Engine) newManagement() *broker.Management {
	// nil for an unusable URL, which other checks report
	management, _, _ := broker.OpenManagement(broker.Configured(e.cfg, ""), depthTimeout)
	return management
}
