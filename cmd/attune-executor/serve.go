package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/api"
	"github.com/attune-go/attune/core/engine"
	"github.com/attune-go/attune/core/store"
)

func newServeCommand(a *app) *cobra.Command {
	var beside bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run one replica of the engine until SIGTERM or SIGINT",
		Long: "Run one replica of the engine until SIGTERM or SIGINT. Any number of replicas may run at the same time.\n" +
			"The first signal drains: consuming stops, batches under way are finished, what was committed is published.\n" +
			"A second signal, or executor.shutdown_timeout, ends it at once; nothing is lost either way.\n\n" +
			"It does not start while another executor consumes from the same queues.",
		Example: "  attune-executor serve --config attune.yaml\n  ATTUNE__EXECUTOR__HTTP__LISTEN=127.0.0.1:0 attune-executor serve",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.serve(cmd, beside) },
	}
	cmd.Flags().BoolVar(&beside, "beside", false, "start although another executor consumes from the same queues")
	return cmd
}

// collectRarely trades memory, of which these programs use little, for time: a
// live heap of a few megabytes is collected at five times its size instead of
// twice, which saved a quarter of the processor time of a busy replica. Who sets
// GOGC has his way.
func collectRarely() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

func (a *app) serve(cmd *cobra.Command, beside bool) error {
	collectRarely()
	logger, err := a.logger("info")
	if err != nil {
		return err
	}
	cfg, err := a.load(cmd.Context(), logger)
	if err != nil {
		return err
	}
	logger = withNames(logger, cfg)
	replica, err := engine.New(cmd.Context(), cfg, engine.Deps{Logger: logger, Version: readBuildInfo().Version, Beside: beside})
	if err != nil {
		return usageErrorf("%w: correct database.url (%s)", err, cfg.Source("database.url"))
	}
	err = runUntilSignal(cmd.Context(), logger, cfg.Executor.ShutdownTimeout, service{
		start: replica.Start, stop: replica.Stop,
	})
	var other *engine.OtherExecutorError
	switch {
	case errors.As(err, &other):
		return &exitError{exitRefused, other}
	case errors.Is(err, api.ErrAddressTaken):
		return &exitError{exitFailed, err}
	case err != nil && store.ClassOf(err) == store.ClassUnreachable:
		return unreachable(cfg, err)
	}
	return err
}

// service is something to run in the foreground.
type service struct {
	start func(ctx context.Context) error
	stop  func(ctx context.Context) error
	done  <-chan struct{} // closed when it ends by itself; may be nil
	why   string          // says why it would
}

// errSignal is the cause of a context that a signal ended. Only a second
// signal is ever shown.
var errSignal = errors.New("asked a second time to stop at once")

// runUntilSignal starts s, waits for SIGTERM or SIGINT and stops s within the
// timeout. A signal during the start interrupts it, a second one the stop.
func runUntilSignal(ctx context.Context, logger *slog.Logger, timeout time.Duration, s service) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)

	startCtx, stopStart := signalled(ctx, signals, 0)
	defer stopStart()
	if err := s.start(startCtx); err != nil {
		if errors.Is(context.Cause(startCtx), errSignal) {
			logger.InfoContext(ctx, "Stopped before the start was complete")
			return nil
		}
		return err
	}
	alone := false
	select {
	case <-startCtx.Done(): // a signal, or the end of ctx
	case <-s.done:
		alone = true
		stopStart()
	}
	logger.InfoContext(ctx, "Stopping", "within", timeout.String())

	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	stopCtx, release := signalled(bounded, signals, sameRequest)
	defer release()
	if err := s.stop(stopCtx); err != nil {
		return fmt.Errorf("stop in order: %w: nothing is lost, another replica or the next start goes on", err)
	}
	if alone {
		return refusedErrorf("it ended by itself: %s", s.why)
	}
	logger.InfoContext(ctx, "Stopped")
	return nil
}

// sameRequest is how long after a signal another one is the same request:
// timeout(1), make and shells signal a process and then its whole group.
const sameRequest = 300 * time.Millisecond

// signalled returns a context that the next signal ends, not counting those of
// the first moment.
func signalled(parent context.Context, signals <-chan os.Signal, deaf time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	go func() {
		for begin := time.Now(); ; {
			select {
			case <-signals:
				if time.Since(begin) >= deaf {
					cancel(errSignal)
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}
