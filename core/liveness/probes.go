package liveness

import (
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

	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

// The bounds of looking at workers.
const (
	probePage     = 64
	probeParallel = 8
	probeTimeout  = 3 * time.Second // of one question to the broker
	unstartedScan = 20_000
	endingsScan   = 2_000
	endingsLately = 10 * time.Minute
)

// SkewLimit is how far a worker's clock may be off before that is said.
const SkewLimit = 5 * time.Second

// ValidFor is for how many intervals a verdict counts.
const ValidFor = 3

// ProbesConfig is what looking at workers depends on.
type ProbesConfig struct {
	// Interval between looks at one worker. Default 30 s.
	Interval time.Duration
	// StaleAfter is the age of a heartbeat from which a worker is gone. Default
	// 90 s.
	StaleAfter time.Duration
	// Limits say from when on a worker is degraded, and unhealthy. The documented
	// ones if they are zero.
	Limits placement.Limits
	// ByFailures judges every worker by what failed on it. Otherwise only those are
	// that ask for it by the capability health_by_failures: an action that fails is
	// not its worker's fault.
	ByFailures bool
	// Replica is who looks.
	Replica uuid.UUID
}

func (c ProbesConfig) withDefaults() ProbesConfig {
	if c.Interval <= 0 {
		c.Interval = 30 * time.Second
	}
	if c.StaleAfter <= 0 {
		c.StaleAfter = 90 * time.Second
	}
	if c.Limits == (placement.Limits{}) {
		c.Limits = placement.DocumentedLimits()
	}
	return c
}

// Probes looks at the workers. One replica at a time does; a worker that another
// has looked at less than two thirds of an interval ago is left alone.
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
func NewProbes(cfg ProbesConfig, st *store.Store, inspector Inspector, logger *slog.Logger, metrics *Metrics, loops *supervise.Metrics) *Probes {
	p := &Probes{cfg: cfg.withDefaults(), store: st, broker: inspector, client: newClient(), logger: logger, metrics: metrics}
	p.Loop = supervise.NewLoop(supervise.LoopConfig{
		Name: "probes", Interval: p.cfg.Interval, Timeout: max(p.cfg.Interval, 30*time.Second), Jitter: 0.1,
		Tick: p.tick, Logger: logger, Metrics: loops,
	})
	return p
}

// Stop implements supervise.Service.
func (p *Probes) Stop() {
	p.Loop.Stop()
	p.client.CloseIdleConnections()
}

// tick looks at all workers, a page at a time, and counts them.
func (p *Probes) tick(ctx context.Context) error {
	err := p.all(ctx)
	if err == nil {
		err = count(ctx, p.store, p.cfg.StaleAfter, p.metrics)
	}
	if err != nil {
		p.metrics.unknown()
	}
	return err
}

func (p *Probes) all(ctx context.Context) error {
	var oldest unstarted
	for after := int64(0); ; {
		last, err := p.page(ctx, after, &oldest)
		if err != nil {
			return fmt.Errorf("look at the workers after %d: %w", after, err)
		}
		if after = last; after == 0 {
			return nil
		}
	}
}

// page looks at the workers of one page and records what it saw, under the lock
// that keeps other replicas from looking. It returns the last of a full page, else
// 0.
func (p *Probes) page(ctx context.Context, after int64, oldest *unstarted) (last int64, err error) {
	var found []finding
	var rows []store.FindProbedRow
	err = p.store.Tx(ctx, "probes", func(ctx context.Context, tx *store.Tx) error {
		found, rows, last = nil, nil, 0
		won, err := tx.TryLoopLock(ctx, "probes")
		if err != nil || !won {
			return err
		}
		rows, err = tx.FindProbed(ctx, after, p.cfg.Interval.Seconds()*2/3, probePage)
		if err != nil {
			return fmt.Errorf("read the workers: %w", err)
		}
		if len(rows) == 0 {
			return nil
		}
		if len(rows) == probePage {
			last = rows[len(rows)-1].ID
		}
		if found, err = p.look(ctx, tx, rows, oldest); err != nil {
			return err
		}
		return p.record(ctx, tx, found)
	})
	if err != nil {
		return 0, err
	}
	p.tell(ctx, rows, found)
	return last, p.suspect(ctx, found)
}

// unstarted is since when work lies unstarted, by worker; nil before it was read,
// which is once a tick.
type unstarted map[int64]*time.Time

func (u *unstarted) read(ctx context.Context, tx *store.Tx) error {
	if *u != nil {
		return nil
	}
	rows, err := tx.FindUnstarted(ctx, unstartedScan)
	if err != nil {
		return fmt.Errorf("read since when work lies unstarted: %w", err)
	}
	*u = make(unstarted, len(rows))
	for _, row := range rows {
		(*u)[row.Worker] = &row.Oldest
	}
	return nil
}

// look asks about all workers of a page, some at a time.
func (p *Probes) look(ctx context.Context, tx *store.Tx, rows []store.FindProbedRow, oldest *unstarted) ([]finding, error) {
	if err := oldest.read(ctx, tx); err != nil {
		return nil, err
	}
	endings, err := p.endings(ctx, tx, rows)
	if err != nil {
		return nil, err
	}
	found := make([]finding, len(rows))
	var away atomic.Bool
	var group sync.WaitGroup
	places := make(chan struct{}, probeParallel)
	for i, row := range rows {
		places <- struct{}{}
		group.Go(func() {
			defer func() { <-places }()
			s := p.see(ctx, row, &away)
			s.oldest, s.endings, s.byFailures = (*oldest)[row.ID], endings[row.ID], p.cfg.ByFailures || row.ByFailures
			found[i] = judge(s, p.cfg.Limits, ValidFor*p.cfg.Interval)
		})
	}
	group.Wait()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("look at %d workers: %w", len(rows), context.Cause(ctx)) // what was interrupted is no evidence
	}
	return found, nil
}

// endings reads how what the workers ran has ended lately, of those that are judged
// by it.
func (p *Probes) endings(ctx context.Context, tx *store.Tx, rows []store.FindProbedRow) (map[int64]*store.FindEndingsRow, error) {
	var ids []int64
	for _, row := range rows {
		if p.cfg.ByFailures || row.ByFailures {
			ids = append(ids, row.ID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	list, err := tx.FindEndings(ctx, endingsScan, ids, endingsLately.Seconds())
	if err != nil {
		return nil, fmt.Errorf("read how executions of %d workers ended: %w", len(ids), err)
	}
	endings := make(map[int64]*store.FindEndingsRow, len(list))
	for i := range list {
		endings[list[i].Worker] = &list[i]
	}
	return endings, nil
}

// see asks the broker for the queue of a worker, and the worker itself if it
// offers that, at the same time. Once the broker has not answered it is not asked
// for others: everybody would wait for it.
func (p *Probes) see(ctx context.Context, row store.FindProbedRow, away *atomic.Bool) seen {
	s := seen{FindProbedRow: row, stale: p.cfg.StaleAfter}
	var group sync.WaitGroup
	if row.HealthUrl != "" && row.HeartbeatAge < p.cfg.StaleAfter.Seconds() {
		group.Go(func() { s.endpoint = ask(ctx, p.client, row.HealthUrl, row.ID) })
	}
	s.queue = p.seeQueue(ctx, row.ID, away)
	group.Wait()
	return s
}

// errAway stands for a broker that did not answer a moment ago.
var errAway = errors.New("the broker does not answer")

func (p *Probes) seeQueue(ctx context.Context, worker int64, away *atomic.Bool) queueLook {
	if away.Load() {
		return queueLook{asked: true, err: errAway}
	}
	timed, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	begin := time.Now()
	state, err := p.broker.QueueState(timed, message.WorkerExecutionsQueue(worker))
	if timed.Err() != nil {
		away.Store(true)
	}
	return queueLook{asked: true, state: state, err: err, took: time.Since(begin)}
}

// record writes what was seen.
func (p *Probes) record(ctx context.Context, tx *store.Tx, found []finding) error {
	written, err := params(found)
	if err != nil {
		return err
	}
	written.Replica = p.cfg.Replica
	if err := tx.RecordProbes(ctx, written); err != nil {
		return fmt.Errorf("record what was seen of %d workers: %w", len(found), err)
	}
	return nil
}

// suspect keeps work from those against whom it speaks, in a statement of its own:
// should that fail, the next look speaks against them again.
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
	suspected, err := p.store.SuspectWorkers(ctx, p.cfg.StaleAfter.Seconds(), ids, reasons)
	if err != nil {
		return fmt.Errorf("suspect %d workers: %w", len(ids), err)
	}
	for _, w := range suspected {
		p.logger.WarnContext(ctx, "Worker is suspected and given nothing until its queue is consumed",
			"worker_id", w.ID, "worker", w.Name, "reason", w.Reason)
	}
	return nil
}

// tell says what has changed since the last look.
func (p *Probes) tell(ctx context.Context, rows []store.FindProbedRow, found []finding) {
	for i, f := range found {
		old := rows[i]
		p.metrics.probed(f)
		if off := math.Abs(f.skew); off > SkewLimit.Seconds() && math.Abs(old.OldSkew) <= SkewLimit.Seconds() {
			p.logger.WarnContext(ctx, "Worker's clock differs from the database's. This engine judges heartbeats by the database's clock alone; "+
				"executors that compare with the worker's take it for dead, or for alive when it is not",
				"worker_id", f.worker, "worker", f.name, "ahead_seconds", math.Round(f.skew))
		}
		if string(f.health) == old.OldHealth {
			continue
		}
		args := []any{"worker_id", f.worker, "worker", f.name, "health", string(f.health), "reason", f.healthReason, "was", old.OldHealth}
		switch {
		case f.health == placement.Unhealthy:
			p.logger.WarnContext(ctx, "Worker is unhealthy and given nothing", args...)
		case f.health == placement.Degraded:
			p.logger.WarnContext(ctx, "Worker is degraded and given only what the healthy have no room for", args...)
		case f.health == placement.Healthy && (old.OldHealth == string(placement.Unhealthy) || old.OldHealth == string(placement.Degraded)):
			p.logger.InfoContext(ctx, "Worker is healthy again", args...)
		}
	}
}
