package deadletter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

// Wire is the broker of the probes; *broker.Broker implements it.
type Wire interface {
	State() broker.State
	Watch() <-chan broker.StateChange
	ProbeDeadLetters(ctx context.Context, keys []string) []broker.RouteProbe
	ProbeDeath(ctx context.Context) error
	DeclareExecutor(ctx context.Context) error
	BindWorkerDeadLetters(ctx context.Context, worker int64) error
}

// RoutesConfig configures the probes of the routes.
type RoutesConfig struct {
	// Interval is the pause between two counts of the waiting dead letters. Default 30 s.
	Interval time.Duration
	// ProbeEvery is how long a probe of the routes stays valid. Default 1 min.
	ProbeEvery time.Duration
	// DeathEvery is how long a probe of expiry and rejection stays valid. Default 1 h.
	DeathEvery time.Duration
}

func (c RoutesConfig) withDefaults() RoutesConfig {
	c.Interval = cmp.Or(max(c.Interval, 0), 30*time.Second)
	c.ProbeEvery = cmp.Or(max(c.ProbeEvery, 0), time.Minute)
	c.DeathEvery = cmp.Or(max(c.DeathEvery, 0), time.Hour)
	return c
}

// Routes verifies that dead letters arrive. It sends a probe through every route in use, declares
// lost routes again, and logs routes that stay lost, once until they change. Rarely it lets
// messages die, to verify that the broker passes them on. It also counts the waiting dead letters.
type Routes struct {
	*supervise.Loop

	cfg     RoutesConfig
	store   *store.Store
	wire    Wire
	logger  *slog.Logger
	metrics *Metrics

	report   atomic.Pointer[broker.RouteReport]
	watcher  supervise.Base
	changed  atomic.Bool // the next tick probes: the connection came up, or the last probe found lost routes
	probed   time.Time   // only the loop uses the following fields
	died     time.Time
	deathErr error
	logged   string // the lost routes of the last log message
}

// NewRoutes makes the loop.
func NewRoutes(
	cfg RoutesConfig, st *store.Store, wire Wire, logger *slog.Logger, metrics *Metrics, loops *supervise.Metrics,
) *Routes {
	r := &Routes{cfg: cfg.withDefaults(), store: st, wire: wire, logger: logger,
		metrics: cmp.Or(metrics, NewMetrics(nil))}
	r.Loop = supervise.NewLoop(supervise.LoopConfig{
		Name: "dead letter routes", Interval: r.cfg.Interval, Timeout: 45 * time.Second, Jitter: 0.2,
		Tick: r.tick, Logger: logger, Metrics: loops,
	})
	return r
}

// Start starts the probes.
func (r *Routes) Start(ctx context.Context) error {
	changes := r.wire.Watch()
	err := r.watcher.Launch(ctx, nil, func(ctx context.Context) {
		for {
			select {
			case <-ctx.Done():
				return
			case change := <-changes:
				if change.To == broker.StateConnected {
					r.changed.Store(true)
					r.Wake()
				}
			}
		}
	})
	if err != nil {
		return fmt.Errorf("watch the broker: %w", err)
	}
	return r.Loop.Start(ctx)
}

// Stop stops the probes.
func (r *Routes) Stop() {
	r.Loop.Stop()
	r.watcher.Stop()
}

// Report is the last probe of the routes; nil before the first.
func (r *Routes) Report() *broker.RouteReport { return r.report.Load() }

// maxWaiting bounds the counted dead letters, and maxRouteWorkers the workers whose routes are
// probed.
const (
	maxWaiting      = 10_000
	maxRouteWorkers = 2_000
)

func (r *Routes) tick(ctx context.Context) error {
	waiting, err := r.store.CountWaitingDeadLetters(ctx, maxWaiting)
	if err == nil {
		r.metrics.waiting.Set(float64(waiting))
	}
	now := time.Now()
	reconnected := r.changed.Swap(false)
	if !reconnected && now.Sub(r.probed) < r.cfg.ProbeEvery {
		return err
	}
	if r.wire.State() != broker.StateConnected {
		r.changed.Store(reconnected)
		return err
	}
	if probeErr := r.probe(ctx, now); probeErr != nil {
		r.changed.Store(true) // the next tick tries again
		return errors.Join(err, probeErr)
	}
	r.probed = now
	return err
}

// probe sends a probe through every route.
func (r *Routes) probe(ctx context.Context, now time.Time) error {
	keys := message.DeadLetterKeys()
	workers, err := r.store.DeadLetterRouteWorkers(ctx, maxRouteWorkers)
	if err != nil {
		err = fmt.Errorf("read the workers whose routes are probed: %w", err)
	}
	for _, id := range workers {
		keys = append(keys, message.DispatchKey(id), message.CancelKey(id))
	}
	routed, lost, unknown := r.probeKeys(ctx, keys)
	if len(lost) > 0 {
		found := lost
		r.repair(ctx, lost)
		var again, unclear []string
		again, lost, unclear = r.probeKeys(ctx, lost)
		routed, unknown = append(routed, again...), append(unknown, unclear...)
		if len(again) > 0 {
			r.logger.WarnContext(ctx, "Routes of dead letters were lost and have been made again", "lost", found,
				"made", again)
		}
	}
	r.probeDeath(ctx, now)
	switch {
	case r.deathErr == nil:
		routed = append(routed, dyingRoute)
	case errors.Is(r.deathErr, broker.ErrDeathLost):
		lost = append(lost, dyingRoute)
	default:
		unknown = append(unknown, dyingRoute)
	}
	slices.Sort(lost) // the report is read by other goroutines from here on
	r.metrics.routed(len(routed), len(lost), len(unknown))
	if err == nil {
		r.report.Store(&broker.RouteReport{At: now.UTC(), Routed: len(routed), Lost: lost, Unknown: len(unknown)})
	}
	if len(lost) > 0 {
		r.changed.Store(true)
	}
	r.logLost(ctx, lost)
	return err
}

// dyingRoute names the broker's own dead-lettering of expired and rejected messages.
const dyingRoute = "expiry and rejection"

// probeKeys probes keys and sorts them by result.
func (r *Routes) probeKeys(ctx context.Context, keys []string) (routed, lost, unknown []string) {
	for _, probe := range r.wire.ProbeDeadLetters(ctx, keys) {
		switch {
		case probe.Err != nil:
			unknown = append(unknown, probe.Key)
		case probe.Routed:
			routed = append(routed, probe.Key)
		default:
			lost = append(lost, probe.Key)
		}
	}
	return routed, lost, unknown
}

// repair declares lost routes again.
func (r *Routes) repair(ctx context.Context, lost []string) {
	if err := r.wire.DeclareExecutor(ctx); err != nil {
		r.logger.WarnContext(ctx, "Routes of dead letters could not be made again", "error", err)
		return
	}
	bound := map[int64]bool{}
	for _, key := range lost {
		id, ok := message.WorkerOfKey(key)
		if !ok || bound[id] {
			continue
		}
		if err := r.wire.BindWorkerDeadLetters(ctx, id); err != nil {
			r.logger.WarnContext(ctx, "Routes of dead letters of a worker could not be made again", "worker_id", id,
				"error", err)
			return
		}
		bound[id] = true
	}
}

// probeDeath lets messages die; it is rare, because it creates queues.
func (r *Routes) probeDeath(ctx context.Context, now time.Time) {
	if !r.died.IsZero() && r.deathErr == nil && now.Sub(r.died) < r.cfg.DeathEvery {
		return
	}
	r.died, r.deathErr = now, r.wire.ProbeDeath(ctx)
	if r.deathErr != nil && !errors.Is(r.deathErr, broker.ErrDeathLost) {
		r.logger.DebugContext(ctx, "Expiry and rejection could not be probed", "error", r.deathErr)
	}
}

// logLost logs the routes that lose dead letters, once until they change.
func (r *Routes) logLost(ctx context.Context, lost []string) {
	names := strings.Join(lost, " ")
	if names == r.logged {
		return
	}
	r.logged = names
	if len(lost) == 0 {
		r.logger.InfoContext(ctx, "All routes of dead letters lead to a queue again")
		return
	}
	r.logger.ErrorContext(ctx, "Dead letters are lost on their way", "routes", lost,
		"fix", "bind "+message.QueueDeadLetter+" to "+message.ExchangeDeadLetter+
			" with each of these routing keys; attune-executor doctor shows what differs")
}
