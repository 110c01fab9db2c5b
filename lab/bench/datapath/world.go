package datapath

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/attune-go/attune/core/engine"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/supervise"
)

// The connections of a replica, in addition to one for each scheduler, and of the workers, as in the
// programs.
const (
	batchConnections  = 2
	relayConnections  = 2
	workerConnections = 8
)

// world is one database with all its programs.
type world struct {
	scenario Scenario
	server   *server
	logger   *slog.Logger
	url      string
	drop     func()

	wire    *wire
	tally   *tally
	running *running

	stores   []*store.Store
	relays   []*outbox.Relay
	proxies  []*delayProxy
	requests *submit.Submitter
	query    *store.Store // for unmeasured queries
	parts    []func(context.Context) error

	cancel context.CancelFunc
	group  *errgroup.Group
	failed <-chan struct{} // closed when a part has failed
}

// build creates the database and its programs without starting them.
func (s *server) build(ctx context.Context, scenario Scenario) (w *world, err error) {
	w = &world{
		scenario: scenario, server: s, logger: s.logger, tally: newTally(),
		running: &running{limit: scenario.Limit, all: scenario.PackLimit, now: map[int64]int{}},
	}
	if w.url, w.drop, err = s.fresh(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if scenario.meter != nil {
		proxy, at, err := openDelayProxy(ctx, w.url, 0, scenario.meter)
		if err != nil {
			return w, err
		}
		w.proxies, w.url = append(w.proxies, proxy), at
	}
	ids, incarnation, err := w.seed(ctx)
	if err != nil {
		return w, err
	}
	w.wire = newWire(ids, scenario.Duplicates)
	if w.query, err = w.open(ctx, store.Config{MaxConnections: 4, ApplicationName: "datapath requests"}); err != nil {
		return w, err
	}
	if scenario.Design == designFloor {
		return w, nil
	}
	relay := w.relay(w.query)
	w.requests = submit.New(w.query, relay)
	if scenario.Design == DesignEngine {
		err = w.addReplicas(ctx)
	} else {
		err = w.addReference(ctx)
	}
	if err != nil {
		return w, err
	}
	rows, err := w.open(ctx,
		store.Config{MaxConnections: workerConnections, ApplicationName: "datapath workers", HotPath: true})
	if err != nil {
		return w, err
	}
	for _, id := range ids {
		one := &worker{
			id: id, incarnation: incarnation, store: rows, wire: w.wire, jobs: w.wire.workers[id],
			held: engine.NewBox[ended](), hold: scenario.Hold, running: w.running,
		}
		w.parts = append(w.parts, one.run)
	}
	return w, nil
}

// seed inserts actions, limits and workers.
func (w *world) seed(ctx context.Context) (ids []int64, incarnation uuid.UUID, err error) {
	incarnation = uuid.New()
	conn, err := w.connect(ctx)
	if err != nil {
		return nil, incarnation, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // all its work is committed
	if _, err := conn.Exec(ctx, seedSQL, w.scenario.Limit, w.scenario.Keys, w.scenario.PackLimit, w.scenario.Rate,
		w.scenario.burst()); err != nil {
		return nil, incarnation, fmt.Errorf("insert the actions: %w", err)
	}
	if w.scenario.Aborts > 0 {
		if err := w.observe(ctx, conn); err != nil {
			return nil, incarnation, err
		}
	}
	rows, err := conn.Query(ctx, workerSQL, w.scenario.Workers, workerCapacity, incarnation)
	if err == nil {
		ids, err = pgx.CollectRows(rows, pgx.RowTo[int64])
	}
	if err != nil {
		return nil, incarnation, fmt.Errorf("insert the workers: %w", err)
	}
	return ids, incarnation, nil
}

// connect opens a connection with the search_path of the tables.
func (w *world) connect(ctx context.Context) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig(w.url)
	if err != nil {
		return nil, fmt.Errorf("read the address of the database: %w", err)
	}
	cfg.RuntimeParams["search_path"] = schema + ", public"
	cfg.RuntimeParams["application_name"] = "datapath"
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to the database: %w", err)
	}
	return conn, nil
}

func (w *world) open(ctx context.Context, cfg store.Config) (*store.Store, error) {
	cfg.URL, cfg.Schema = cmp.Or(cfg.URL, w.url), schema
	st, err := store.Open(ctx, cfg, w.logger)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	w.stores = append(w.stores, st)
	return st, nil
}

func (w *world) relay(st *store.Store) *outbox.Relay {
	relay := outbox.New(outbox.Config{MaxPending: 10_000_000}, st, w.wire, w.logger, nil)
	w.relays = append(w.relays, relay)
	return relay
}

// applicationBatches names the sessions of batches.
const applicationBatches = "datapath batches"

func (w *world) addReplicas(ctx context.Context) error {
	for range w.scenario.Replicas {
		schedulers := w.scenario.schedulers()
		connections := int32(schedulers + batchConnections)
		at := w.url
		if w.scenario.Delay > 0 {
			proxy, address, err := openDelayProxy(ctx, w.url, w.scenario.Delay, nil)
			if err != nil {
				return err
			}
			w.proxies, at = append(w.proxies, proxy), address
		}
		hot, err := w.open(ctx,
			store.Config{URL: at, MaxConnections: connections, ApplicationName: applicationBatches, HotPath: true})
		if err != nil {
			return err
		}
		rest, err := w.open(ctx, store.Config{MaxConnections: relayConnections, ApplicationName: "datapath relay"})
		if err != nil {
			return err
		}
		r := newReplica(w, schedulers)
		recheck := func() { r.alarm.Reset(10 * time.Millisecond) }
		r.scheduler = scheduler.New(scheduler.Config{MaxQueued: maxQueued, Recheck: recheck},
			scheduler.Deps{Store: hot, Relay: w.relay(rest), Logger: w.logger})
		w.parts = append(w.parts, r.run)
	}
	return nil
}

// maxQueued is a limit that no queue reaches.
const maxQueued = 100_000_000

// start starts all programs.
func (w *world) start(ctx context.Context) error {
	for i, relay := range w.relays {
		if err := relay.Start(ctx); err != nil {
			return fmt.Errorf("start relay %d: %w", i+1, err)
		}
	}
	ctx, w.cancel = context.WithCancel(ctx)
	group, ctx := errgroup.WithContext(ctx)
	w.group, w.failed = group, ctx.Done()
	for _, part := range w.parts {
		group.Go(func() error { return part(ctx) })
	}
	return nil
}

// stop ends all programs and returns their error.
func (w *world) stop() (err error) {
	if w.cancel != nil {
		w.cancel()
		err = w.group.Wait()
		w.cancel = nil
	}
	for _, relay := range w.relays {
		relay.Stop()
	}
	w.relays = nil
	return err
}

// leave closes every connection and keeps the database.
func (w *world) leave() {
	for _, st := range w.stores {
		st.Close()
	}
	w.stores = nil
	for _, proxy := range w.proxies {
		proxy.close()
	}
	w.proxies = nil
}

// close ends all programs and drops the database.
func (w *world) close() {
	_ = w.stop() // callers that need the error have called stop before
	w.leave()
	w.drop()
}

// burst is the number of executions in one request.
const burst = 250

// send requests executions of all keys in turn. With a rate every request has one execution.
func (w *world) send(ctx context.Context, from, n int, rate float64) error {
	begun := time.Now()
	for sent := 0; sent < n; {
		size := min(burst, n-sent)
		if rate > 0 {
			if size = min(1, int(time.Since(begun).Seconds()*rate)-sent); size <= 0 {
				if !supervise.Sleep(ctx, time.Millisecond) {
					return ctx.Err()
				}
				continue
			}
		}
		batch := make([]submit.Request, size)
		for i := range batch {
			batch[i].ActionRef = "bench.noop_" + strconv.Itoa((from+sent+i)%w.scenario.Keys)
		}
		if _, err := w.requests.RequestMany(ctx, batch); err != nil {
			return fmt.Errorf("request executions: %w", err)
		}
		sent += size
	}
	return nil
}

// stallTimeout is the longest time without progress. The engine's sweeps, which need no message, are faster.
const stallTimeout = time.Minute

var errStalled = errors.New("executions stopped ending")

// awaitEnds waits until n executions have ended and released their slots.
func (w *world) awaitEnds(ctx context.Context, n int) error {
	timer := time.NewTimer(stallTimeout)
	defer timer.Stop()
	for w.tally.done() < n {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.failed:
			return w.stop()
		case <-w.tally.progress:
			timer.Reset(stallTimeout)
		case <-timer.C:
			return fmt.Errorf("%w: %d of %d", errStalled, w.tally.done(), n)
		}
	}
	return nil
}

// await is awaitEnds, and waits until every message is published.
func (w *world) await(ctx context.Context, n int) error {
	if err := w.awaitEnds(ctx, n); err != nil {
		return err
	}
	return w.awaitPublished(ctx, time.Millisecond)
}

// awaitPublished asks with a pause until every message is published.
func (w *world) awaitPublished(ctx context.Context, pause time.Duration) error {
	for deadline := time.Now().Add(stallTimeout); ; {
		var left int
		if err := w.query.Pool().QueryRow(ctx, outboxLeftSQL).Scan(&left); err != nil {
			return fmt.Errorf("count messages: %w", err)
		}
		if left == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%w: %d rows of messages are left", errStalled, left)
		}
		if !supervise.Sleep(ctx, pause) {
			return ctx.Err()
		}
	}
}
