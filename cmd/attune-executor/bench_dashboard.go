package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/bench/dashboard"
	"github.com/attune-go/attune/core/devstack"
)

// measureDashboard has PostgreSQL count the time of statements, and reads what the
// dashboard reads from a large installation.
func measureDashboard(ctx context.Context, cmd *cobra.Command, o benchOptions, stack *devstack.Stack, logger *slog.Logger) (report dashboard.Report, err error) {
	if err := stack.KillBroker(ctx); err != nil {
		return report, fmt.Errorf("stop the broker, which is not measured: %w", err)
	}
	if err := dashboard.Prepare(ctx, stack.DatabaseURL()); err != nil {
		return report, err
	}
	if err := errors.Join(stack.KillPostgres(ctx), stack.StartPostgres(ctx)); err != nil {
		return report, fmt.Errorf("start PostgreSQL with other settings: %w", err)
	}
	size := dashboard.Full
	if o.path.Quick {
		size = dashboard.Size{Executions: size.Executions / 10, Queued: size.Queued / 10}
	}
	progress := func(format string, args ...any) { cmd.PrintErrf("dashboard, "+format+"\n", args...) }
	if report, err = dashboard.Run(ctx, dashboard.Options{Size: size, Progress: progress}, stack.DatabaseURL(), logger); err != nil {
		return report, fmt.Errorf("measure the dashboard's readings: %w", err)
	}
	return report, nil
}
