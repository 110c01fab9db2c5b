package main

import (
	"context"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/api"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/core/worker"
	"github.com/attune-go/attune/core/worker/builtin"
)

// workerGoodbye is what a worker may take beyond its shutdown timeout to write
// and announce the ends it knows.
const workerGoodbye = 15 * time.Second

func newWorkerCommand(a *app) *cobra.Command {
	var (
		name        string
		concurrency int
		metrics     string
	)
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Run a worker until SIGTERM or SIGINT",
		Long: "Run a worker until SIGTERM or SIGINT: it registers, sends heartbeats and runs actions, those of the core pack without\n" +
			"any file. A name is one worker: who starts with it replaces who had it, so give each worker of a host its own --name.\n" +
			"The first signal drains: no new work is taken, and what runs may end within worker.shutdown_timeout.",
		Example: "  attune-executor worker --name worker-1 --concurrency 20\n" +
			"  ATTUNE__WORKER__LABELS__ZONE=a attune-executor worker --metrics 127.0.0.1:9102",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.worker(cmd, metrics, func(cfg *config.Worker) error {
				if name != "" {
					cfg.Name = name
				}
				if cmd.Flags().Changed("concurrency") {
					if concurrency < 1 {
						return usageErrorf("--concurrency must be at least 1")
					}
					cfg.MaxConcurrentTasks = concurrency
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "the worker's name (default worker.name, else worker-HOSTNAME)")
	cmd.Flags().IntVar(&concurrency, "concurrency", 0, "how many executions run at once (default worker.max_concurrent_tasks)")
	cmd.Flags().StringVar(&metrics, "metrics", "", "serve /healthz, /readyz and /metrics on this address; nowhere if empty")
	return cmd
}

func (a *app) worker(cmd *cobra.Command, metrics string, adjust func(*config.Worker) error) error {
	collectRarely()
	logger, err := a.logger("info")
	if err != nil {
		return err
	}
	cfg, err := a.load(cmd.Context(), logger)
	if err != nil {
		return err
	}
	if err := adjust(&cfg.Worker); err != nil {
		return err
	}
	st, err := openStore(cmd.Context(), cfg, store.Config{
		MaxConnections: cfg.Database.MaxConnections, ApplicationName: "attune-executor worker", HotPath: true,
	}, logger)
	if err != nil {
		return err
	}
	defer st.Close()
	registry := telemetry.NewRegistry()
	link := broker.New(brokerConfig(cfg, "attune-executor worker "+cfg.Worker.Name), logger, broker.NewMetrics(registry))
	var server *api.Server
	own := workerConfig(cfg)
	own.HealthURL = func() string { return healthURL(server.Addr(), cfg.Worker.Host) }
	w, err := worker.New(own, worker.Deps{Broker: link, Store: st, Logger: logger, Metrics: worker.NewMetrics(registry)})
	if err != nil {
		return usageErrorf("configure the worker: %w", err)
	}
	var group supervise.Group
	server = workerHTTP(metrics, api.Deps{
		Gatherer: registry, Logger: logger, TokensFile: cfg.Executor.HTTP.TokensFile,
		About: func() map[string]any {
			return map[string]any{"worker_id": w.ID(), "worker": w.Name(), "health": w.Health()}
		},
	}, st, link)
	group.Add("http", server)
	group.Add("broker", link)
	group.Add("worker", w)
	return runUntilSignal(cmd.Context(), logger, cfg.Worker.ShutdownTimeout+workerGoodbye, service{
		start: func(ctx context.Context) error {
			if err := group.Start(ctx); err != nil {
				return err
			}
			logger.InfoContext(ctx, "Worker started", "worker", w.Name(), "worker_id", w.ID(), "http", server.Addr())
			return nil
		},
		stop: group.Stop,
		done: w.Done(),
		why:  "another process has taken the name of worker " + w.Name(),
	})
}

// healthURL is where others find the worker's health endpoint: a listener on all
// addresses is found by the host's name.
func healthURL(listens, host string) string {
	at, port, err := net.SplitHostPort(listens)
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(at); ip == nil || ip.IsUnspecified() {
		if host == "" {
			host, _ = os.Hostname()
		}
		at = host
	}
	return "http://" + net.JoinHostPort(at, port) + "/healthz"
}

// workerHTTP serves whether the worker is ready, and its metrics.
func workerHTTP(address string, deps api.Deps, st *store.Store, link *broker.Broker) *api.Server {
	deps.Setting = "--metrics"
	deps.Ready = func(ctx context.Context) []api.Check {
		state := link.State()
		database := api.Check{Name: "database", OK: true}
		if err := st.Ping(ctx); err != nil {
			database.OK, database.Detail = false, err.Error()
		}
		return []api.Check{database, {Name: "broker", OK: state == broker.StateConnected, Detail: state.String()}}
	}
	return api.New(address, deps)
}

func workerConfig(cfg *config.Config) worker.Config {
	c := cfg.Worker
	taints := make([]worker.Taint, len(c.Taints))
	for i, taint := range c.Taints {
		taints[i] = worker.Taint{Key: taint.Key, Value: taint.Value, Effect: taint.Effect}
	}
	return worker.Config{
		Actions: builtin.Actions(), ArtifactsDir: cfg.ArtifactsDir, Capabilities: c.Capabilities,
		HeartbeatInterval: c.HeartbeatInterval, Host: c.Host, Port: c.Port, Interpreters: c.Interpreters, Labels: c.Labels,
		MaxConcurrent: c.MaxConcurrentTasks, MaxStdoutBytes: c.MaxStdoutBytes, MaxStderrBytes: c.MaxStderrBytes,
		Name: c.Name, PacksDir: c.PacksDir, QueueTTL: cfg.MessageQueue.RabbitMQ.WorkerQueueTTL, Runtimes: c.Runtimes,
		ShutdownTimeout: c.ShutdownTimeout, Taints: taints, TaskTimeout: c.TaskTimeout, Type: c.Type,
		Version: readBuildInfo().Version,
	}
}
