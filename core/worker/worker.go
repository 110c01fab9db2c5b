package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/core/worker/process"
)

// flushTimeout is how long a stopping worker tries to write and announce the known ends, after all
// actions have stopped.
const flushTimeout = 10 * time.Second

// startMax bounds the dispatches of one batch and of one start statement.
const startMax = 200

// prefetchSpare is how many dispatches a worker holds beyond the running ones.
const prefetchSpare = 2

// Deps are the dependencies of a worker. The caller starts Store and Broker before the worker and
// stops them after it.
type Deps struct {
	Broker  *broker.Broker
	Logger  *slog.Logger // nil discards
	Metrics *Metrics     // may be nil
	Store   *store.Store
}

// Worker runs executions. It also ends by itself (Done) when another process has taken its name.
type Worker struct {
	supervise.Base
	cfg        Config
	deps       Deps
	separation separation

	mu      sync.Mutex
	current *life // of the running or finished start; guarded by mu
}

var _ supervise.Service = (*Worker)(nil)

// New makes a worker. It does nothing before Start.
func New(cfg Config, deps Deps) (*Worker, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if deps.Store == nil || deps.Broker == nil {
		return nil, errors.New("a worker needs a store and a broker")
	}
	if deps.Logger == nil {
		deps.Logger = telemetry.Discard()
	}
	if deps.Metrics == nil {
		deps.Metrics = NewMetrics(nil)
	}
	separation, err := cfg.separation()
	if err != nil {
		return nil, err
	}
	cfg.user = separation.user
	return &Worker{cfg: cfg, deps: deps, separation: separation}, nil
}

// ID is the worker's id in the database, zero before it registers.
func (w *Worker) ID() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.current == nil {
		return 0
	}
	return w.current.member.id
}

// Health is the worker's present health; zero before the start.
func (w *Worker) Health() placement.Report {
	w.mu.Lock()
	l := w.current
	w.mu.Unlock()
	if l == nil {
		return placement.Report{}
	}
	return l.vitals.report()
}

// Name is the worker's name.
func (w *Worker) Name() string { return w.cfg.Name }

// Start registers the worker, declares and consumes its queues, and then makes it available to
// placement.
func (w *Worker) Start(ctx context.Context) error {
	l := w.newLife()
	return w.Launch(ctx,
		func(ctx context.Context) error { return w.open(ctx, l) },
		func(ctx context.Context) { w.serve(ctx, l) })
}

// life is everything that runs between one start and its stop.
type life struct {
	member    *membership
	roster    *roster
	announcer *announcer
	finisher  *finisher
	vitals    *vitals
	heartbeat *supervise.Loop
	poll      *supervise.Loop
	repair    *supervise.Loop
	forgotten *supervise.Loop
	trials    *supervise.Loop

	dispatches *dispatchConsumer
	cancels    *broker.Consumer
	packs      *broker.Consumer

	intake    *intake
	canceller *canceller
	ability   *ability
	guard     *process.Guard // of the processes of actions
	installed versionSet     // runtime versions
	keys      *keystore      // nil without one
	notices   *packNotices

	execCtx  context.Context // of the executions
	endExecs context.CancelFunc
	outCtx   context.Context // of finisher and announcer
	endOut   context.CancelFunc
	out      sync.WaitGroup
}

func (w *Worker) newLife() *life {
	cfg, deps := w.cfg, w.deps
	l := &life{roster: newRoster(cfg.MaxConcurrent), vitals: &vitals{now: time.Now}, guard: &process.Guard{}}
	l.vitals.depth = queueDepth(deps.Broker, func() string { return message.WorkerExecutionsQueue(l.member.id) })
	l.member = &membership{
		store: deps.Store, logger: deps.Logger, metrics: deps.Metrics, incarnation: uuid.New(),
		name: cfg.Name, process: ownProcess(cfg.HeartbeatInterval),
		displaced: make(chan struct{}), turned: make(chan struct{}),
		consumes: func() bool { return l.dispatches.consumes() }, inHand: l.roster.size, vitals: l.vitals,
	}
	l.vitals.trouble = l.member.inability
	l.announcer = &announcer{
		publisher: deps.Broker.Publisher(), logger: deps.Logger, metrics: deps.Metrics,
		wake: make(chan struct{}, 1), idle: make(chan struct{}, 1),
	}
	if cfg.BatchCompletions {
		l.announcer.batches = &batchReaders{broker: deps.Broker}
	}
	l.finisher = &finisher{
		store: deps.Store, roster: l.roster, announcer: l.announcer, logger: deps.Logger, metrics: deps.Metrics,
		vitals: l.vitals, wake: make(chan struct{}, 1),
	}
	return l
}

// interpreters finds the interpreters that this worker can offer: those of its runtimes and of the
// runtime versions in the database.
func (w *Worker) interpreters(ctx context.Context, l *life) ([]interpreter, versionSet, error) {
	found := w.cfg.detect(ctx, w.deps.Logger, &l.out)
	rows, err := w.deps.Store.RuntimeVersions(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("read the runtime versions for worker %s: %w", w.cfg.Name, err)
	}
	versions, present := w.cfg.versions(ctx, w.deps.Logger, &l.out, rows)
	return append(found, versions...), present, nil
}

// open starts everything in an order that prevents dispatches to a worker that does not consume:
// row (inactive), leftovers, queues, consumers, then active. If it fails it closes what it opened.
func (w *Worker) open(ctx context.Context, l *life) (err error) {
	defer func() {
		if err != nil {
			l.out.Wait()
		}
	}()
	if err := w.separation.check(ctx, w.deps.Logger); err != nil {
		return fmt.Errorf("worker %s: %w", w.cfg.Name, err)
	}
	found, present, err := w.interpreters(ctx, l)
	if err != nil {
		return err
	}
	l.installed = present
	if l.keys, err = openKeystore(ctx, w.cfg.Keyring, w.deps.Store, w.deps.Logger); err != nil {
		return err
	}
	if err := l.member.enrol(ctx, w.cfg, found); err != nil {
		return err
	}
	w.mu.Lock()
	w.current = l
	w.mu.Unlock()
	left, err := l.member.endLeftovers(ctx)
	if err == nil {
		l.announcer.add(ctx, left)
		err = w.declare(ctx, l.member.id)
	}
	if err != nil {
		w.bounded(context.WithoutCancel(ctx), func(ctx context.Context) { l.member.leave(ctx, false) })
		return err
	}
	w.assemble(ctx, l)
	if err := w.startParts(ctx, l); err != nil {
		w.close(context.WithoutCancel(ctx), l)
		return err
	}
	return nil
}

// declare declares the worker's queues exactly as existing workers do, and the routes of their dead
// letters.
func (w *Worker) declare(ctx context.Context, id int64) error {
	b := w.deps.Broker
	if err := b.DeclareCommon(ctx); err != nil {
		return fmt.Errorf("declare the exchanges for worker %d: %w", id, err)
	}
	if err := b.DeclareWorker(ctx, id, w.cfg.QueueTTL); err != nil {
		return fmt.Errorf("declare the queues of worker %d: %w", id, err)
	}
	if err := b.BindWorkerDeadLetters(ctx, id); err != nil {
		return fmt.Errorf("bind the dead letters of worker %d: %w", id, err)
	}
	return nil
}

// repair declares the queues again while they are not consumed, because an operator may have
// deleted them. It must not delay the heartbeat.
func (w *Worker) repair(ctx context.Context, l *life) error {
	if l.dispatches.consumes() && l.cancels.Subscribed() && l.packs.Subscribed() ||
		w.deps.Broker.State() != broker.StateConnected {
		return nil
	}
	return w.declare(ctx, l.member.id)
}

// assemble creates the parts that need the worker's id.
func (w *Worker) assemble(ctx context.Context, l *life) {
	id := l.member.id
	l.execCtx, l.endExecs = context.WithCancel(context.WithoutCancel(ctx))
	l.outCtx, l.endOut = context.WithCancel(context.WithoutCancel(ctx))
	l.finisher.worker = id
	restore := func(ctx context.Context) error { return w.declare(ctx, id) }
	l.dispatches = &dispatchConsumer{broker: w.deps.Broker, cfg: broker.ConsumerConfig{
		Queue: message.WorkerExecutionsQueue(id), Tag: fmt.Sprintf("worker.%d.executions", id),
		Prefetch: w.cfg.MaxConcurrent + prefetchSpare, MaxBatch: min((w.cfg.MaxConcurrent+prefetchSpare+1)/2, startMax),
		Restore: restore,
	}}
	l.cancels = w.deps.Broker.Consume(broker.ConsumerConfig{
		Queue: message.WorkerCancelQueue(id), Tag: fmt.Sprintf("worker.%d.cancel", id), Prefetch: 50, MaxBatch: 50,
		Restore: restore,
	})
	l.packs = w.deps.Broker.Consume(broker.ConsumerConfig{
		Queue: message.WorkerPacksQueue(id), Tag: fmt.Sprintf("worker.%d.packs", id), Prefetch: 50, MaxBatch: 50,
		Restore: restore,
	})
	l.notices = &packNotices{
		member: l.member, packsDir: w.cfg.PacksDir, announced: func(ctx context.Context) (map[string]any, error) {
			found, _, err := w.interpreters(ctx, l)
			return w.cfg.announced(found), err
		},
	}
	l.canceller = &canceller{member: l.member, roster: l.roster}
	runner := newRunner(w.cfg, newVault(w.cfg.Keyring, w.deps.Store, w.deps.Logger), l.keys, l.installed, w.separation,
		l.guard)
	l.ability = &ability{
		try: runner.tryStart, member: l.member, wake: func() { l.heartbeat.Wake() }, logger: w.deps.Logger,
	}
	l.intake = &intake{
		member: l.member, roster: l.roster, runner: runner, finisher: l.finisher, announcer: l.announcer,
		life: l.execCtx, unable: l.ability.lost,
		starter: &starter{
			store: l.member.store, worker: l.member.id, incarnation: l.member.incarnation,
			actionTimeouts: w.cfg.ActionTimeouts,
		},
	}
	l.heartbeat = w.loop("worker.heartbeat", w.cfg.HeartbeatInterval, func(ctx context.Context) error {
		ctx, cancel := outlasting(ctx, flushTimeout)
		defer cancel()
		return l.member.beat(ctx)
	})
	l.poll = w.loop("worker.cancel_poll", w.cfg.CancelPoll, l.canceller.poll)
	l.repair = w.loop("worker.queues", w.cfg.HeartbeatInterval,
		func(ctx context.Context) error { return w.repair(ctx, l) })
	l.forgotten = w.loop("worker.forgotten", w.cfg.HeartbeatInterval,
		func(ctx context.Context) error { return l.member.findForgotten(ctx, l) })
	l.trials = w.loop("worker.trials", trialFirst, l.ability.tick)
}

func (w *Worker) loop(name string, interval time.Duration, tick func(context.Context) error) *supervise.Loop {
	return supervise.NewLoop(supervise.LoopConfig{
		Name: name, Interval: interval, Jitter: 0.1, MaxBackoff: interval, Timeout: statementTimeout,
		Tick: tick, Logger: w.deps.Logger,
	})
}

// startParts starts to consume, and only then activates the worker.
func (w *Worker) startParts(ctx context.Context, l *life) error {
	l.out.Go(func() { l.finisher.run(l.outCtx) })
	l.out.Go(func() { l.announcer.run(l.outCtx) })
	if err := l.cancels.Start(ctx); err != nil {
		return fmt.Errorf("consume the cancels of worker %d: %w", l.member.id, err)
	}
	if err := l.packs.Start(ctx); err != nil {
		return fmt.Errorf("consume the notices about packs of worker %d: %w", l.member.id, err)
	}
	consumer, err := l.dispatches.open(ctx)
	if err == nil {
		err = awaitSubscribed(ctx, consumer)
	}
	if err != nil {
		return fmt.Errorf("consume for worker %d: %w", l.member.id, err)
	}
	if err := l.member.activate(ctx); err != nil {
		return err
	}
	for _, loop := range []*supervise.Loop{l.heartbeat, l.poll, l.repair, l.forgotten, l.trials} {
		if err := loop.Start(ctx); err != nil {
			return fmt.Errorf("start the loops of worker %d: %w", l.member.id, err)
		}
	}
	return nil
}

// awaitSubscribed waits until the broker delivers to the consumer.
func awaitSubscribed(ctx context.Context, consumer *broker.Consumer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, statementTimeout, errors.New("the broker does not deliver"))
	defer cancel()
	for !consumer.Subscribed() {
		if !supervise.Sleep(ctx, retryFirst/10) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// serve runs executions until Stop, or until another process takes the name.
func (w *Worker) serve(ctx context.Context, l *life) {
	listening, stopListening := context.WithCancel(context.WithoutCancel(ctx))
	var listeners sync.WaitGroup
	listeners.Go(func() { l.canceller.run(listening, l.cancels.Batches()) })
	listeners.Go(func() { consume(listening, l.packs.Batches(), l.notices.handle) })
	reason := w.work(ctx, l)
	for reason == nil {
		if reason = w.rest(ctx, l); reason == nil {
			reason = w.work(ctx, l)
		}
	}
	ctx = context.WithoutCancel(ctx)
	timeout := w.cfg.ShutdownTimeout
	l.repair.Stop()
	if errors.Is(reason, ErrTaken) {
		timeout = 0
		stopListening() // cancels and notices are for the process that has the name
		l.cancels.Stop()
		l.packs.Stop()
	}
	w.finish(ctx, l, reason, timeout)
	stopListening()
	listeners.Wait()
	w.close(ctx, l)
}

// finish waits for running executions, then stops them. Their ends are written and announced if the servers answer in
// time.
func (w *Worker) finish(ctx context.Context, l *life, reason error, timeout time.Duration) {
	timed, cancel := context.WithTimeout(ctx, timeout)
	done := l.roster.wait(timed)
	cancel()
	if !done {
		n := l.roster.interruptAll(reason)
		w.deps.Logger.WarnContext(ctx, "Running executions stopped with the worker", "executions", n, "reason", reason)
	}
	timed, cancel = context.WithTimeout(ctx, 2*w.cfg.KillGrace+flushTimeout)
	defer cancel()
	if !l.roster.wait(timed) {
		w.deps.Logger.ErrorContext(ctx, "Ends not written before the worker stopped; the engine ends these executions",
			"executions", l.roster.size())
	}
	if w.deps.Broker.State() == broker.StateStopped || !l.announcer.flush(timed) {
		w.deps.Logger.WarnContext(ctx,
			"Completions not published before the worker stopped; the engine's sweep finds them")
	}
}

// close stops what open started; the heartbeat and the final status come last.
func (w *Worker) close(ctx context.Context, l *life) {
	l.dispatches.close()
	l.cancels.Stop()
	l.packs.Stop()
	l.poll.Stop()
	l.repair.Stop()
	l.forgotten.Stop()
	l.trials.Stop()
	l.endExecs()
	l.endOut()
	l.out.Wait()
	l.guard.Close()
	l.heartbeat.Stop() // a later beat would undo the final status
	w.bounded(ctx, func(ctx context.Context) { l.member.leave(ctx, false) })
}

// outlasting returns a context that ends some time after the cancellation of its parent, and with its deadline. The
// database may still execute a cancelled heartbeat after the final status of the worker, so a stop waits for it.
func outlasting(parent context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	stop := context.AfterFunc(parent, func() {
		if errors.Is(context.Cause(parent), context.DeadlineExceeded) {
			by = 0
		}
		time.AfterFunc(by, cancel)
	})
	return ctx, func() { stop(); cancel() }
}

// bounded bounds a final request to a server that may not answer.
func (w *Worker) bounded(ctx context.Context, do func(context.Context)) {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout/2)
	defer cancel()
	do(ctx)
}
