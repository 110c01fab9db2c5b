package main

import (
	"errors"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/api"
	"github.com/attune-go/attune/core/engine"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/migrations"
)

func newServeCommand(a *app) *cobra.Command {
	var beside bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run one replica of the engine until SIGTERM or SIGINT",
		Long: "Run one replica of the engine until SIGTERM or SIGINT. Any number of replicas may run at the same\n" +
			"time.\n" +
			"The first signal drains: the replica stops consuming, finishes its batches and publishes committed\n" +
			"messages. A second signal, or executor.shutdown_timeout, ends it at once; nothing is lost either\n" +
			"way.\n\n" +
			"It does not start while another executor consumes from the same queues, or on a schema that is too old\n" +
			"or too new for this program.",
		Example: "  attune-executor serve --config attune.yaml\n" +
			"  ATTUNE__EXECUTOR__HTTP__LISTEN=127.0.0.1:0 attune-executor serve",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd, beside) },
	}
	cmd.Flags().BoolVar(&beside, "beside", false, "start although another executor consumes from the same queues")
	return cmd
}

// collectRarely trades memory for time: a heap of a few megabytes is collected at five times its
// size instead of twice, which saves a quarter of the CPU time of a busy replica. A heap of hundreds
// of megabytes, after large messages and results, is collected earlier. GOGC and GOMEMLIMIT in the
// environment win.
func collectRarely() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(256 << 20)
	}
}

func (a *app) serve(cmd *cobra.Command, beside bool) error {
	collectRarely()
	a.logAsService()
	logger, cfg, err := a.configure(cmd.Context(), "info")
	if err != nil {
		return err
	}
	logger = withNames(logger, cfg)
	replica, err := engine.New(cmd.Context(), cfg,
		engine.Deps{Logger: logger, Version: readBuildInfo().Version, Beside: beside})
	if err != nil {
		return usageErrorf("%w: correct database.url (%s)", err, cfg.Source("database.url"))
	}
	err = supervise.RunUntilSignal(cmd.Context(), logger, cfg.Executor.ShutdownTimeout, supervise.Foreground{
		Start: replica.Start, Stop: replica.Stop,
	})
	var other *engine.OtherExecutorError
	var unfit *migrations.UnfitError
	switch {
	case errors.As(err, &unfit):
		return &exitError{exitRefused, unfit}
	case errors.As(err, &other):
		return &exitError{exitRefused, other}
	case errors.Is(err, api.ErrAddressTaken):
		return &exitError{exitFailed, err}
	case store.IsAway(err):
		return unreachable(cfg, err)
	}
	return err
}
