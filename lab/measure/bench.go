package measure

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/pprof"
	"slices"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/engine"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/worker"
	"github.com/attune-go/attune/core/worker/builtin"
	"github.com/attune-go/attune/lab/devstack"
	"github.com/attune-go/attune/migrations"
)

// Config is one measurement.
type Config struct {
	Executions  int
	Actions     int
	Limit       int // executions at once per action; 0 means no limit
	Replicas    int
	Schedulers  int `json:",omitempty"` // of a replica; 0 means its default
	Workers     int
	Concurrency int     // executions that a worker runs at once
	Rate        float64 // requests a second; 0 floods
	Profile     string  // a name for the report
	// Workflow makes the executions the tasks of one workflow, a List or a Chain. Without it they are
	// requested directly.
	Workflow string `json:",omitempty"`
}

// The profiles with goals.
const (
	ProfileFlood = "flood, no limit"
	ProfileMany  = "flood, 100 actions, limit 5"
	ProfileTen   = "flood, one action, limit 10"
	ProfileFive  = "flood, one action, limit 5"
	ProfilePaced = "paced 200/s, no limit"
)

// Profiles returns the standard measurements.
func Profiles() []Config {
	profiles := []Config{
		{Profile: ProfileFlood, Executions: 10_000, Actions: 10},
		{Profile: ProfileMany, Executions: 10_000, Actions: 100, Limit: 5},
		{Profile: ProfileTen, Executions: 5_000, Actions: 1, Limit: 10},
		{Profile: ProfileFive, Executions: 3_000, Actions: 1, Limit: 5},
		{Profile: ProfilePaced, Executions: 2_000, Actions: 10, Rate: 200},
		{Profile: "workflow, list, 10 at a time", Executions: 1_000, Actions: 1, Limit: 10, Workflow: List},
		{Profile: "workflow, list, all at once", Executions: 1_000, Actions: 1, Limit: 1_000, Workflow: List},
		{Profile: "workflow, chain", Executions: 100, Actions: 1, Workflow: Chain},
	}
	for i := range profiles {
		profiles[i].Replicas, profiles[i].Workers, profiles[i].Concurrency = 1, 2, 50
	}
	return profiles
}

// Servers are the servers of a measurement. The database must be idle; the measurement leaves its rows.
type Servers struct {
	DatabaseURL, Schema, AMQPURL, ManagementURL string
	// Postgres and Broker are the processes of the servers, 0 if unknown.
	Postgres, Broker int
}

// ServersOf are those of a private stack.
func ServersOf(stack *devstack.Stack) Servers {
	status := stack.Status()
	return Servers{
		DatabaseURL: stack.DatabaseURL(), Schema: migrations.DefaultSchema, AMQPURL: stack.AMQPURL(),
		ManagementURL: stack.ManagementURL(), Postgres: status.Postgres.PID, Broker: status.Broker.PID,
	}
}

// times are the CPU times of this process and of the servers.
func (s Servers) times() [3]time.Duration {
	own, _, _ := ProcessTime(os.Getpid())
	return [3]time.Duration{own, TreeTime(s.Postgres), TreeTime(s.Broker)}
}

// All runs measurements, one after the other, and notes each.
func All(
	ctx context.Context, profiles []Config, servers Servers, logger *slog.Logger, note func(string, ...any),
) ([]Report, error) {
	var reports []Report
	for _, p := range profiles {
		note("measuring %s: %s", p.Profile, phrase.Plural(p.Executions, "execution", "executions"))
		report, err := Run(ctx, p, servers, logger)
		if err != nil {
			return reports, fmt.Errorf("measure %q: %w", p.Profile, err)
		}
		reports = append(reports, report)
	}
	return reports, nil
}

// ProfileCPU writes a CPU profile of this process into a file until stop is called; without a name it does nothing.
func ProfileCPU(name string) (stop func(), err error) {
	if name == "" {
		return func() {}, nil
	}
	file, err := os.Create(name)
	if err != nil {
		return nil, fmt.Errorf("create the profile: %w", err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, fmt.Errorf("start the profile: %w", err)
	}
	return func() {
		pprof.StopCPUProfile()
		_ = file.Close() // a profile that cannot be closed cannot be read either
	}, nil
}

// Report is the result of one measurement. Durations are in seconds.
type Report struct {
	Config    Config  `json:"config"`
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"executions_per_second"`
	// Published is the throughput that the existing executor's documents give for the same limit on one
	// action, on another machine; 0 when they give none.
	Published float64 `json:"published_per_second,omitempty"`
	Completed int64   `json:"completed"`

	StartP50 float64 `json:"requested_to_running_p50"`
	StartP95 float64 `json:"requested_to_running_p95"`
	StartP99 float64 `json:"requested_to_running_p99"`
	// NextP50 and so on are completed → next running of the same action, for actions with a limit.
	NextP50 float64 `json:"completed_to_next_running_p50,omitempty"`
	NextP95 float64 `json:"completed_to_next_running_p95,omitempty"`
	NextP99 float64 `json:"completed_to_next_running_p99,omitempty"`

	// EarlyTask and LateTask are the durations of a workflow's tasks in the first and in the last fifth: they
	// are equal if completed tasks cost nothing.
	EarlyTask float64 `json:"early_task_seconds,omitempty"`
	LateTask  float64 `json:"late_task_seconds,omitempty"`

	// CPU is the CPU time of all processes of the machine, in seconds per execution; 0 if unknown.
	CPU float64 `json:"cpu_seconds_per_execution"`
	// GoCPU, PostgresCPU and BrokerCPU are the parts of this process and of the known servers.
	GoCPU                float64 `json:"go_cpu_seconds_per_execution,omitempty"`
	PostgresCPU          float64 `json:"postgres_cpu_seconds_per_execution,omitempty"`
	BrokerCPU            float64 `json:"broker_cpu_seconds_per_execution,omitempty"`
	CommitsPerExecution  float64 `json:"commits_per_execution"`
	WALBytesPerExecution float64 `json:"wal_bytes_per_execution"`
	HotRatio             float64 `json:"hot_updates_ratio"`

	Machine  Machine   `json:"machine"`
	Measured time.Time `json:"measured"`
}

// Machine describes the machine of a report.
type Machine struct {
	CPUs       int    `json:"cpus"`
	GoVersion  string `json:"go"`
	PostgreSQL string `json:"postgresql"`
}

// Run runs one measurement.
func Run(ctx context.Context, cfg Config, servers Servers, logger *slog.Logger) (report Report, err error) {
	st, err := store.Open(ctx, store.Config{
		URL: servers.DatabaseURL, Schema: servers.Schema, MaxConnections: 8, ApplicationName: "attune-bench",
	}, logger)
	if err != nil {
		return report, fmt.Errorf("open the database: %w", err)
	}
	defer st.Close()
	if _, err := migrations.Up(ctx,
		migrations.Options{URL: servers.DatabaseURL, Schema: servers.Schema, Logger: logger}); err != nil {
		return report, fmt.Errorf("migrate the database: %w", err)
	}
	m := &measurement{cfg: cfg, servers: servers, store: st, logger: logger}
	if err := m.seed(ctx); err != nil {
		return report, err
	}
	if cfg.Workflow != "" {
		if err := m.seedWorkflow(ctx); err != nil {
			return report, err
		}
	}
	stop, err := m.start(ctx)
	defer func() { err = errors.Join(err, stop()) }()
	if err != nil {
		return report, err
	}
	return m.measure(ctx)
}

type measurement struct {
	cfg     Config
	servers Servers
	store   *store.Store
	logger  *slog.Logger
	relay   *outbox.Relay
	after   int64 // newest execution before the measurement
}

// start starts engines and workers. stop ends them, also after an error.
func (m *measurement) start(ctx context.Context) (stop func() error, err error) {
	var stops []func() error
	stop = func() error {
		var failed error
		for _, each := range slices.Backward(stops) {
			failed = errors.Join(failed, each())
		}
		return failed
	}
	background := context.WithoutCancel(ctx)
	b := broker.New(broker.Config{URL: m.servers.AMQPURL, ConnectionName: "bench requests"}, m.logger, nil)
	m.relay = outbox.New(outbox.Config{}, m.store, b.Publisher(), m.logger, nil)
	if err := b.Start(ctx); err != nil {
		return stop, fmt.Errorf("connect to the broker: %w", err)
	}
	stops = append(stops, func() error { b.Stop(); return nil })
	if err := b.DeclareExecutor(ctx); err != nil {
		return stop, fmt.Errorf("declare the topology: %w", err)
	}
	if err := m.relay.Start(ctx); err != nil {
		return stop, fmt.Errorf("start the relay: %w", err)
	}
	stops = append(stops, func() error { m.relay.Stop(); return nil })
	for range m.cfg.Replicas {
		cfg := m.config()
		cfg.Executor.Schedulers = m.cfg.Schedulers
		e, err := engine.New(ctx, cfg, engine.Deps{Logger: m.logger, Version: "bench"})
		if err != nil {
			return stop, fmt.Errorf("build an engine: %w", err)
		}
		if err := e.Start(ctx); err != nil {
			return stop, err
		}
		stops = append(stops, func() error { return e.Stop(background) })
	}
	rows, err := store.Open(ctx, store.Config{
		URL: m.servers.DatabaseURL, Schema: m.servers.Schema, MaxConnections: 8,
		ApplicationName: "attune-bench workers", HotPath: true,
	}, m.logger)
	if err != nil {
		return stop, fmt.Errorf("open the database for the workers: %w", err)
	}
	stops = append(stops, func() error { rows.Close(); return nil })
	for i := range m.cfg.Workers {
		b := broker.New(broker.Config{URL: m.servers.AMQPURL, ConnectionName: fmt.Sprintf("bench worker %d", i)},
			m.logger, nil)
		if err := b.Start(ctx); err != nil {
			return stop, fmt.Errorf("connect a worker: %w", err)
		}
		stops = append(stops, func() error { b.Stop(); return nil })
		w, err := worker.New(worker.Config{
			Name: fmt.Sprintf("bench-worker-%d", i+1), MaxConcurrent: m.cfg.Concurrency, Actions: builtin.Actions(),
		}, worker.Deps{Store: rows, Broker: b, Logger: m.logger})
		if err != nil {
			return stop, fmt.Errorf("build a worker: %w", err)
		}
		if err := w.Start(ctx); err != nil {
			return stop, fmt.Errorf("start a worker: %w", err)
		}
		stops = append(stops, func() error { w.Stop(); return nil })
	}
	return stop, nil
}

func (m *measurement) config() *config.Config {
	cfg := config.Default()
	cfg.Database.URL, cfg.Database.Schema = m.servers.DatabaseURL, m.servers.Schema
	cfg.MessageQueue.URL, cfg.MessageQueue.ManagementURL = m.servers.AMQPURL, m.servers.ManagementURL
	cfg.Executor.HTTP.Listen = ""
	cfg.Executor.Queue.MaxQueueLength = max(m.cfg.Executions, cfg.Executor.Queue.MaxQueueLength)
	return cfg
}

// statisticsDelay is the longest delay of the counters of database sessions.
const statisticsDelay = 1500 * time.Millisecond

// measure sends the load, waits for its end and reads the figures.
func (m *measurement) measure(ctx context.Context) (Report, error) {
	before, err := m.counters(ctx)
	if err != nil {
		return Report{}, err
	}
	begun, busy, parts := time.Now(), MachineTime(), m.servers.times()
	if err := m.send(ctx); err != nil {
		return Report{}, err
	}
	if err := m.await(ctx); err != nil {
		return Report{}, err
	}
	took, worked, spent := time.Since(begun), MachineTime()-busy, m.servers.times()
	supervise.Sleep(ctx, statisticsDelay)
	after, err := m.counters(ctx)
	if err != nil {
		return Report{}, err
	}
	report := Report{
		Config: m.cfg, Published: published(m.cfg), Seconds: took.Seconds(), Measured: time.Now().UTC(),
		Machine: m.machine(ctx),
	}
	if err := m.latencies(ctx, &report); err != nil {
		return Report{}, err
	}
	if m.cfg.Workflow != "" {
		err := m.queryRow(ctx, "read the durations of tasks", sql.Pace, []any{m.after}, &report.EarlyTask,
			&report.LateTask)
		if err != nil {
			return Report{}, err
		}
	}
	report.PerSecond = float64(report.Completed) / took.Seconds()
	report.CPU = worked.Seconds() / float64(max(report.Completed, 1))
	n := float64(max(report.Completed, 1))
	for i, part := range []*float64{&report.GoCPU, &report.PostgresCPU, &report.BrokerCPU} {
		*part = (spent[i] - parts[i]).Seconds() / n
	}
	report.CommitsPerExecution = float64(after.commits-before.commits) / n
	report.WALBytesPerExecution = float64(after.walBytes-before.walBytes) / n
	if updates := after.updates - before.updates; updates > 0 {
		report.HotRatio = float64(after.hot-before.hot) / float64(updates)
	}
	return report, nil
}

// burst is the number of executions in one request of the flood.
const burst = 250

func (m *measurement) send(ctx context.Context) error {
	requests := submit.New(m.store, m.relay)
	if m.cfg.Workflow != "" {
		_, err := requests.Request(ctx, submit.Request{ActionRef: m.cfg.action()})
		if err != nil {
			return fmt.Errorf("request the workflow: %w", err)
		}
		return nil
	}
	sent := 0
	begun := time.Now()
	for sent < m.cfg.Executions {
		size := min(burst, m.cfg.Executions-sent)
		if m.cfg.Rate > 0 {
			due := int(time.Since(begun).Seconds() * m.cfg.Rate)
			if size = min(size, due-sent); size <= 0 {
				if !supervise.Sleep(ctx, 2*time.Millisecond) {
					return ctx.Err()
				}
				continue
			}
		}
		batch := make([]submit.Request, size)
		for i := range batch {
			batch[i].ActionRef = fmt.Sprintf("bench.noop_%d_%d", m.cfg.Limit, (sent+i)%m.cfg.Actions)
		}
		if _, err := requests.RequestMany(ctx, batch); err != nil {
			return fmt.Errorf("request executions: %w", err)
		}
		sent += size
	}
	return nil
}

// ErrStalled reports that executions stopped ending.
var ErrStalled = errors.New("no execution has ended for a minute")

func (m *measurement) await(ctx context.Context) error {
	total := m.cfg.Executions
	if m.cfg.Workflow != "" {
		total++ // the workflow itself
	}
	last, since := -1, time.Now()
	for {
		var ended int
		if err := m.queryRow(ctx, "count ended executions", sql.Ended, []any{m.after}, &ended); err != nil {
			return err
		}
		if ended >= total {
			return nil
		}
		if ended != last {
			last, since = ended, time.Now()
		}
		if time.Since(since) > time.Minute {
			return fmt.Errorf("%w: %d of %d ended", ErrStalled, ended, m.cfg.Executions)
		}
		if !supervise.Sleep(ctx, 20*time.Millisecond) {
			return ctx.Err()
		}
	}
}
