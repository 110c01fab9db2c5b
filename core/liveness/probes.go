package liveness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

// Limits of one run of the probes.
const (
	probePage     = 64
	pagesParallel = 4
	probeParallel = 8               // concurrent requests to the broker
	probeTimeout  = 3 * time.Second // of one request to the broker
	unstartedScan = 20_000
	endingsScan   = 2_000
	endingsLately = 10 * time.Minute
)

// SkewLimit is the offset of a worker's clock from which a warning is logged.
const SkewLimit = 5 * time.Second

// ValidFor is the number of intervals for which a verdict counts.
const ValidFor = 3

// ProbesConfig configures the probes.
type ProbesConfig struct {
	// Interval is the pause between two probes of one worker. Default 30 s.
	Interval time.Duration
	// StaleAfter is the heartbeat age from which a worker counts as dead. Default 90 s.
	StaleAfter time.Duration
	// Limits say when a worker is degraded or unhealthy. Zero means the documented limits.
	Limits placement.Limits
	// ByFailures derives every worker's health from the failures of its executions. Otherwise this
	// applies only to workers with the capability health_by_failures: a failing action is not its
	// worker's fault.
	ByFailures bool
	// EndpointHosts are the hosts, besides its own, where a worker's health endpoint may be.
	EndpointHosts []string
	// Replica is the id of this replica.
	Replica uuid.UUID
}

func (c ProbesConfig) withDefaults() ProbesConfig {
	c.Interval = supervise.OrDefault(c.Interval, 30*time.Second)
	c.StaleAfter = supervise.OrDefault(c.StaleAfter, 90*time.Second)
	if c.Limits == (placement.Limits{}) {
		c.Limits = placement.DocumentedLimits()
	}
	return c
}

// Probes probes the workers. One replica at a time runs it; it skips a worker that was probed less
// than two thirds of an interval ago.
type Probes struct {
	*supervise.Loop

	cfg     ProbesConfig
	store   *store.Store
	broker  Inspector
	client  *http.Client
	logger  *slog.Logger
	metrics *Metrics
}

// NewProbes makes the loop. metrics may be nil.
func NewProbes(
	cfg ProbesConfig, st *store.Store, inspector Inspector, logger *slog.Logger, metrics *Metrics,
	loops *supervise.Metrics,
) *Probes {
	p := &Probes{
		cfg: cfg.withDefaults(), store: st, broker: inspector, client: newClient(cfg.EndpointHosts),
		logger: logger, metrics: cmp.Or(metrics, NewMetrics(nil)),
	}
	p.Loop = supervise.NewLoop(supervise.LoopConfig{
		Name: "probes", Failure: "Error checking worker health", Interval: p.cfg.Interval,
		Timeout: max(p.cfg.Interval, 30*time.Second), Jitter: 0.1,
		Tick: p.tick, Logger: logger, Metrics: loops,
	})
	return p
}

// Stop implements supervise.Service.
func (p *Probes) Stop() {
	p.Loop.Stop()
	p.client.CloseIdleConnections()
}

// tick probes all workers, a page at a time, and counts them.
func (p *Probes) tick(ctx context.Context) error {
	return counted(ctx, p.store, p.cfg.StaleAfter, p.metrics, func(ctx context.Context) error {
		return p.store.Locked(ctx, "probes", lockHolder, func() error { return p.all(ctx) })
	})
}

// lockHolder is the application name of the session that holds the lock of the probes.
const lockHolder = "attune-executor probes"

// all probes the due workers, several pages at the same time: slow workers of one page delay no
// other. No transaction is open during network requests.
func (p *Probes) all(ctx context.Context) (err error) {
	run := &probeRun{probes: p, requests: make(chan struct{}, probeParallel)}
	if run.oldest, err = p.unstarted(ctx); err != nil {
		return err
	}
	var pages errgroup.Group
	pages.SetLimit(pagesParallel)
	for after := int64(0); ; {
		rows, err := p.store.FindProbed(ctx, after, p.cfg.Interval.Seconds()*2/3, probePage)
		if err != nil {
			return errors.Join(fmt.Errorf("read the workers after %d: %w", after, err), pages.Wait())
		}
		if len(rows) > 0 {
			after = rows[len(rows)-1].ID
			pages.Go(func() error { return run.page(ctx, rows) })
		}
		if len(rows) < probePage {
			return pages.Wait()
		}
	}
}

// probeRun is one probe of all workers.
type probeRun struct {
	probes   *Probes
	oldest   map[int64]*time.Time // of unstarted work, by worker
	requests chan struct{}        // bounds the requests to the broker
	away     atomic.Bool          // the broker did not answer; no more requests go to it
}

// page probes the workers of one page and records the findings.
func (r *probeRun) page(ctx context.Context, rows []store.FindProbedRow) error {
	p := r.probes
	endings, err := p.endings(ctx, rows)
	if err != nil {
		return err
	}
	found := make([]finding, len(rows))
	var group sync.WaitGroup
	for i, row := range rows {
		group.Go(func() {
			s := r.observe(ctx, row)
			s.oldest, s.endings, s.byFailures = r.oldest[row.ID], endings[row.ID], p.cfg.ByFailures || row.ByFailures
			found[i] = evaluate(s, p.cfg.Limits, ValidFor*p.cfg.Interval)
		})
	}
	group.Wait()
	if err := ctx.Err(); err != nil { // an interrupted probe is no evidence
		return fmt.Errorf("probe %d workers: %w", len(rows), context.Cause(ctx))
	}
	if err := p.record(ctx, found); err != nil {
		return err
	}
	p.logChanges(ctx, rows, found)
	return p.suspect(ctx, found)
}

// unstarted reads the age of the oldest unstarted execution of each worker.
func (p *Probes) unstarted(ctx context.Context) (map[int64]*time.Time, error) {
	rows, err := p.store.FindUnstarted(ctx, unstartedScan)
	if err != nil {
		return nil, fmt.Errorf("read the oldest unstarted executions: %w", err)
	}
	oldest := make(map[int64]*time.Time, len(rows))
	for _, row := range rows {
		oldest[row.Worker] = &row.Oldest
	}
	return oldest, nil
}

// endings reads the recent ends of executions, for the workers whose health depends on them.
func (p *Probes) endings(ctx context.Context, rows []store.FindProbedRow) (map[int64]*store.FindEndingsRow, error) {
	var ids []int64
	for _, row := range rows {
		if p.cfg.ByFailures || row.ByFailures {
			ids = append(ids, row.ID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	list, err := p.store.FindEndings(ctx, endingsScan, ids, endingsLately.Seconds())
	if err != nil {
		return nil, fmt.Errorf("read how executions of %d workers ended: %w", len(ids), err)
	}
	endings := make(map[int64]*store.FindEndingsRow, len(list))
	for i := range list {
		endings[list[i].Worker] = &list[i]
	}
	return endings, nil
}

// observe reads the queue of a worker from the broker and, concurrently, the worker's health
// endpoint if it has one.
func (r *probeRun) observe(ctx context.Context, row store.FindProbedRow) observation {
	s := observation{FindProbedRow: row, stale: r.probes.cfg.StaleAfter}
	var group sync.WaitGroup
	if row.HealthUrl != "" && row.HeartbeatAge < s.stale.Seconds() {
		group.Go(func() { s.endpoint = requestEndpoint(ctx, r.probes.client, row) })
	}
	s.queue = r.queue(ctx, row.ID)
	group.Wait()
	return s
}

// errAway stands for a broker that just failed to answer.
var errAway = errors.New("the broker does not answer")

// queue reads the queue of a worker from the broker. After one timeout it skips the other workers:
// each would wait as long.
func (r *probeRun) queue(ctx context.Context, worker int64) queueResult {
	r.requests <- struct{}{}
	defer func() { <-r.requests }()
	if r.away.Load() {
		return queueResult{asked: true, err: errAway}
	}
	timed, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	begin := time.Now()
	state, err := r.probes.broker.QueueState(timed, message.WorkerExecutionsQueue(worker))
	if timed.Err() != nil {
		r.away.Store(true)
	}
	return queueResult{asked: true, state: state, err: err, took: time.Since(begin)}
}

func (p *Probes) record(ctx context.Context, found []finding) error {
	written, err := params(found)
	if err != nil {
		return err
	}
	written.Replica = p.cfg.Replica
	if err := p.store.RecordProbes(ctx, written); err != nil {
		return fmt.Errorf("record the probes of %d workers: %w", len(found), err)
	}
	return nil
}

// suspect marks workers as suspect in a statement of its own. If it fails, the next probe finds the
// same evidence.
func (p *Probes) suspect(ctx context.Context, found []finding) error {
	var ids []int64
	var reasons []string
	for _, f := range found {
		if f.suspect != "" {
			ids, reasons = append(ids, f.worker), append(reasons, f.suspect)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	if err := p.store.SuspectWorkers(ctx, p.cfg.StaleAfter.Seconds(), ids, reasons); err != nil {
		return fmt.Errorf("suspect %d workers: %w", len(ids), err)
	}
	return nil
}

// logChanges logs what changed since the last probe.
func (p *Probes) logChanges(ctx context.Context, rows []store.FindProbedRow, found []finding) {
	for i, f := range found {
		old := rows[i]
		p.metrics.probed(f)
		if f.failed != "" && old.Failures < deafProbes && !old.EndpointFailed {
			//nolint:sloglint // the published line
			p.logger.WarnContext(ctx, fmt.Sprintf("Worker %s failed health check", f.name),
				"worker_id", f.worker, "worker", f.name, "reason", f.failed, "suspect", f.suspect != "")
		}
		if off := math.Abs(f.skew); off > SkewLimit.Seconds() && math.Abs(old.OldSkew) <= SkewLimit.Seconds() {
			p.logger.WarnContext(ctx,
				"Worker's clock differs from the database's. This engine uses only the database's "+
					"clock; executors that use the worker's clock may misjudge whether it is alive",
				"worker_id", f.worker, "worker", f.name, "ahead_seconds", math.Round(f.skew))
		}
		if string(f.health) == old.OldHealth {
			continue
		}
		args := []any{
			"worker_id", f.worker, "worker", f.name, "health", string(f.health), "reason", f.healthReason,
			"was", old.OldHealth,
		}
		switch {
		case f.health == placement.Unhealthy:
			p.logger.WarnContext(ctx, "Worker is unhealthy and receives no work", args...)
		case f.health == placement.Degraded:
			p.logger.WarnContext(ctx,
				"Worker is degraded and receives only work for which healthy workers have no capacity", args...)
		case f.health == placement.Healthy &&
			(old.OldHealth == string(placement.Unhealthy) || old.OldHealth == string(placement.Degraded)):
			p.logger.InfoContext(ctx, "Worker is healthy again", args...)
		}
	}
}
