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
	"github.com/attune-go/attune/core/devstack"
	"github.com/attune-go/attune/core/doctor"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/migrations"
)

// Config says what to show.
type Config struct {
	Dir      string        // the stack's folder; logs are written below it
	Duration time.Duration // of the traffic; 0 means until the context ends
	Rate     int           // executions requested a second
	Replicas int
	Workers  int
	Faults   bool
	// Practice is the name of one incident that happens in place of the faults and of the
	// whole incident; see Practices.
	Practice string
	// AtLeast is how many executions have to complete.
	AtLeast int
	// AnswerAfter is how long a question waits for a person before the demo answers
	// it; at once if 0.
	AnswerAfter time.Duration
	Binary      string // the executor to start replicas and workers from
	Out         io.Writer
	Logger      *slog.Logger // of the servers' start and end
}

// Defaults of the demo.
const (
	DurationDefault = 45 * time.Second
	RateDefault     = 60
	ReplicasDefault = 2
	WorkersDefault  = 4
	// AtLeastDefault is how many executions complete at least with these defaults.
	AtLeastDefault = 500
)

// drainPatience is how long nothing at all may end, after traffic has stopped,
// before what is left counts as lost.
const drainPatience = 90 * time.Second

// ErrLost says that the demo ran but did not keep its promise; the summary
// printed before says how.
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
	beforeEvent int64 // the same of events
	earlier     earlier
	requested   []int64  // by the traffic; of Run alone once that has stopped
	undone      []string // the faults that did not happen; guarded by noting
	noting      sync.Mutex
	// workerKilled says that a worker was killed; of Run alone once the faults have ended.
	workerKilled bool
	// calm is held while executions of an incident are under way, which a killed worker
	// would lose.
	calm       sync.Mutex
	incidents  []*incident // of Run alone once the trouble has ended
	mirror     *mirror
	placing    sync.Mutex
	ordersHeld bool // no order is placed; guarded by placing
	waiting    atomic.Int64
	muted      atomic.Bool
	logger     *slog.Logger // of what the demo does itself
	log        io.Closer
}

// Start brings up the servers, the schema, the replicas and the workers. The
// caller calls Stop whatever happens after.
func Start(ctx context.Context, cfg Config) (*Demo, error) {
	d := &Demo{cfg: cfg}
	err := d.patiently(ctx, "starting a private PostgreSQL and RabbitMQ in "+cfg.Dir, 10*time.Second,
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
	err := d.patiently(ctx, "creating the tables", 2*time.Second, func() error {
		_, err := migrations.Up(ctx, migrations.Options{URL: d.stack.DatabaseURL(), Schema: "attune", Logger: d.logger})
		return err
	})
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
	err = d.patiently(ctx, "applying the packs of the demo", time.Second, func() error {
		for _, step := range []func(context.Context) error{d.seed, d.openShop, d.readEarlier} {
			if err := step(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := d.writePast(ctx); err != nil {
		return err
	}
	err = d.patiently(ctx, "declaring exchanges and queues", time.Second, func() error { return d.connect(ctx) })
	if err != nil {
		return err
	}
	d.fleet = newFleet(d.cfg.Binary, logs, d.Env())
	here, _ := os.Getwd() // without it, the paths are absolute
	line, where := invitation(here, d.cfg.Binary, d.stack.Dir())
	d.sayf("watch it from another terminal%s:\n  %s", where, line)
	return d.startFleet(ctx, logs)
}

// openLog opens the file for what the demo's own connections have to say. A
// terminal that the dashboard fills is no place for it.
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

// connect opens the way by which the demo's own requests are published.
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

// invitation is the line of a shell that opens the dashboard on the demo of a folder, and
// where that shell has to be. Paths below the working folder are relative, so that the line
// can be copied from a narrow terminal.
func invitation(here, binary, folder string) (line, where string) {
	dashboard := filepath.Join(filepath.Dir(binary), "attune-tui")
	for _, path := range []*string{&binary, &folder, &dashboard} {
		if short, err := filepath.Rel(here, *path); err == nil && filepath.IsLocal(short) &&
			strings.ContainsRune(short, '/') {
			*path, where = short, ", in this folder"
		}
	}
	return fmt.Sprintf(`(eval "$(%s stack env --dir %s)"; %s)`, inShell(binary), inShell(folder),
		inShell(dashboard)), where
}

// inShell quotes a path for a shell where it has to be.
func inShell(path string) string {
	if !strings.ContainsFunc(path, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/._-+", r)
	}) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// secretsKey seals the secrets of the demo, which are none.
const secretsKey = "the demo has no secrets worth a better key" //nolint:gosec // it is shown to everybody

// Env lists the variables that point a program at the demo's servers.
func (d *Demo) Env() []string {
	return []string{
		"ATTUNE__DATABASE__URL=" + d.stack.DatabaseURL(),
		"ATTUNE__MESSAGE_QUEUE__URL=" + d.stack.AMQPURL(),
		"ATTUNE__MESSAGE_QUEUE__MANAGEMENT_URL=" + d.stack.ManagementURL(),
		"ATTUNE__EXECUTOR__HTTP__LISTEN=127.0.0.1:0",
		"ATTUNE__SECURITY__ENCRYPTION_KEY=" + secretsKey,
		// A killed worker is missed soon enough for the show.
		"ATTUNE__WORKER__HEARTBEAT_INTERVAL=1s",
		"ATTUNE__EXECUTOR__HEARTBEAT_INTERVAL=2s",
		"ATTUNE__EXECUTOR__TIMEOUT_CHECK_INTERVAL=2s",
		// A worker that consumes nothing is noticed soon, and what it did not begin is
		// repeated only if the action allows it.
		"ATTUNE__EXECUTOR__HEALTH_CHECK_INTERVAL=5s",
		"ATTUNE__EXECUTOR__RETRY__MAX_UNSTARTED=0",
		// Executions of core.fail and demo.unlucky fail on purpose, and no alert is to say so.
		"ATTUNE__ALERTS__ACTION_FAILING__TARGET=ops.invoice",
		// The overview soon forgets replicas that a fault or the end of an earlier run ended.
		"ATTUNE__RETENTION__SILENT_REPLICAS=1m",
	}
}

// DashboardEnv is Env and where the demo's dashboard keeps its exports: in the folder of the
// demo, as everything else.
func (d *Demo) DashboardEnv() []string {
	return append(d.Env(), "XDG_STATE_HOME="+filepath.Join(d.stack.Dir(), "dashboard"))
}

// Run sends traffic and faults, one line a second, until the duration or the
// context ends; then it awaits what was requested and prints the summary.
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
	switch {
	case d.cfg.Practice != "":
		go together(faults, func() { d.trouble(show, news) })
	case d.cfg.Faults:
		go together(faults, func() { d.faults(show, news) }, func() { d.trouble(show, news) })
	default:
		close(faults)
	}
	if d.cfg.Duration > 0 {
		go d.curtain(show, faults, end)
	}
	d.watch(show, news)
	err := d.patiently(context.WithoutCancel(ctx), "ending the traffic and the faults", time.Second, func() error {
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

// slowest bounds how many times longer than asked for the show may take.
const slowest = 4

// curtain ends the show when its time is over. On a slow machine the faults take
// longer, and the show is not over without them.
func (d *Demo) curtain(show context.Context, faults <-chan struct{}, end func()) {
	defer end()
	if !supervise.Sleep(show, d.cfg.Duration) || d.cfg.Practice != "" {
		return
	}
	patience := time.NewTimer(max((slowest-1)*d.cfg.Duration, incidentLongest))
	defer patience.Stop()
	select {
	case <-faults:
	case <-patience.C:
	case <-show.Done():
	}
}

// conclude awaits the end of everything that was requested and judges it.
func (d *Demo) conclude(ctx context.Context) error {
	d.trafficEnd = time.Now()
	d.sayf("traffic stopped; waiting for what is still under way")
	last := d.drain(ctx)
	var violations []doctor.Violation
	var left queues
	err := d.patiently(ctx, "checking that tables and queues agree", time.Second, func() (err error) {
		// Ended executions give back their slots when their reports are read.
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

// drain waits until nothing is under way, as long as anything ends.
func (d *Demo) drain(ctx context.Context) counts {
	var last counts
	progress, told := time.Now(), time.Now()
	for time.Since(progress) < drainPatience {
		if now, err := d.count(ctx); err == nil {
			if time.Since(told) >= progressEvery*3/4 { // a look at a busy database takes its time too
				told = time.Now()
				d.sayf("  %s", d.underWayText(ctx, now.live()))
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

// settle runs the invariant queries until they are silent, for at most the
// time that sweeps may take.
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

// Stop ends every process the demo started, and its servers.
func (d *Demo) Stop(ctx context.Context) error {
	err := d.patiently(ctx, "stopping workers, engines and servers", 5*time.Second, func() error { return d.stop(ctx) })
	if err != nil || d.stack == nil {
		return err
	}
	d.left()
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
		_ = d.log.Close() // it has no writer any more
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

// watched reports whether people watch, at the dashboard, until they quit.
func (d *Demo) watched() bool { return d.cfg.Duration == 0 }

// Mute keeps quiet while something else has the screen.
func (d *Demo) Mute() { d.muted.Store(true) }

// Unmute speaks again.
func (d *Demo) Unmute() { d.muted.Store(false) }

func (d *Demo) sayf(format string, args ...any) {
	if !d.muted.Load() {
		_, _ = fmt.Fprintf(d.cfg.Out, format+"\n", args...)
	}
}
