// Package rehearsal rehearses an adoption on an installation of its own. It runs the installation's
// executor and worker, stops the executor with work in every phase, adopts the database, serves, hands
// it back, and lets the installation's executor finish. It reports the outcome of each execution.
package rehearsal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/engine"
	"github.com/attune-go/attune/core/handback"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/installation"
	"github.com/attune-go/attune/lab/installation/executor"
	"github.com/attune-go/attune/lab/installation/wire"
	"github.com/attune-go/attune/lab/installation/worker"
	"github.com/attune-go/attune/migrations"
)

// Config configures a rehearsal. It needs an empty database and an empty virtual host of its own.
type Config struct {
	DatabaseURL, AMQPURL, ManagementURL string
	Schema                              string // "attune" when empty

	Out     io.Writer    // a line for each step
	Logger  *slog.Logger // of the engine and the worker
	Timeout time.Duration
	// StaleAfter is the age at which a heartbeat is stale; the engine's default (90 s) when 0.
	StaleAfter time.Duration
}

const (
	timeoutDefault = 2 * time.Minute
	poll           = 50 * time.Millisecond
)

// Outcome compares one expectation with the result.
type Outcome struct {
	What string `json:"what"`
	ID   int64  `json:"execution,omitempty"` // 0 for a count
	Want string `json:"want"`
	Got  string `json:"got"`
	OK   bool   `json:"ok"`
}

// Report is the result of a rehearsal.
type Report struct {
	Outcomes []Outcome
	// Adopted and HandedBack are the durations of the schema changes.
	Adopted, HandedBack time.Duration
}

// Failed lists the outcomes that differ from their expectation.
func (r Report) Failed() []Outcome {
	return slices.DeleteFunc(slices.Clone(r.Outcomes), func(o Outcome) bool { return o.OK })
}

type rehearsal struct {
	cfg      Config
	pool     *pgxpool.Pool
	conn     *amqp.Connection
	wire     wire.Publisher
	executor *executor.Executor
	worker   *worker.Worker
	replica  *engine.Engine // nil unless it runs

	expected     []expectation
	enforcements int // each starts one execution
	broken       int // unreadable messages
	before       map[string]string
	report       Report

	mu   sync.Mutex
	gate chan struct{} // guarded by mu; jobs of demo.limited and demo.gated run until it closes
}

// Run rehearses once. With an error, the report holds the outcomes up to it.
func Run(ctx context.Context, cfg Config) (Report, error) {
	cfg.Timeout, cfg.Schema = cmp.Or(cfg.Timeout, timeoutDefault), cmp.Or(cfg.Schema, migrations.DefaultSchema)
	r := &rehearsal{cfg: cfg, gate: make(chan struct{})}
	defer r.close()
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"build an installation, with its executor and a worker", r.build},
		{"leave work in every phase, and stop its executor", r.fill},
		{"adopt it: migrate check, migrate up", r.adopt},
		{"serve until everything has settled", r.serve},
		{"leave a queue under way, hand the installation back: migrate down", r.leaveAndHandBack},
		{"let its executor finish", r.finish},
	} {
		if _, err := fmt.Fprintln(cfg.Out, "•", step.what); err != nil {
			return r.report, err
		}
		if err := step.do(ctx); err != nil {
			return r.report, fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return r.report, nil
}

func (r *rehearsal) close() {
	if r.replica != nil {
		_ = r.replica.Stop(context.Background()) //nolint:forbidigo // the error before is reported
	}
	if r.worker != nil {
		r.worker.Kill()
	}
	if r.conn != nil {
		_ = r.conn.CloseDeadline(time.Now().Add(5 * time.Second)) // everything on it is confirmed
	}
	if r.pool != nil {
		r.pool.Close()
	}
}

func (r *rehearsal) build(ctx context.Context) (err error) {
	if r.pool, err = installation.Open(ctx, r.cfg.DatabaseURL, r.cfg.Schema, "rehearsal"); err != nil {
		return err
	}
	conn, err := r.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("connect to the database: %w", err)
	}
	err = installation.Build(ctx, conn.Conn(), r.cfg.Schema, installation.Newest)
	conn.Release()
	if err != nil {
		return err
	}
	if err := r.exec(ctx, stateSQL); err != nil {
		return err
	}
	if r.executor, err = executor.Start(ctx, r.cfg.DatabaseURL, r.cfg.AMQPURL); err != nil {
		return err
	}
	if err := r.connect(); err != nil {
		return err
	}
	r.worker, err = worker.Start(worker.Config{
		AMQPURL: r.cfg.AMQPURL, DatabaseURL: r.cfg.DatabaseURL, Name: liveWorker, Logger: r.cfg.Logger,
		Behave: r.behave,
	})
	return err
}

// connect connects to the broker as the installation's API.
func (r *rehearsal) connect() (err error) {
	if r.conn, err = amqp.Dial(r.cfg.AMQPURL); err != nil {
		return fmt.Errorf("connect to the broker: %w", err)
	}
	r.wire.Service = "api"
	if r.wire.Channel, err = r.conn.Channel(); err != nil {
		return fmt.Errorf("open a channel: %w", err)
	}
	if err := r.wire.Channel.Confirm(false); err != nil {
		return fmt.Errorf("switch the channel to confirms: %w", err)
	}
	return nil
}

// behave runs the actions of the installation.
func (r *rehearsal) behave(ctx context.Context, job worker.Job) worker.Answer {
	switch job.ActionRef {
	case "demo.limited", "demo.gated":
		r.mu.Lock()
		gate := r.gate
		r.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-gate:
		}
	case "demo.shaky", "demo.retried":
		return worker.Answer{
			Status: "failed",
			Result: map[string]any{"succeeded": false, "exit_code": 1, "error": "out of luck"},
		}
	}
	return worker.Answer{Result: map[string]any{
		"succeeded": true, "exit_code": 0, "duration_ms": 1, "data": map[string]any{"code": 7},
	}}
}

// release lets all waiting jobs end.
func (r *rehearsal) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.gate)
}

// untouched selects checksums of rows that no engine may change.
var untouched = map[string]string{
	"work queues": `SELECT md5((SELECT string_agg(q::text, ',' ORDER BY q.id) FROM work_queue q)
		|| (SELECT string_agg(i::text, ',' ORDER BY i.id) FROM work_queue_item i))`,
	"executions that had ended before": `SELECT md5(string_agg(concat_ws(' ', e.id, e.status, e.result, e.worker, e.updated), ',' ORDER BY e.id))
		FROM execution e WHERE e.updated < now() - interval '12 hours'`,
}

func (r *rehearsal) checksums(ctx context.Context) (map[string]string, error) {
	sums := map[string]string{}
	for what, sql := range untouched {
		var sum string
		if err := r.pool.QueryRow(ctx, sql).Scan(&sum); err != nil {
			return nil, fmt.Errorf("read %s: %w", what, err)
		}
		sums[what] = sum
	}
	return sums, nil
}

func (r *rehearsal) options() migrations.Options {
	return migrations.Options{
		URL: r.cfg.DatabaseURL, Schema: r.cfg.Schema, WithoutWorkQueues: true, Logger: r.cfg.Logger,
	}
}

func (r *rehearsal) adopt(ctx context.Context) (err error) {
	if r.before, err = r.checksums(ctx); err != nil {
		return err
	}
	plan, err := migrations.Check(ctx, r.options())
	if err != nil {
		return err
	}
	if !plan.WouldAdopt || len(plan.Differences) > 0 {
		return fmt.Errorf("the installation cannot be adopted as it is: %s", strings.Join(plan.Differences, "; "))
	}
	begun := time.Now()
	if _, err = migrations.Up(ctx, r.options()); err != nil {
		return err
	}
	r.report.Adopted = time.Since(begun)
	return nil
}

// serve starts an engine, waits until all work has ended, and judges it. The engine keeps running.
func (r *rehearsal) serve(ctx context.Context) error {
	if err := r.start(ctx); err != nil {
		return err
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	return r.assess(ctx)
}

// start starts an engine.
func (r *rehearsal) start(ctx context.Context) error {
	cfg := config.Default()
	cfg.Database.URL, cfg.Database.Schema = r.cfg.DatabaseURL, r.cfg.Schema
	cfg.MessageQueue.URL, cfg.MessageQueue.ManagementURL = r.cfg.AMQPURL, r.cfg.ManagementURL
	cfg.Executor.HTTP.Listen = ""
	cfg.Executor.TimeoutCheckInterval = time.Second
	if r.cfg.StaleAfter > 0 {
		cfg.Executor.HeartbeatInterval = time.Duration(
			float64(r.cfg.StaleAfter) / cfg.Executor.HeartbeatStalenessMultiplier)
	}
	replica, err := engine.New(ctx, cfg, engine.Deps{Logger: r.cfg.Logger, Version: "rehearsal"})
	if err != nil {
		return err
	}
	if err := replica.Start(ctx); err != nil {
		return err
	}
	r.replica = replica
	return nil
}

// leaveAndHandBack fills a queue, stops the engine, and hands the installation back.
func (r *rehearsal) leaveAndHandBack(ctx context.Context) error {
	if err := r.leaveAgain(ctx); err != nil {
		return err
	}
	replica := r.replica
	r.replica = nil
	if err := replica.Stop(ctx); err != nil {
		return err
	}
	return r.handBack(ctx)
}

// handBack does the same as `migrate down --yes`.
func (r *rehearsal) handBack(ctx context.Context) error {
	begun := time.Now()
	st, err := store.Open(ctx, store.Config{URL: r.cfg.DatabaseURL, Schema: r.cfg.Schema, MaxConnections: 4},
		r.cfg.Logger)
	if err != nil {
		return fmt.Errorf("open the database: %w", err)
	}
	defer st.Close()
	link := broker.New(broker.Config{URL: r.cfg.AMQPURL, NoDeadLetters: true}, r.cfg.Logger, nil)
	if err := link.Start(ctx); err != nil {
		return fmt.Errorf("connect to the broker: %w", err)
	}
	defer link.Stop()
	opts := r.options()
	opts.HandBack = func(ctx context.Context) error {
		_, err := handback.HandBack(ctx, handback.Deps{Store: st, Broker: link})
		return err
	}
	if _, err = migrations.Down(ctx, opts, 0); err != nil {
		return err
	}
	r.report.HandedBack = time.Since(begun)
	return nil
}

// settle lets waiting jobs end and waits for everything else. After the timeout, assess judges the
// present state.
func (r *rehearsal) settle(ctx context.Context) error {
	r.release()
	err := r.await(ctx, "everything settles", `SELECT NOT EXISTS (SELECT FROM execution e
			WHERE e.status IN ('requested', 'scheduling', 'scheduled', 'running', 'canceling'))
		AND NOT EXISTS (SELECT FROM execution_admission_entry)
		AND NOT EXISTS (SELECT FROM enforcement f WHERE f.status = 'created')
		AND (SELECT count(*) FROM dead_letter) >= $1`, r.broken)
	if errors.Is(err, errTimeout) {
		_, err = fmt.Fprintln(r.cfg.Out, "  not everything has settled in time")
	}
	return err
}

// leaveAgain requests six more executions of the action with two slots, and keeps two running for the
// hand-back.
func (r *rehearsal) leaveAgain(ctx context.Context) error {
	r.mu.Lock()
	r.gate = make(chan struct{})
	r.mu.Unlock()
	ids, err := r.ids(ctx, `INSERT INTO execution (action, action_ref)
		SELECT id, ref FROM action, generate_series(1, 6) WHERE ref = 'demo.limited' RETURNING id`)
	if err != nil {
		return err
	}
	r.expected = nil
	for i, id := range ids {
		if err := r.request(ctx, id); err != nil {
			return err
		}
		what := "waited for one of two slots when it was handed back"
		if i < 2 {
			what = "held one of two slots when it was handed back"
		}
		r.expect(id, what, 1, "completed")
	}
	return r.await(ctx, "two executions run and four wait again", `SELECT
		(SELECT count(*) FROM execution WHERE id = ANY ($1) AND status = 'running') = 2
		AND (SELECT count(*) FROM execution_admission_entry WHERE status = 'queued') = 4`, ids)
}

// finish lets the executor of the installation finish the work that was handed back.
func (r *rehearsal) finish(ctx context.Context) (err error) {
	if r.executor, err = executor.Start(ctx, r.cfg.DatabaseURL, r.cfg.AMQPURL); err != nil {
		return err
	}
	defer r.executor.Stop()
	r.release()
	var ids []int64
	for _, x := range r.expected {
		ids = append(ids, x.execution)
	}
	err = r.await(ctx, "the six complete",
		`SELECT count(*) = 6 FROM execution WHERE id = ANY ($1) AND status = 'completed'`, ids)
	if err != nil && !errors.Is(err, errTimeout) {
		return err
	}
	return r.judgeExecutions(ctx)
}
