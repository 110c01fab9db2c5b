package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/doctor"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/lab/devstack"
	"github.com/attune-go/attune/migrations"
)

// Config configures a demo.
type Config struct {
	Dir      string        // the stack's folder, also for the logs
	Duration time.Duration // of the traffic; 0 means until the context ends
	Rate     int           // executions requested a second
	Replicas int
	Workers  int
	Faults   bool
	// Practice is the name of one incident to practise in place of the faults and of the whole incident;
	// see Practices.
	Practice string
	// AtLeast is the number of executions that must complete.
	AtLeast int
	// AnswerAfter is how long a question waits for the user before the demo answers it; at once if 0.
	AnswerAfter time.Duration
	Binary      string // the executor to start replicas and workers from
	Out         io.Writer
	Logger      *slog.Logger // for the start and the end of the servers
}

// Defaults of the demo.
const (
	DurationDefault = 45 * time.Second
	RateDefault     = 60
	ReplicasDefault = 2
	WorkersDefault  = 4
	// AtLeastDefault is the number of executions that complete with these defaults at least.
	AtLeastDefault = 500
)

// drainTimeout is the longest time without the end of an execution, after traffic has stopped. Then the
// open executions count as lost.
const drainTimeout = 90 * time.Second

// ErrLost reports that the demo ran but broke a promise; the summary names it.
var ErrLost = errors.New("the demo did not end as promised")

// Demo is a running demonstration.
type Demo struct {
	cfg   Config
	stack *devstack.Stack
	store *store.Store
	fleet *fleet

	broker      *broker.Broker // of the traffic
	relay       *outbox.Relay
	begun       time.Time
	trafficEnd  time.Time
	before      int64 // the newest execution before this run
	beforeEvent int64 // the newest event before this run
	earlier     earlier
	requested   []int64 // by the traffic, which must have stopped before another goroutine reads it
	mu          sync.Mutex
	undone      []string // the faults that did not happen; guarded by mu
	// workerKilled reports that a fault killed a worker. Only Run reads it, after the faults.
	workerKilled bool
	// incidentLock is held while executions of an incident run: a killed worker would lose them.
	incidentLock sync.Mutex
	incidents    []*incident // only Run reads it, after the incidents
	mirror       *mirror
	placing      sync.Mutex
	ordersHeld   bool // no order is placed; guarded by placing
	waiting      atomic.Int64
	muted        atomic.Bool
	logger       *slog.Logger // for the demo's own actions
	log          io.Closer
}

// Start starts the servers, the schema, the replicas and the workers. The caller must call Stop.
func Start(ctx context.Context, cfg Config) (*Demo, error) {
	d := &Demo{cfg: cfg}
	err := d.withProgress(ctx, "starting a private PostgreSQL and RabbitMQ in "+cfg.Dir, 10*time.Second,
		func() (err error) {
			d.stack, err = devstack.Up(ctx,
				devstack.Config{Dir: cfg.Dir, Durable: true, Logger: cfg.Logger, StatsInterval: time.Second})
			return err
		})
	if err != nil {
		return nil, fmt.Errorf("start the servers: %w", err)
	}
	if err := d.prepare(ctx); err != nil {
		return nil, errors.Join(err, d.Stop(context.WithoutCancel(ctx)))
	}
	return d, nil
}

func (d *Demo) prepare(ctx context.Context) error {
	logs := filepath.Join(d.stack.Dir(), "demo-logs")
	if err := d.openLog(logs); err != nil {
		return err
	}
	err := d.withProgress(ctx, "creating the tables", 2*time.Second, func() error {
		_, err := migrations.Up(ctx, migrations.Options{URL: d.stack.DatabaseURL(), Schema: "attune", Logger: d.logger})
		return err
	})
	if unfit, ok := errors.AsType[*migrations.UnfitError](err); ok && unfit.Unreleased {
		return fmt.Errorf("the servers in %[1]s have the tables of an earlier commit: run `attune-lab stack reset "+
			"--dir %[1]s`, and start again", inShell(d.stack.Dir()))
	}
	if err != nil {
		return fmt.Errorf("migrate the database: %w", err)
	}
	st, err := store.Open(ctx, store.Config{
		URL: d.stack.DatabaseURL(), Schema: "attune", MaxConnections: 4, ApplicationName: "attune-demo",
	}, d.logger)
	if err != nil {
		return fmt.Errorf("open the database: %w", err)
	}
	d.store = st
	err = d.withProgress(ctx, "applying the packs of the demo", time.Second, func() error {
		if _, err := d.store.Pool().Exec(ctx, sql.Demo); err != nil {
			return fmt.Errorf("insert the demo's actions and limits: %w", err)
		}
		if err := d.openShop(ctx); err != nil {
			return err
		}
		return d.readEarlier(ctx)
	})
	if err != nil {
		return err
	}
	if err := d.writePast(ctx); err != nil {
		return err
	}
	err = d.withProgress(ctx, "declaring exchanges and queues", time.Second, func() error { return d.connect(ctx) })
	if err != nil {
		return err
	}
	d.fleet = &fleet{
		binary: d.cfg.Binary, logs: logs, env: append(os.Environ(), d.Env()...),
		processes: map[string]*process{},
	}
	here, _ := os.Getwd() // without it, the paths are absolute
	command, where := watchCommand(here, d.cfg.Binary, d.stack.Dir())
	d.printf("watch it from another terminal%s:\n  %s", where, command)
	return d.startFleet(ctx, logs)
}

// openLog opens the log file of the demo's own connections: the dashboard needs the whole terminal.
func (d *Demo) openLog(folder string) error {
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return fmt.Errorf("make the folder of the logs: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(folder, "demo.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the demo's log: %w", err)
	}
	d.log = file
	d.logger, err = telemetry.NewLogger(file, "info", "text")
	return err
}

// connect connects to the broker and starts the relay for the demo's own requests.
func (d *Demo) connect(ctx context.Context) error {
	d.broker = broker.New(broker.Config{URL: d.stack.AMQPURL(), ConnectionName: "attune-demo"}, d.logger, nil)
	if err := d.broker.Start(ctx); err != nil {
		return fmt.Errorf("connect to the broker: %w", err)
	}
	if err := d.broker.DeclareExecutor(ctx); err != nil {
		return fmt.Errorf("declare the topology: %w", err)
	}
	d.relay = outbox.New(outbox.Config{}, d.store, d.broker.Publisher(), d.logger, nil)
	if err := d.relay.Start(ctx); err != nil {
		return fmt.Errorf("start the relay: %w", err)
	}
	return d.startMirror(ctx)
}

func replicaName(i int) string { return fmt.Sprintf("executor-%d", i+1) }
func workerName(i int) string  { return fmt.Sprintf("demo-worker-%d", i+1) }

// watchCommand returns the shell command that opens the dashboard of the demo, and where to run it.
// Paths below the working folder are relative, so that the command fits a narrow terminal.
func watchCommand(here, binary, folder string) (command, where string) {
	programs := filepath.Dir(binary)
	lab, dashboard := filepath.Join(programs, "attune-lab"), filepath.Join(programs, "attune-tui")
	for _, path := range []*string{&lab, &folder, &dashboard} {
		if short, err := filepath.Rel(here, *path); err == nil && filepath.IsLocal(short) &&
			strings.ContainsRune(short, '/') {
			*path, where = short, ", in this folder"
		}
	}
	return fmt.Sprintf(`(eval "$(%s stack env --dir %s)"; %s)`, inShell(lab), inShell(folder),
		inShell(dashboard)), where
}

// inShell quotes a path for a shell if necessary.
func inShell(path string) string {
	if !strings.ContainsFunc(path, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/._-+", r)
	}) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// secretsKey is the encryption key. The demo has no secrets.
const secretsKey = "the demo has no secrets worth a better key" //nolint:gosec // it is public

// Env returns the variables that point a program at the demo's servers.
func (d *Demo) Env() []string {
	return []string{
		"ATTUNE__DATABASE__URL=" + d.stack.DatabaseURL(),
		"ATTUNE__MESSAGE_QUEUE__URL=" + d.stack.AMQPURL(),
		"ATTUNE__MESSAGE_QUEUE__MANAGEMENT_URL=" + d.stack.ManagementURL(),
		"ATTUNE__EXECUTOR__HTTP__LISTEN=127.0.0.1:0",
		"ATTUNE__SECURITY__ENCRYPTION_KEY=" + secretsKey,
		// Replicas must notice a killed worker within seconds.
		"ATTUNE__WORKER__HEARTBEAT_INTERVAL=1s",
		"ATTUNE__EXECUTOR__HEARTBEAT_INTERVAL=2s",
		"ATTUNE__EXECUTOR__TIMEOUT_CHECK_INTERVAL=2s",
		// Replicas must soon notice a worker that consumes nothing, and retry its unstarted executions only
		// if the action allows it.
		"ATTUNE__EXECUTOR__HEALTH_CHECK_INTERVAL=5s",
		"ATTUNE__EXECUTOR__RETRY__MAX_UNSTARTED=0",
		// Executions of core.fail and demo.unlucky fail on purpose and must raise no alert.
		"ATTUNE__ALERTS__ACTION_FAILING__TARGET=ops.invoice",
		// The overview must soon forget replicas of faults and of earlier runs.
		"ATTUNE__RETENTION__SILENT_REPLICAS=1m",
	}
}

// DashboardEnv is Env plus the folder of the dashboard's exports, inside the demo's folder.
func (d *Demo) DashboardEnv() []string {
	return append(d.Env(), "XDG_STATE_HOME="+filepath.Join(d.stack.Dir(), "dashboard"))
}

// Run sends traffic and faults and prints a line a second until the duration or the context ends. Then
// it waits for all executions and prints the summary.
func (d *Demo) Run(ctx context.Context) error {
	d.begun = time.Now()
	show, end := context.WithCancel(ctx)
	defer end()
	news := make(chan string, 16)
	traffic := make(chan error, 1)
	go func() { traffic <- d.traffic(show) }()
	stopAnswers := d.runShop(ctx, show)
	defer stopAnswers()
	faults := make(chan struct{})
	var parallel sync.WaitGroup
	switch {
	case d.cfg.Practice != "":
		parallel.Go(func() { d.runIncidents(show, news) })
	case d.cfg.Faults:
		parallel.Go(func() { d.faults(show, news) })
		parallel.Go(func() { d.runIncidents(show, news) })
	}
	go func() {
		parallel.Wait()
		close(faults)
	}()
	if d.cfg.Duration > 0 {
		go d.endOnTime(show, faults, end)
	}
	d.watch(show, news)
	err := d.withProgress(context.WithoutCancel(ctx), "ending the traffic and the faults", time.Second, func() error {
		<-faults
		return <-traffic
	})
	if err != nil {
		return fmt.Errorf("send traffic: %w", err)
	}
	for _, i := range d.incidents {
		d.requested = append(d.requested, i.requested()...)
	}
	return d.conclude(context.WithoutCancel(ctx))
}

// slowest is how many times longer than configured the demo may take on a slow machine.
const slowest = 4

// endOnTime ends the demo after its duration and all faults, which take longer on a slow machine.
func (d *Demo) endOnTime(show context.Context, faults <-chan struct{}, end func()) {
	defer end()
	if !supervise.Sleep(show, d.cfg.Duration) || d.cfg.Practice != "" {
		return
	}
	select {
	case <-faults:
	case <-time.After(max((slowest-1)*d.cfg.Duration, incidentLongest)):
	case <-show.Done():
	}
}

// conclude waits for the end of all executions and checks the result.
func (d *Demo) conclude(ctx context.Context) error {
	d.trafficEnd = time.Now()
	d.printf("traffic stopped; waiting for the executions under way")
	last := d.drain(ctx)
	var violations []doctor.Violation
	var left queues
	err := d.withProgress(ctx, "checking that tables and queues agree", time.Second, func() (err error) {
		// Completed executions release their slots when a replica reads their reports.
		if violations, err = d.settle(ctx); err != nil {
			return fmt.Errorf("run the invariant queries: %w", err)
		}
		if left, err = d.queues(ctx); err != nil {
			return fmt.Errorf("read the queues of the broker: %w", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return d.summary(ctx, last, violations, left)
}

// drain waits until no execution is under way, or none has ended for drainTimeout.
func (d *Demo) drain(ctx context.Context) counts {
	var last counts
	progress, printed := time.Now(), time.Now()
	for time.Since(progress) < drainTimeout {
		if now, err := d.count(ctx); err == nil {
			if time.Since(printed) >= progressEvery*3/4 { // a query of a busy database takes time too
				printed = time.Now()
				d.printf("  %s", d.underWayText(ctx, now.live()))
			}
			if orders, err := d.countShop(ctx); err == nil && now.live() == 0 && now.Outbox == 0 && orders.done() {
				return now
			}
			if now.ended() > last.ended() {
				progress = time.Now()
			}
			last = now
		}
		if !supervise.Sleep(ctx, 200*time.Millisecond) {
			break
		}
	}
	return last
}

// settle runs the invariant queries until they return nothing: sweeps may take up to 30 seconds.
func (d *Demo) settle(ctx context.Context) ([]doctor.Violation, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		violations, err := doctor.Invariants(ctx, d.store.Pool())
		if err == nil && len(violations) == 0 {
			return nil, nil
		}
		if !supervise.Sleep(ctx, 500*time.Millisecond) {
			return violations, err
		}
	}
}

// Stop ends the demo's processes and servers.
func (d *Demo) Stop(ctx context.Context) error {
	err := d.withProgress(ctx, "stopping workers, engines and servers", 5*time.Second,
		func() error { return d.stop(ctx) })
	if err != nil || d.stack == nil {
		return err
	}
	d.reportDisk()
	return nil
}

func (d *Demo) stop(ctx context.Context) error {
	if d.fleet != nil {
		d.fleet.stopAll()
	}
	d.stopMirror(ctx)
	if d.relay != nil {
		d.relay.Stop()
	}
	if d.broker != nil {
		d.broker.Stop()
	}
	if d.store != nil {
		d.store.Close()
	}
	if d.log != nil {
		_ = d.log.Close() // all writers have stopped
	}
	if d.stack == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := d.stack.Down(ctx, false); err != nil {
		return fmt.Errorf("stop the servers: %w", err)
	}
	return nil
}

// watched reports whether a user watches the dashboard and decides when the demo ends.
func (d *Demo) watched() bool { return d.cfg.Duration == 0 }

// Mute stops the output while another program uses the terminal.
func (d *Demo) Mute() { d.muted.Store(true) }

// Unmute resumes the output.
func (d *Demo) Unmute() { d.muted.Store(false) }

func (d *Demo) printf(format string, args ...any) {
	if !d.muted.Load() {
		_, _ = fmt.Fprintf(d.cfg.Out, format+"\n", args...)
	}
}
