package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/bench"
	"github.com/attune-go/attune/core/bench/dashboard"
	"github.com/attune-go/attune/core/bench/datapath"
	"github.com/attune-go/attune/core/devstack"
)

// benchOptions are the flags of the bench command.
type benchOptions struct {
	one      bench.Config
	dir      string
	out      string
	cpu      string
	dataPath bool
	reads    bool
	short    bool
	database string
	path     datapath.Options
}

func newBenchCommand(a *app) *cobra.Command {
	var o benchOptions
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure executions a second and latencies on private servers",
		Long: "Start a private, durable PostgreSQL and RabbitMQ, run engines and workers against them, and print what was measured\n" +
			"with the settings it was measured with. Then measure the path through the database alone, without a broker, beside a\n" +
			"floor and a one-at-a-time design. With --data-path only the latter is measured; with --executions or --profile only\n" +
			"the whole system; with --dashboard only what the dashboard's readings cost a database of 1,000,000 executions. Do nothing else with the machine meanwhile: what others use of it is measured and reported.\n" +
			"With --short only two scenarios of the data path run, for some seconds, and the exit code is 1 if the engine is slower than recorded.",
		Example: "  attune-executor bench\n  attune-executor bench --executions 20000 --actions 1 --limit 10 --replicas 3 -o json\n" +
			"  attune-executor bench --short\n  attune-executor bench --data-path --out docs/performance\n  attune-executor bench --data-path --scenario hot --scenario d1-hot --rounds 5",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.benchCommand(cmd, o) },
	}
	flags := cmd.Flags()
	flags.IntVar(&o.one.Executions, "executions", 0, "executions to run; 0 measures the standard profiles")
	flags.IntVar(&o.one.Actions, "actions", 1, "actions they are spread over")
	flags.IntVar(&o.one.Limit, "limit", 0, "executions at once per action; 0 means no limit")
	flags.IntVar(&o.one.Replicas, "replicas", 1, "engine replicas")
	flags.IntVar(&o.one.Schedulers, "schedulers", 0, "schedulers of a replica, also on the data path; 0 means as many as by default")
	flags.IntVar(&o.one.Workers, "workers", 2, "workers")
	flags.IntVar(&o.one.Concurrency, "concurrency", 50, "executions a worker runs at once")
	flags.Float64Var(&o.one.Rate, "rate", 0, "requests a second; 0 sends all at once")
	flags.StringVar(&o.one.Profile, "profile", "custom", "measure only this standard profile, or a name for the report")
	flags.BoolVar(&o.dataPath, "data-path", false, "measure only the path through the database, without a broker")
	flags.BoolVar(&o.reads, "dashboard", false, "measure only what the dashboard's readings cost a large database")
	flags.BoolVar(&o.short, "short", false, "compare only the data path with the one-at-a-time design, and exit with 1 if it is slower than recorded")
	flags.StringVar(&o.database, "database", "", "with --short: URL of a PostgreSQL to measure on, where databases are made and dropped, instead of a private one")
	flags.IntVar(&o.path.Rounds, "rounds", 0, "rounds of every scenario of the data path (default 3, or 1 with --quick)")
	flags.StringArrayVar(&o.path.Scenarios, "scenario", nil, "measure only scenarios of the data path whose names begin so; can be given again")
	flags.BoolVar(&o.path.Quick, "quick", false, "less of everything, within a minute; the figures are rough")
	flags.StringVar(&o.path.Before, "before", "", "another build of this program, measured in turn with this one on the data path")
	flags.StringVar(&o.path.River, "river", "", "the program of core/bench/river, measured in turn with this one on the data path")
	flags.StringVar(&o.out, "out", "", "folder for datapath.json and growth.svg")
	flags.StringVar(&o.cpu, "cpuprofile", "", "write a CPU profile of engines and workers to this file")
	flags.StringVar(&o.dir, "dir", filepath.Join(".attune", "bench"), "folder of the servers")
	return cmd
}

func (a *app) benchCommand(cmd *cobra.Command, o benchOptions) error {
	if o.database != "" && !o.short {
		return usageErrorf("--database needs --short")
	}
	if o.short {
		return a.benchShort(cmd, o)
	}
	o.path.Schedulers = o.one.Schedulers
	profiles, err := o.profiles(cmd)
	if err != nil {
		return err
	}
	if err := o.path.Check(); err != nil {
		return usageErrorf("%s; the scenarios are %s", err, scenarioNames())
	}
	if o.cpu != "" {
		stop, err := profileCPU(o.cpu)
		if err != nil {
			return err
		}
		defer stop()
	}
	return a.bench(cmd, o, profiles)
}

// profiles are the measurements of the whole system that are asked for.
func (o benchOptions) profiles(cmd *cobra.Command) ([]bench.Config, error) {
	profiles := bench.Profiles()
	switch {
	case o.dataPath, o.reads:
		return nil, nil
	case o.one.Executions > 0:
		profiles = []bench.Config{o.one}
	case cmd.Flags().Changed("profile"):
		if profiles = named(profiles, o.one.Profile); len(profiles) == 0 {
			return nil, usageErrorf("there is no profile %q; the profiles are %s", o.one.Profile, profileNames())
		}
	case o.path.Quick:
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

// wantsDataPath says whether the path through the database is measured.
func (o benchOptions) wantsDataPath(cmd *cobra.Command) bool {
	return o.dataPath || !o.reads && (o.one.Executions == 0 && !cmd.Flags().Changed("profile"))
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

func scenarioNames() string {
	names := []string{"growth"}
	for _, s := range datapath.Scenarios(false) {
		names = append(names, s.Name)
	}
	return strings.Join(names, ", ")
}

// benchReport is everything that one command has measured.
type benchReport struct {
	WholeSystem []bench.Report    `json:"whole_system,omitempty"`
	Goals       []datapath.Goal   `json:"goals,omitempty"` // of the whole system
	DataPath    *datapath.Report  `json:"data_path,omitempty"`
	Dashboard   *dashboard.Report `json:"dashboard,omitempty"`
}

func (r benchReport) print(w io.Writer) {
	if len(r.WholeSystem) > 0 {
		bench.Print(w, r.WholeSystem)
		datapath.PrintGoals(w, r.Goals)
		_, _ = fmt.Fprintln(w)
	}
	if r.DataPath != nil {
		r.DataPath.Print(w)
	}
	if r.Dashboard != nil {
		r.Dashboard.Print(w)
	}
}

func (a *app) bench(cmd *cobra.Command, o benchOptions, profiles []bench.Config) (err error) {
	logger, err := a.logger("warn")
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	stack, err := devstack.Up(ctx, devstack.Config{Dir: o.dir, Durable: true, Logger: logger})
	if err != nil {
		return fmt.Errorf("start the servers: %w", err)
	}
	defer func() { err = errors.Join(err, stack.Reset(context.WithoutCancel(ctx))) }()
	servers := bench.Servers{
		DatabaseURL: stack.DatabaseURL(), Schema: "attune", AMQPURL: stack.AMQPURL(), ManagementURL: stack.ManagementURL(),
	}
	var all benchReport
	var floor datapath.Floor
	if len(profiles) > 0 {
		if floor, err = datapath.Floor16(ctx, stack.DatabaseURL(), logger); err != nil {
			return err
		}
	}
	for _, p := range profiles {
		cmd.PrintErrf("measuring %s: %d executions\n", p.Profile, p.Executions)
		report, err := bench.Run(ctx, p, servers, logger)
		if err != nil {
			return fmt.Errorf("measure %q: %w", p.Profile, err)
		}
		all.WholeSystem = append(all.WholeSystem, report)
	}
	all.Goals = bench.Goals(all.WholeSystem, floor.PerSecond)
	if o.reads {
		report, err := measureDashboard(ctx, cmd, o, stack, logger)
		if err != nil {
			return err
		}
		all.Dashboard = &report
	}
	if o.wantsDataPath(cmd) {
		report, err := measureDataPath(ctx, cmd, o, stack, logger)
		if err != nil {
			return err
		}
		all.DataPath = &report
	}
	return a.print(cmd, all, func(w io.Writer) error { all.print(w); return nil })
}

// measureDataPath takes the broker away, gives PostgreSQL room, and measures.
func measureDataPath(
	ctx context.Context, cmd *cobra.Command, o benchOptions, stack *devstack.Stack, logger *slog.Logger,
) (report datapath.Report, err error) {
	if err := stack.KillBroker(ctx); err != nil {
		return report, fmt.Errorf("stop the broker, which is not measured: %w", err)
	}
	if err := datapath.Prepare(ctx, stack.DatabaseURL()); err != nil {
		return report, err
	}
	if err := errors.Join(stack.KillPostgres(ctx), stack.StartPostgres(ctx)); err != nil {
		return report, fmt.Errorf("start PostgreSQL with other settings: %w", err)
	}
	o.path.BeforeDir = o.dir + "-before"
	o.path.Progress = func(format string, args ...any) { cmd.PrintErrf("data path, "+format+"\n", args...) }
	if report, err = datapath.Run(ctx, o.path, stack.DatabaseURL(), logger); err != nil {
		return report, fmt.Errorf("measure the data path: %w", err)
	}
	if o.out == "" {
		return report, nil
	}
	return report, report.Save(o.out)
}
