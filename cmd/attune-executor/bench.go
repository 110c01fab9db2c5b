package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/bench"
	"github.com/attune-go/attune/core/devstack"
)

func newBenchCommand(a *app) *cobra.Command {
	var (
		one bench.Config
		dir string
		cpu string
	)
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure executions a second and latencies on private servers",
		Long: "Start a private, durable PostgreSQL and RabbitMQ, run engines and workers against them, and print what was measured\n" +
			"with the settings it was measured with. Without --executions the standard profiles are measured.",
		Example: "  attune-executor bench\n  attune-executor bench --executions 20000 --actions 1 --limit 10 --replicas 3 -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			profiles := bench.Profiles()
			if one.Executions > 0 {
				profiles = []bench.Config{one}
			} else if cmd.Flags().Changed("profile") {
				if profiles = named(profiles, one.Profile); len(profiles) == 0 {
					return usageErrorf("there is no profile %q; the profiles are %s", one.Profile, profileNames())
				}
			}
			if cpu != "" {
				stop, err := profileCPU(cpu)
				if err != nil {
					return err
				}
				defer stop()
			}
			return a.bench(cmd, dir, profiles)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&one.Executions, "executions", 0, "executions to run; 0 measures the standard profiles")
	flags.IntVar(&one.Actions, "actions", 1, "actions they are spread over")
	flags.IntVar(&one.Limit, "limit", 0, "executions at once per action; 0 means no limit")
	flags.IntVar(&one.Replicas, "replicas", 1, "engine replicas")
	flags.IntVar(&one.Workers, "workers", 2, "workers")
	flags.IntVar(&one.Concurrency, "concurrency", 50, "executions a worker runs at once")
	flags.Float64Var(&one.Rate, "rate", 0, "requests a second; 0 sends all at once")
	flags.StringVar(&one.Profile, "profile", "custom", "measure only this standard profile, or a name for the report")
	flags.StringVar(&cpu, "cpuprofile", "", "write a CPU profile of engines and workers to this file")
	flags.StringVar(&dir, "dir", filepath.Join(".attune", "bench"), "folder of the servers")
	return cmd
}

// profileCPU begins a profile and returns how to end it.
func profileCPU(path string) (stop func(), err error) {
	file, err := os.Create(path)
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

func named(profiles []bench.Config, name string) []bench.Config {
	for _, p := range profiles {
		if p.Profile == name {
			return []bench.Config{p}
		}
	}
	return nil
}

func profileNames() (names []string) {
	for _, p := range bench.Profiles() {
		names = append(names, fmt.Sprintf("%q", p.Profile))
	}
	return names
}

func (a *app) bench(cmd *cobra.Command, dir string, profiles []bench.Config) (err error) {
	for _, p := range profiles {
		if p.Actions < 1 || p.Replicas < 1 || p.Workers < 1 || p.Concurrency < 1 || p.Limit < 0 {
			return usageErrorf("actions, replicas, workers and concurrency must be at least 1")
		}
	}
	logger, err := a.logger("warn")
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	stack, err := devstack.Up(ctx, devstack.Config{Dir: dir, Durable: true, Logger: logger})
	if err != nil {
		return fmt.Errorf("start the servers: %w", err)
	}
	defer func() { err = errors.Join(err, stack.Reset(context.WithoutCancel(ctx))) }()
	servers := bench.Servers{
		DatabaseURL: stack.DatabaseURL(), Schema: "attune", AMQPURL: stack.AMQPURL(), ManagementURL: stack.ManagementURL(),
	}
	var reports []bench.Report
	for _, p := range profiles {
		cmd.PrintErrf("measuring %s: %d executions\n", p.Profile, p.Executions)
		report, err := bench.Run(ctx, p, servers, logger)
		if err != nil {
			return fmt.Errorf("measure %q: %w", p.Profile, err)
		}
		reports = append(reports, report)
	}
	return a.print(cmd, reports, func(w io.Writer) error { bench.Print(w, reports); return nil })
}
