package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/migrations"
)

// replicaInterval is how often a replica reports itself, and replicaSilent the silence after which
// another replica reports it as vanished.
const (
	replicaInterval = 5 * time.Second
	replicaSilent   = 30 * time.Second
)

// replica keeps this engine's row in engine_replica, which is for operators; nothing in the engine
// depends on it. The reports pause while the database is away.
type replica struct {
	*supervise.Loop

	engine  *Engine
	version string
	host    string
	started time.Time

	away outage
	// unfit is nil while the program can run on the schema.
	unfit atomic.Pointer[migrations.UnfitError]
	// trouble is what was logged last about the database; only the loop uses it.
	trouble string
	// reportsOthersAt is from when on silent replicas count as vanished; only the loop uses it.
	reportsOthersAt time.Time
}

func newReplica(e *Engine, version string, metrics *supervise.Metrics) *replica {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	r := &replica{engine: e, version: version, host: host, started: time.Now()}
	r.Loop = supervise.NewLoop(supervise.LoopConfig{
		Name: "replica", Interval: replicaInterval, Timeout: replicaInterval, Jitter: 0.1, MaxBackoff: replicaInterval,
		Tick: r.tick, Logger: e.logger, Metrics: metrics,
	})
	e.registry.MustRegister(&health{engine: e})
	return r
}

// Stop stops the reports and deletes the row, so that a stopped replica does not count as vanished.
func (r *replica) Stop() {
	r.Loop.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), replicaInterval) //nolint:forbidigo // the engine's ended
	defer cancel()
	if _, err := r.engine.query.ForgetReplica(ctx, r.engine.id); err != nil {
		r.engine.logger.DebugContext(ctx, "Row of the replica could not be deleted", "error", err)
	}
}

// tick reports this replica, and looks for vanished ones.
func (r *replica) tick(ctx context.Context) error {
	err := r.engine.query.Named(ctx, errors.Join(r.compareSchema(ctx), r.report(ctx)))
	r.logTrouble(ctx, err)
	if store.ClassOf(err) != store.ClassInstallation { // such a database has answered
		r.away.note(err)
	}
	if err != nil {
		r.reportsOthersAt = time.Time{}
		return fmt.Errorf("report replica %s: %w", r.engine.id, err)
	}
	// Only a replica that saw the database all the time may report others: after an outage every
	// report is old.
	if r.reportsOthersAt.IsZero() {
		r.reportsOthersAt = time.Now().Add(replicaSilent)
	}
	if time.Now().Before(r.reportsOthersAt) {
		return nil
	}
	return r.miss(ctx)
}

// logTrouble logs once what is wrong with the database, and once that it works again.
func (r *replica) logTrouble(ctx context.Context, err error) {
	trouble := ""
	if store.IsAway(err) {
		trouble = store.Trouble(err).String()
	}
	if trouble != r.trouble && trouble != "" {
		r.engine.logger.WarnContext(ctx, "Database cannot be used", "problem", trouble)
	} else if trouble != r.trouble {
		r.engine.logger.InfoContext(ctx, "Database can be used again")
	}
	r.trouble = trouble
}

// compareSchema records whether this program can still run on the schema.
func (r *replica) compareSchema(ctx context.Context) error {
	_, err := migrations.Fits(ctx, r.engine.query.Pool(), r.engine.cfg.Database.Schema)
	unfit, ok := errors.AsType[*migrations.UnfitError](err)
	if err != nil && !ok {
		return err
	}
	if before := r.unfit.Swap(unfit); unfit != nil && before == nil {
		r.engine.logger.ErrorContext(ctx, "Schema does not fit this program any more", "reason", unfit.Error())
	}
	return nil
}

// miss logs replicas that fell silent without stopping. The database returns each to one replica
// only.
func (r *replica) miss(ctx context.Context) error {
	vanished, err := r.engine.query.MarkVanishedReplicas(ctx, replicaSilent.Seconds())
	if err != nil {
		return fmt.Errorf("find vanished replicas: %w", err)
	}
	for _, one := range vanished {
		r.engine.logger.WarnContext(ctx, "Replica has vanished",
			"vanished", one.ID.String(), "host", one.Host, "pid", one.Pid, "last_seen", one.LastSeen.UTC())
	}
	if _, err := r.engine.query.ForgetVanishedReplicas(ctx,
		r.engine.cfg.Retention.SilentReplicas.Seconds()); err != nil {
		return fmt.Errorf("forget vanished replicas: %w", err)
	}
	return nil
}

func (r *replica) report(ctx context.Context) error {
	loops, err := json.Marshal(r.ticks())
	if err != nil {
		return fmt.Errorf("encode the ticks of the loops: %w", err)
	}
	details, err := json.Marshal(r.details())
	if err != nil {
		return fmt.Errorf("encode the details: %w", err)
	}
	return r.engine.query.ReportReplica(ctx, store.ReportReplicaParams{
		ID: r.engine.id, Host: r.host, Version: r.version, Pid: int32(os.Getpid()),
		State: r.engine.broker.State().String(), Loops: loops, InFlight: int32(r.engine.hot.inFlight()),
		Details: details, UpSeconds: time.Since(r.started).Seconds(),
	})
}

// ticks are the last successful ticks of the loops by this machine's clock. The reporting loop counts as
// succeeding now.
func (r *replica) ticks() map[string]time.Time {
	ticks := map[string]time.Time{}
	for name, l := range r.engine.loops {
		if last := l.LastSuccess(); !last.IsZero() {
			ticks[name] = last.UTC()
		}
	}
	ticks[r.Name()] = time.Now().UTC()
	if last := r.engine.hot.lastDone(); !last.IsZero() {
		ticks["rounds"] = last.UTC()
	}
	return ticks
}

func (r *replica) details() monitor.ReplicaDetails {
	e := r.engine
	details := monitor.ReplicaDetails{
		Clock: time.Now().UTC(), HTTP: e.http.Addr(), Consumers: map[string]bool{}, Outbox: e.relay.Pending(),
		Installation: e.gate.Faults(),
		DatabaseAway: r.away.last(), Loops: map[string]monitor.ReplicaLoop{},
	}
	if e.routes != nil {
		details.Routes = e.routes.Report()
	}
	for _, link := range e.broker.Links() {
		details.Connections = append(details.Connections, monitor.ReplicaLink{
			Purpose: link.Purpose, Up: link.Up, Blocked: link.Blocked, Reason: link.Trouble.String(),
			Since: link.Since.UTC(),
		})
	}
	for _, one := range e.broker.Recreated() {
		details.Recreated = append(details.Recreated,
			monitor.ReplicaQueue{Queue: one.Queue, Cause: one.Cause, At: one.At.UTC()})
	}
	for queue, consumer := range e.consumers {
		details.Consumers[queue] = consumer.Subscribed()
	}
	if since, _ := e.hot.underWay(); !since.IsZero() && !e.gate.Holding() {
		since = since.UTC()
		details.RoundSince = &since
	}
	for name, l := range e.loops {
		one := monitor.ReplicaLoop{Timeout: l.SuccessTimeout()}
		if err := l.LastError(); err != nil {
			one.Error = err.Error()
		}
		details.Loops[name] = one
	}
	return details
}
