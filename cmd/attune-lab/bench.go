package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/lab/devstack"
	"github.com/attune-go/attune/lab/measure"
)

// benchOptions are the flags of the bench command.
type benchOptions struct {
	one   measure.Config
	quick bool
	dir   string
	cpu   string
}

func newBenchCommand(a *app) *cobra.Command {
	var o benchOptions
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure executions a second and latencies on private servers",
		Long: "Start a private, durable PostgreSQL and RabbitMQ, run engines and workers against them, and print\n" +
			"the measurements with their settings: for every standard profile, or for the one that --executions or\n" +
			"--profile selects. Do not use the machine for anything else meanwhile.",
		Example: "  attune-lab bench\n" +
			"  attune-lab bench --executions 20000 --actions 1 --limit 10 --replicas 3 -o json",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.benchCommand(cmd, o) },
	}
	flags := cmd.Flags()
	flags.IntVar(&o.one.Executions, "executions", 0, "executions to run; 0 measures the standard profiles")
	flags.IntVar(&o.one.Actions, "actions", 1, "actions they are spread over")
	flags.IntVar(&o.one.Limit, "limit", 0, "executions at once per action; 0 means no limit")
	flags.IntVar(&o.one.Replicas, "replicas", 1, "engine replicas")
	flags.IntVar(&o.one.Schedulers, "schedulers", 0, "schedulers of a replica; 0 means as many as by default")
	flags.IntVar(&o.one.Workers, "workers", 2, "workers")
	flags.IntVar(&o.one.Concurrency, "concurrency", 50, "executions a worker runs at once")
	flags.Float64Var(&o.one.Rate, "rate", 0, "requests a second; 0 sends all at once")
	flags.StringVar(&o.one.Profile, "profile", "custom", "measure only this standard profile, or a name for the report")
	flags.BoolVar(&o.quick, "quick", false,
		"a tenth of the executions of every standard profile; the figures are rough")
	flags.StringVar(&o.cpu, "cpuprofile", "", "write a CPU profile of engines and workers to this file")
	flags.StringVar(&o.dir, "dir", filepath.Join(".attune", "bench"), "folder of the servers")
	return cmd
}

func (a *app) benchCommand(cmd *cobra.Command, o benchOptions) error {
	profiles, err := o.profiles(cmd)
	if err != nil {
		return err
	}
	stop, err := measure.ProfileCPU(o.cpu)
	if err != nil {
		return err
	}
	defer stop()
	var all benchReport
	cfg := devstack.Config{Dir: o.dir, Durable: true}
	err = a.onServers(cmd, cfg, "warn", func(ctx context.Context, stack *devstack.Stack) (err error) {
		note := func(format string, args ...any) { cmd.PrintErrf(format+"\n", args...) }
		all.WholeSystem, err = measure.All(ctx, profiles, measure.ServersOf(stack), stack.Logger(), note)
		return err
	})
	if err != nil {
		return err
	}
	return a.print(cmd, all, func(w io.Writer) { measure.Print(w, all.WholeSystem) })
}

func (o benchOptions) profiles(cmd *cobra.Command) ([]measure.Config, error) {
	profiles := measure.Profiles()
	switch {
	case o.one.Executions > 0:
		profiles = []measure.Config{o.one}
	case cmd.Flags().Changed("profile"):
		var names []string
		for _, p := range profiles {
			names = append(names, fmt.Sprintf("%q", p.Profile))
		}
		profiles = slices.DeleteFunc(profiles, func(p measure.Config) bool { return p.Profile != o.one.Profile })
		if len(profiles) == 0 {
			return nil, usageErrorf("there is no profile %q; the profiles are %s", o.one.Profile, names)
		}
	case o.quick:
		for i := range profiles {
			profiles[i].Executions /= 10
		}
	}
	for i := range profiles {
		profiles[i].Schedulers = o.one.Schedulers
	}
	for _, p := range profiles {
		if p.Actions < 1 || p.Replicas < 1 || p.Workers < 1 || p.Concurrency < 1 || p.Limit < 0 || p.Schedulers < 0 {
			return nil, usageErrorf("actions, replicas, workers and concurrency must be at least 1")
		}
	}
	return profiles, nil
}

// benchReport is the output of `bench`.
type benchReport struct {
	WholeSystem []measure.Report `json:"whole_system"`
}
