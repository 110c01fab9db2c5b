package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

// replicaInterval is how often a replica reports itself, and replicaForgotten
// how long one that fell silent stays listed.
const (
	replicaInterval  = 5 * time.Second
	replicaForgotten = 15 * time.Minute
)

// replica keeps this engine's row in engine_replica, which is for people to
// look at; nothing in the engine depends on it.
type replica struct {
	*supervise.Loop

	engine  *Engine
	version string
	host    string
}

func newReplica(e *Engine, version string, metrics *supervise.Metrics) *replica {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	r := &replica{engine: e, version: version, host: host}
	r.Loop = supervise.NewLoop(supervise.LoopConfig{
		Name: "replica", Interval: replicaInterval, Timeout: replicaInterval, Jitter: 0.1,
		Tick: r.tick, Logger: e.logger, Metrics: metrics,
	})
	return r
}

// Stop ends the reports and takes the row away, so that a replica that was
// stopped is not mistaken for one that vanished.
func (r *replica) Stop() {
	r.Loop.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), replicaInterval) //nolint:forbidigo // the engine's context has ended
	defer cancel()
	if _, err := r.engine.query.ForgetReplica(ctx, r.engine.id); err != nil {
		r.engine.logger.DebugContext(ctx, "Replica could not be taken off the list", "error", err)
	}
}

func (r *replica) tick(ctx context.Context) error {
	loops := map[string]string{}
	for name, loop := range r.engine.loops {
		if last := loop.LastTick(); !last.IsZero() {
			loops[name] = last.UTC().Format(time.RFC3339Nano)
		}
	}
	if last := r.engine.hot.lastDone.Load(); last > 0 {
		loops["rounds"] = time.Unix(0, last).UTC().Format(time.RFC3339Nano)
	}
	raw, err := json.Marshal(loops)
	if err != nil {
		return fmt.Errorf("encode the ticks of the loops: %w", err)
	}
	err = r.engine.query.ReportReplica(ctx, store.ReportReplicaParams{
		ID: r.engine.id, Host: r.host, Version: r.version, Pid: int32(os.Getpid()),
		State: r.engine.broker.State().String(), Loops: raw, InFlight: int32(r.engine.hot.inFlight.Load()),
		Details: []byte(`{}`),
	})
	if err != nil {
		return fmt.Errorf("report replica %s: %w", r.engine.id, err)
	}
	if _, err := r.engine.query.ForgetSilentReplicas(ctx, replicaForgotten.Seconds()); err != nil {
		return fmt.Errorf("forget silent replicas: %w", err)
	}
	return nil
}
