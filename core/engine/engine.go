package engine

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/attune-go/attune/core/advancement"
	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/api"
	"github.com/attune-go/attune/core/batch"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/cancellation"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/liveness"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/policy"
	"github.com/attune-go/attune/core/recovery"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/core/triage"
)

// Limits of one batch: completions first, because they free what requests need.
const (
	maxCompletions = 200
	maxRequests    = 100
	maxBatches     = 32 // messages, each with up to message.MaxBatchItems completions
)

// Deps are the dependencies of an engine.
type Deps struct {
	Logger *slog.Logger
	// Registry receives the metrics; nil creates one.
	Registry *prometheus.Registry
	// Version is shown in the replica's row.
	Version string
	// Beside starts the replica although another executor consumes its queues.
	Beside bool
}

// Engine is one replica.
type Engine struct {
	cfg      *config.Config
	id       uuid.UUID
	beside   bool
	logger   *slog.Logger
	registry *prometheus.Registry

	store  *store.Store // connections of the batches, with their planner settings
	query  *store.Store // all other connections
	broker *broker.Broker
	relay  *outbox.Relay

	lanes   int
	hot     *hot
	sweep   *recovery.Sweep
	report  *replica
	outages *liveness.OutageDetector
	gate    *batch.Gate
	routes  *deadletter.Routes // nil without the handler of dead letters

	workflows *advancement.Runner
	keys      secret.Keyring

	http *api.Server

	consumers map[string]*broker.Consumer
	loops     map[string]loop
	services  supervise.Group
}

// New assembles a replica. It opens no connection; Start does.
func New(ctx context.Context, cfg *config.Config, deps Deps) (*Engine, error) {
	e := &Engine{
		cfg: cfg, id: uuid.New(), registry: deps.Registry, beside: deps.Beside,
		consumers: make(map[string]*broker.Consumer), loops: make(map[string]loop),
	}
	if e.registry == nil {
		e.registry = telemetry.NewRegistry()
	}
	e.logger = deps.Logger.With("replica", e.id.String()[:8])
	var err error
	if e.keys, err = secret.NewKeyring(cfg.Security.EncryptionKey); err != nil {
		return nil, fmt.Errorf("read security.encryption_key: %w", err)
	}
	if err := e.open(ctx); err != nil {
		return nil, err
	}
	e.gate = batch.NewGate(batch.GateConfig{Logger: e.logger, Prolonged: func() {
		// Another replica may be able to process the deliveries.
		for _, consumer := range e.consumers {
			consumer.GiveBack()
		}
	}})
	if err := e.assemble(deps.Version); err != nil {
		e.close()
		return nil, err
	}
	for name, l := range e.loops {
		l.Watch(func(err error) time.Duration { return e.gate.Tick("loop "+name, err) })
	}
	return e, nil
}

// batchConnections is how many connections the batches use besides one for each lane: one for
// workflows, one for enforcements, and two spare ones while broken ones are closed.
const batchConnections = 4

// restConnections is how many connections everything else needs at least: one listens, and three
// loops hold a lock on one while they work on another.
const restConnections = 6

func (e *Engine) open(ctx context.Context) (err error) {
	hot, rest := store.Configured(e.cfg, "attune-executor rounds"), store.Configured(e.cfg, "attune-executor")
	hot.Relay, rest.Relay = e.id, e.id
	lanes := e.cfg.Executor.SchedulersOn(runtime.GOMAXPROCS(0))
	e.lanes = min(lanes, max(int(e.cfg.Database.MaxConnections)-batchConnections-restConnections, 1))
	if e.lanes < lanes {
		e.logger.WarnContext(ctx,
			"Fewer schedulers run than configured, since database.max_connections leaves no room for them",
			"schedulers", e.lanes, "wanted", lanes, "max_connections", e.cfg.Database.MaxConnections,
			"needed", lanes+batchConnections+restConnections)
	}
	batches := int32(e.lanes + batchConnections)
	hot.MaxConnections, hot.HotPath = batches, true
	if e.store, err = store.Open(ctx, hot, e.logger); err != nil {
		return fmt.Errorf("open the database for batches: %w", err)
	}
	rest.MaxConnections = max(e.cfg.Database.MaxConnections-batches, restConnections)
	rest.MinConnections = e.cfg.Database.MinConnections
	if e.query, err = store.Open(ctx, rest, e.logger); err != nil {
		e.store.Close()
		return fmt.Errorf("open the database: %w", err)
	}
	return nil
}

// assemble creates the parts in the order of their start.
func (e *Engine) assemble(version string) error {
	loopMetrics := supervise.NewMetrics(e.registry)
	spans, err := e.addTraces(version, loopMetrics)
	if err != nil {
		return err
	}
	wire := broker.Configured(e.cfg, "attune-executor "+e.id.String()[:8])
	wire.Trials = e.query
	e.broker = broker.New(wire, e.logger, broker.NewMetrics(e.registry))
	e.outages = liveness.NewOutageDetector(e.cfg.Executor.StaleAfter(), e.query, e.logger, loopMetrics)
	undelivered := recovery.NewUndelivered(e.logger, func() { e.sweep.Wake() })
	e.relay = outbox.New(outbox.Config{
		Listen: true, Undeliverable: undelivered.Accept, Refused: deadletter.Refused, Gate: e.gate, Traces: spans.sink,
	}, e.query, e.broker.Publisher(), e.logger, outbox.NewMetrics(e.registry))
	sched := scheduler.New(scheduler.Config{
		HeartbeatStaleAfter: e.cfg.Executor.StaleAfter(),
		WaitForWorkers:      e.cfg.Executor.NoWorkers == "wait",
		NoWorkersGrace:      e.cfg.NoWorkersGrace,
		MaxQueued:           e.cfg.Executor.Queue.MaxQueueLength,
		RetryPlace:          policy.Place(e.cfg.Executor.Queue.RetryPlace),
		WithoutStats:        !e.cfg.Executor.Queue.EnableMetrics,
		Traces:              spans.roots,
		Recovering:          e.outages.Recovering, Recheck: func() { e.hot.wake.after(recheckAfter, time.Now()) },
	}, scheduler.Deps{Store: e.store, Relay: e.relay, Logger: e.logger, Metrics: scheduler.NewMetrics(e.registry)})

	prefetch := e.cfg.MessageQueue.RabbitMQ.PrefetchCount
	status := e.consume(message.QueueExecutionStatus, "executor.manager", prefetch, maxCompletions)
	e.hot = e.newHotPath(sched, prefetch)
	e.hot.spans = spans.batches
	e.sweep = recovery.New(recovery.Config{
		QueueTimeout: e.cfg.Executor.Queue.Timeout, ClaimAge: scheduler.ClaimAge,
		WithoutStats: !e.cfg.Executor.Queue.EnableMetrics,
		Undisturbed:  e.gate.Undisturbed,
	}, e.query, e.hot.Submit, e.logger, loopMetrics)
	e.hot.reclaim = e.sweep.Reclaim
	retries := recovery.NewRetries(e.query, e.hot.Submit, e.logger, loopMetrics)
	e.hot.soon = retries.Soon
	cancels := cancellation.NewPoll(cancellation.Config{
		StaleAfter: e.cfg.Executor.StaleAfter(), WithoutStats: !e.cfg.Executor.Queue.EnableMetrics,
	}, e.query, e.relay, e.logger, loopMetrics)
	rescuer := recovery.NewRescuer(recovery.RescuerConfig{
		Interval: e.cfg.Executor.TimeoutCheckInterval, StaleAfter: e.cfg.Executor.StaleAfter(),
		ScheduledTimeout: e.cfg.Executor.ScheduledTimeout, Grace: e.cfg.Executor.TimeoutGrace,
		ActionTimeouts: e.cfg.Executor.HonourActionTimeoutSeconds,
		FailLost:       e.cfg.Executor.LostRunning == "fail", DispatchesDelayed: e.dispatchesDelayed, Unsure: e.unsure,
		Recovering: e.outages.Recovering,
	}, e.query, e.hot.Submit, e.relay, e.logger, loopMetrics)
	e.report = newReplica(e, version, loopMetrics)
	probe := &prober{engine: e}
	view := e.monitor(probe)
	gauges := newGauge(gaugeDeps{Reader: view, Logger: e.logger, Metrics: loopMetrics})
	e.registry.MustRegister(gauges)
	e.loops["outbox"] = e.relay.Sweep()
	e.http = api.New(e.cfg.Executor.HTTP.Listen, api.Deps{
		Published: api.Published{
			Store: e.query, Submitter: submit.New(e.query, e.relay).WithKeyring(e.keys),
			Signer: secret.NewSigner([]byte(e.cfg.Security.JWTSecret)),
		},
		Ready: e.Ready, Gatherer: e.registry, Logger: e.logger, View: view, Acts: e.acts(),
		TokensFile: e.cfg.Executor.HTTP.TokensFile,
		Rates: api.Rates{
			PerToken: e.cfg.Executor.HTTP.RateLimit, Unauthorized: e.cfg.Executor.HTTP.UnauthorizedRateLimit,
		},
		Traces:   spans.requests,
		CertFile: e.cfg.Executor.HTTP.TLSCertFile, KeyFile: e.cfg.Executor.HTTP.TLSKeyFile,
		AnyPort: e.cfg.Source("executor.http.listen") == "default", // so that a second replica on one host starts
	})

	e.services.Add("http", e.http)
	e.addLoop("replica", e.report)
	e.addLoop("sight", e.outages)
	e.addLoop("queue gauges", gauges)
	e.services.Add("broker", e.broker)
	e.services.Add("topology", &topology{engine: e})
	e.services.Add("neighbours", &neighbours{engine: e})
	e.services.Add("outbox", e.relay)
	e.services.Add("completions", e.hot.completed)
	e.services.Add("batches", e.hot.batched)
	e.services.Add("requests", e.hot.requested)
	e.services.Add("status", status)
	e.services.Add("progress", scheduler.NewStatusReports(status, e.recheckStopped, e.logger,
		scheduler.NewStatusMetrics(e.registry)))
	e.services.Add("rounds", e.hot)
	e.addWorkflows(sched, cancels.Wake, loopMetrics)
	e.addLoop("recovery", e.sweep)
	e.addLoop("retries", retries)
	e.addLoop("cancels", cancels)
	if e.cfg.Executor.EnableTimeoutMonitor {
		e.addLoop("timeouts", rescuer)
	}
	e.addGuards(view, probe, loopMetrics)
	return nil
}

func (e *Engine) newHotPath(sched *scheduler.Scheduler, prefetch int) *hot {
	atOnce := e.lanes + 1 // each lane has a batch in flight, and one collects
	completed := e.consume(message.QueueExecutionCompleted, "executor.completion", max(prefetch, atOnce*maxCompletions),
		maxCompletions)
	requested := e.consume(message.QueueExecutionRequests, "executor.scheduler", max(prefetch, atOnce*maxRequests),
		maxRequests)
	h := newHot(completed, requested, e.lanes, sched, e.stepConfig(), e.logger, NewMetrics(e.registry))
	h.batched = e.consume(message.QueueExecutionBatches, "executor.batches", atOnce*maxBatches, maxBatches)
	h.gate = e.gate
	return h
}

// monitor makes the reader for HTTP and metrics, which uses this replica's connections.
func (e *Engine) monitor(probe *prober) *alerting.Reader {
	deps := monitor.Deps{Store: e.query}
	if e.cfg.MessageQueue.ManagementURL != "" {
		deps.Broker = probe
	}
	return alerting.NewReader(monitor.New(monitor.Configured(e.cfg), deps), e.cfg.Alerts, probe)
}

func (e *Engine) stepConfig() stepConfig {
	retry := e.cfg.Executor.Retry
	return stepConfig{
		queueTimeout: e.cfg.Executor.Queue.Timeout,
		queueTTL:     e.cfg.MessageQueue.RabbitMQ.WorkerQueueTTL,
		moveLate:     retry.Enabled && retry.MaxUnstarted > 0,
		completion: scheduler.CompletionConfig{
			Retry: retry.Policy(), Chance: rand.Float64,
		},
	}
}

// acts are the actions that clients may request over HTTP.
func (e *Engine) acts() *triage.Triage {
	return triage.New(triage.Config{
		Source: "attune-executor http", HeartbeatStaleAfter: e.cfg.Executor.StaleAfter(),
		WithoutStats: !e.cfg.Executor.Queue.EnableMetrics,
	}, e.query, e.relay).With(e.broker).WithKeyring(e.keys)
}

func (e *Engine) consume(queue, tag string, prefetch, maxBatch int) *broker.Consumer {
	consumer := e.broker.Consume(broker.ConsumerConfig{
		Queue: queue, Tag: tag, Prefetch: prefetch, MaxBatch: maxBatch, Await: e.gate.Enter, Restore: e.declare,
	})
	e.consumers[queue] = consumer
	return consumer
}

// Start starts the replica. The database must have been migrated; if the broker is away, the
// replica connects in the background.
func (e *Engine) Start(ctx context.Context) error {
	if err := e.check(ctx); err != nil {
		e.close()
		return err
	}
	if err := e.services.Start(ctx); err != nil {
		e.close()
		return fmt.Errorf("start the engine: %w", err)
	}
	e.logger.InfoContext(ctx, "Engine started", "http", e.http.Addr(), "schedulers", e.lanes)
	return nil
}

// Stop drains and stops the replica: it stops deliveries, finishes the batch in flight and flushes
// the outbox. It may be called at any time and any number of times.
func (e *Engine) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Executor.ShutdownTimeout)
	defer cancel()
	err := e.services.Stop(ctx)
	e.close()
	if err != nil {
		return fmt.Errorf("stop the engine: %w", err)
	}
	e.logger.InfoContext(ctx, "Engine stopped")
	return nil
}

func (e *Engine) close() {
	e.store.Close()
	e.query.Close()
}

// ID is the replica's id, new for every start.
func (e *Engine) ID() uuid.UUID { return e.id }

// Addr is the replica's HTTP address, empty without HTTP.
func (e *Engine) Addr() string { return e.http.Addr() }

// unsure reports that heartbeats and ages prove nothing: the database was unreachable at times, or
// refused reports.
func (e *Engine) unsure() bool {
	return e.outages.Unsure() || e.gate.Unsure(e.cfg.Executor.StaleAfter())
}

// dispatchesDelayed reports that dispatches may not have reached workers yet: while the broker is
// away, and afterwards for as long as the delivery of the backlog may take.
func (e *Engine) dispatchesDelayed() bool {
	return e.broker.ConnectedFor() < min(time.Minute, e.cfg.Executor.ScheduledTimeout/2)
}
