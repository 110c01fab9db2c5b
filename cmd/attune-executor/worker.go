package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/api"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/core/worker"
	"github.com/attune-go/attune/core/worker/setup"
	"github.com/attune-go/attune/migrations"
)

// workerGoodbye is how long a worker may write and announce its ends after its shutdown timeout.
const workerGoodbye = 15 * time.Second

func newWorkerCommand(a *app) *cobra.Command {
	var (
		name        string
		concurrency int
		metrics     string
		packs       string
		replace     bool
	)
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Run a worker until SIGTERM or SIGINT",
		Long: "Run a worker until SIGTERM or SIGINT: it registers, sends heartbeats and runs actions. These are the\n" +
			"files of packs from --packs (PACKS/PACK/actions/ENTRY_POINT), shell code, and without files core.echo,\n" +
			"core.noop, core.sleep and core.fail. Each worker needs a name of its own: beside a living process with\n" +
			"the name it does not start (exit code 3). --replace takes the name over, and abandons what runs there.\n" +
			"The first signal drains: the worker takes no new work, and running executions may end within\n" +
			"worker.shutdown_timeout.",
		Example: "  attune-executor worker --name worker-1 --concurrency 20\n" +
			"  attune-executor worker --packs ./packs\n" +
			"  ATTUNE__WORKER__LABELS__ZONE=a attune-executor worker --metrics 127.0.0.1:9102",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.worker(cmd, metrics, replace, func(cfg *config.Worker) error {
				if name != "" {
					cfg.Name = name
				}
				if cmd.Flags().Changed("concurrency") {
					if concurrency < 1 {
						return usageErrorf("--concurrency must be at least 1")
					}
					cfg.MaxConcurrentTasks = concurrency
				}
				if packs == "" {
					return nil
				}
				if info, err := os.Stat(packs); err != nil || !info.IsDir() {
					return usageErrorf("--packs %s is not a folder", packs)
				}
				cfg.PacksDir = packs
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "the worker's name (default worker.name, else worker-HOSTNAME)")
	cmd.Flags().IntVar(&concurrency, "concurrency", 0,
		"how many executions run at once (default worker.max_concurrent_tasks)")
	cmd.Flags().StringVar(&packs, "packs", "",
		"the folder that holds the packs (default worker.packs_dir, else packs_base_dir)")
	cmd.Flags().BoolVar(&replace, "replace", false,
		"take the name from a living process; its running executions are abandoned")
	cmd.Flags().StringVar(&metrics, "metrics", "",
		"serve /healthz, /readyz and /metrics on this address; empty for none")
	return cmd
}

func (a *app) worker(cmd *cobra.Command, metrics string, replace bool, adjust func(*config.Worker) error) error {
	collectRarely()
	a.logAsService()
	logger, cfg, err := a.configure(cmd.Context(), "info")
	if err != nil {
		return err
	}
	if err := adjust(&cfg.Worker); err != nil {
		return err
	}
	logger = withNames(logger, cfg)
	want := store.Configured(cfg, "attune-executor worker")
	want.MaxConnections, want.MinConnections = cfg.Database.MaxConnections, cfg.Database.MinConnections
	want.HotPath = true
	st, err := openStore(cmd.Context(), cfg, want, logger)
	if err != nil {
		return err
	}
	defer st.Close()
	if _, err := migrations.Fits(cmd.Context(), st.Pool(), cfg.Database.Schema); err != nil {
		if unfit, ok := errors.AsType[*migrations.UnfitError](err); ok {
			return &exitError{exitRefused, unfit}
		}
		return err
	}
	registry := telemetry.NewRegistry()
	wire := brokerConfig(cfg, "attune-executor worker "+cfg.Worker.Name)
	wire.Trials = st
	link := broker.New(wire, logger, broker.NewMetrics(registry))
	var server *api.Server
	own, err := setup.Config(cfg, readBuildInfo().Version)
	if err != nil {
		return err
	}
	if own.Keyring, err = secret.NewKeyring(cfg.Security.EncryptionKey); err != nil {
		return usageErrorf("%w", err)
	}
	if err := worker.HideSecrets(); err != nil {
		logger.WarnContext(cmd.Context(), "Actions of the same user can read the worker's memory", "error", err)
	}
	limitMemory(own)
	own.Replace = replace
	own.Tokens = secret.NewSigner([]byte(cfg.Security.JWTSecret))
	own.HealthURL = func() string { return setup.HealthURL(server.Addr(), cfg.Worker.Host) }
	w, err := worker.New(own,
		worker.Deps{Broker: link, Store: st, Logger: logger, Metrics: worker.NewMetrics(registry)})
	if err != nil {
		return usageErrorf("configure the worker: %w", err)
	}
	var group supervise.Group
	server = workerHTTP(metrics, api.Deps{
		Gatherer: registry, Logger: logger, TokensFile: cfg.Executor.HTTP.TokensFile,
		Rates: api.Rates{
			PerToken: cfg.Executor.HTTP.RateLimit, Unauthorized: cfg.Executor.HTTP.UnauthorizedRateLimit,
		},
		About: func() map[string]any {
			return map[string]any{"worker_id": w.ID(), "worker": w.Name(), "health": w.Health()}
		},
	}, st, link, w.Health)
	group.Add("http", server)
	group.Add("broker", link)
	group.Add("worker", w)
	return supervise.RunUntilSignal(cmd.Context(), logger, cfg.Worker.ShutdownTimeout+workerGoodbye,
		supervise.Foreground{
			Start: func(ctx context.Context) error {
				err := group.Start(ctx)
				if taken, ok := errors.AsType[*worker.TakenError](err); ok {
					return refusedErrorf("%w: give this worker another --name or stop the other one; --replace takes "+
						"the name over and abandons what runs there", taken)
				}
				if err != nil {
					return err
				}
				logger.InfoContext(ctx, "Worker started", "worker", w.Name(), "worker_id", w.ID(), "http",
					server.Addr())
				return nil
			},
			Stop: func(ctx context.Context) error {
				logger.InfoContext(ctx, "Worker shutting down gracefully...") // this line and the next are published
				err := group.Stop(ctx)
				if err == nil {
					logger.InfoContext(ctx, "Worker shutdown complete")
				}
				return err
			},
			Done: w.Done(),
			Why:  "another process has taken the name of worker " + w.Name(),
		})
}

// limitMemory collects garbage earlier when the outputs of all executions, and their results, fill
// their bounds. GOMEMLIMIT in the environment wins.
func limitMemory(cfg worker.Config) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	outputs := int64(cfg.MaxConcurrent) * (cfg.MaxStdoutBytes + cfg.MaxStderrBytes)
	debug.SetMemoryLimit(max(384<<20, outputs+6*cfg.MaxResultBytes))
}

func workerHTTP(address string, deps api.Deps, st *store.Store, link *broker.Broker,
	health func() placement.Report,
) *api.Server {
	deps.Setting = "--metrics"
	deps.Ready = func(ctx context.Context) []api.Check {
		state, trouble := link.State(), link.Trouble().String()
		database := store.Trouble(st.Check(ctx)).String()
		checks := []api.Check{
			{Name: "database", OK: database == "", Detail: database},
			{
				Name: "broker", OK: state == broker.StateConnected && trouble == "",
				Detail: cmp.Or(trouble, state.String()),
			},
		}
		if trouble := health().Trouble; trouble != "" {
			checks = append(checks, api.Check{Name: "actions", Detail: trouble})
		}
		return checks
	}
	return api.New(address, deps)
}
