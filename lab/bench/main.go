// Command bench measures the engine on private, durable servers: the whole system, the path of executions
// through the database with its yardsticks, the floor of its cost, and the cost of the dashboard's readings.
// `make bench` builds it as bin/attune-bench.
//
//	attune-bench                               the whole system, the floor, then the data path
//	attune-bench --data-path --scenario hot    one part of it
//	attune-bench --short                       some seconds; exits with 1 if the engine is slower than recorded
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/jackc/pgx/v5"

	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/lab/bench/dashboard"
	"github.com/attune-go/attune/lab/bench/datapath"
	"github.com/attune-go/attune/lab/devstack"
	"github.com/attune-go/attune/lab/measure"
)

// options are the flags.
type options struct {
	dataPath, floor, dashboard, short bool // measure only this

	path     datapath.Options
	database string
	dir      string
	out      string
	format   string
	cpu      string
}

// errUsage reports wrong flags.
var errUsage = errors.New("wrong usage")

func main() {
	ctx, stop := supervise.Interruptible(context.Background())
	o, err := parse(os.Args[1:])
	if err == nil {
		err = o.run(ctx, os.Stdout, os.Stderr)
	}
	stop()
	if err == nil {
		return
	}
	_, _ = fmt.Fprintf(os.Stderr, "error: %v\n", err)
	if errors.Is(err, errUsage) {
		os.Exit(2)
	}
	os.Exit(1)
}

// parse reads and checks the flags before any server starts.
func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("attune-bench", flag.ExitOnError)
	flags.BoolVar(&o.dataPath, "data-path", false, "measure only the path through the database, without a broker")
	flags.BoolVar(&o.floor, "floor", false, "measure only the floor program beside the data path")
	flags.BoolVar(&o.dashboard, "dashboard", false, "measure only what the dashboard's readings cost a large database")
	flags.BoolVar(&o.short, "short", false,
		"compare only the data path with the one-at-a-time design, and exit with 1 if it is slower than recorded")
	flags.StringVar(&o.database, "database", "",
		"with --short: `URL` of a PostgreSQL to measure on in place of a private one, in databases of its own")
	flags.BoolVar(&o.path.Quick, "quick", false, "a rough measurement within a minute")
	flags.IntVar(&o.path.Rounds, "rounds", 0,
		"rounds of every scenario of the data path (default 3, or 1 with --quick)")
	flags.Func("scenario", "measure only scenarios of the data path with this `prefix`; can be repeated",
		func(name string) error {
			o.path.Scenarios = append(o.path.Scenarios, name)
			return nil
		})
	flags.IntVar(&o.path.Schedulers, "schedulers", 0, "schedulers of a replica; 0 means the default")
	flags.StringVar(&o.path.Before, "before", "",
		"`program` of another build to measure in turn; attune-system beside it measures the whole system")
	flags.BoolVar(&o.path.River, "river", false, "measure River in turn on the data path")
	flags.StringVar(&o.out, "out", "", "`folder` for datapath.json")
	flags.StringVar(&o.format, "o", "table", "`format` of the report: table or json")
	flags.StringVar(&o.cpu, "cpuprofile", "", "write a CPU profile of engines and workers to this `file`")
	flags.StringVar(&o.dir, "dir", filepath.Join(".attune", "bench"), "`folder` of the servers")
	_ = flags.Parse(args) // exits with 2 on an error
	only := 0
	for _, one := range []bool{o.dataPath, o.floor, o.dashboard, o.short} {
		if one {
			only++
		}
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("%w: what is %q", errUsage, flags.Arg(0))
	case only > 1:
		return o, fmt.Errorf("%w: give one of --data-path, --dashboard, --floor and --short", errUsage)
	case o.database != "" && !o.short:
		return o, fmt.Errorf("%w: --database needs --short", errUsage)
	case o.format != "table" && o.format != "json":
		return o, fmt.Errorf("%w: -o is table or json", errUsage)
	}
	if err := o.path.Check(); err != nil {
		return o, fmt.Errorf("%w: %w; the scenarios are %s", errUsage, err, strings.Join(datapath.Names(), ", "))
	}
	return o, nil
}

// run runs the measurements of the flags and prints the report.
func (o options) run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	logger, err := telemetry.NewLogger(stderr, "warn", "auto")
	if err != nil {
		return err
	}
	stop, err := measure.ProfileCPU(o.cpu)
	if err != nil {
		return err
	}
	defer stop()
	if o.database != "" {
		return o.measureShort(ctx, o.database, stdout, logger)
	}
	cfg := devstack.Config{Dir: o.dir, Durable: true, Logger: logger}
	return devstack.With(ctx, cfg, func(stack *devstack.Stack) error { return o.on(ctx, stack, stdout, stderr) })
}

// on runs the measurements on servers.
func (o options) on(ctx context.Context, stack *devstack.Stack, stdout, stderr io.Writer) (err error) {
	logger := stack.Logger()
	progress := func(format string, args ...any) { _, _ = fmt.Fprintf(stderr, format+"\n", args...) }
	var all report
	switch {
	case o.short:
		if err := stack.KillBroker(ctx); err != nil {
			return fmt.Errorf("stop the unmeasured broker: %w", err)
		}
		return o.measureShort(ctx, stack.DatabaseURL(), stdout, logger)
	case o.dashboard:
		err = all.measureDashboard(ctx, o, stack, progress, logger)
	case o.dataPath:
		err = all.measureDataPath(ctx, o, stack, progress, logger)
	case o.floor:
		err = all.measureFloor(ctx, o, stack, progress, logger)
	default:
		for _, part := range []part{all.measureSystem, all.measureFloor, all.measureDataPath} {
			if err = part(ctx, o, stack, progress, logger); err != nil {
				break
			}
		}
	}
	if err != nil {
		return err
	}
	return o.print(stdout, all, all.print)
}

// print writes a value as JSON or, with table, as a table.
func (o options) print(out io.Writer, value any, table func(io.Writer)) error {
	if o.format == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	table(w)
	return w.Flush()
}

// report is the result of all measurements.
type report struct {
	WholeSystem []measure.Report  `json:"whole_system,omitempty"`
	Goals       []datapath.Goal   `json:"goals,omitempty"` // of the whole system
	Floor       []datapath.Pair   `json:"floor,omitempty"`
	DataPath    *datapath.Report  `json:"data_path,omitempty"`
	Dashboard   *dashboard.Report `json:"dashboard,omitempty"`
}

func (r *report) print(w io.Writer) {
	if len(r.WholeSystem) > 0 {
		measure.Print(w, r.WholeSystem)
		_, _ = fmt.Fprintln(w)
	}
	if len(r.Floor) > 0 {
		datapath.PrintPairs(w, r.Floor)
		_, _ = fmt.Fprintln(w)
	}
	if r.DataPath != nil {
		r.DataPath.Print(w)
	}
	if r.Dashboard != nil {
		r.Dashboard.Print(w)
	}
	goals := slices.Concat(r.Goals, datapath.BudgetGoals(r.Floor))
	if r.DataPath != nil {
		goals = append(goals, r.DataPath.Goals...)
	}
	if len(goals) > 0 {
		_, _ = fmt.Fprintln(w)
		datapath.PrintGoals(w, goals)
	}
}

// part is one part of the measurements.
type part func(context.Context, options, *devstack.Stack, func(string, ...any), *slog.Logger) error

// measureFloor measures the floor program and the product in turn.
func (r *report) measureFloor(
	ctx context.Context, o options, stack *devstack.Stack, progress func(string, ...any), logger *slog.Logger,
) (err error) {
	rounds := cmp.Or(o.path.Rounds, 3)
	progress("measuring the floor program beside the data path: %d laps of each", rounds)
	r.Floor, err = datapath.Pairs(ctx, measure.ServersOf(stack), datapath.Loads(o.path.Quick), rounds, logger)
	if err != nil {
		return fmt.Errorf("measure the floor program: %w", err)
	}
	return nil
}

// measureShort compares the data path with the one-at-a-time design. It also prints ratios that are too low.
func (o options) measureShort(ctx context.Context, databaseURL string, stdout io.Writer, logger *slog.Logger) error {
	list, slower := datapath.Short(ctx, databaseURL, logger)
	if slower != nil && !errors.Is(slower, datapath.ErrSlower) {
		return fmt.Errorf("measure the data path: %w", slower)
	}
	return errors.Join(slower, o.print(stdout, list, func(w io.Writer) { datapath.PrintShort(w, list) }))
}

// measureSystem measures the standard profiles, and in turn those of an earlier program.
func (r *report) measureSystem(
	ctx context.Context, o options, stack *devstack.Stack, progress func(string, ...any), logger *slog.Logger,
) error {
	system := ""
	rounds := 1
	if o.path.Before != "" {
		system = filepath.Join(filepath.Dir(o.path.Before), "attune-system")
		if rounds = cmp.Or(o.path.Rounds, 3); o.path.Quick {
			rounds = 1
		}
	}
	pairs := map[string][]pairOf{}
	for round := range rounds {
		mine, err := measureRound(ctx, o, stack, round, progress, logger)
		if err != nil {
			return err
		}
		if round == 0 {
			r.WholeSystem = mine
		}
		if system == "" {
			continue
		}
		progress("round %d of %d: the earlier program", round+1, rounds)
		theirs, err := systemBefore(ctx, system, o.dir+"-before", o.path.Quick)
		if err != nil {
			return err
		}
		systemPairs(pairs, mine, theirs)
	}
	r.Goals = judge(pairs)
	return nil
}

// measureRound measures the profiles of a round in a database of its own.
func measureRound(
	ctx context.Context, o options, stack *devstack.Stack, round int, progress func(string, ...any),
	logger *slog.Logger,
) ([]measure.Report, error) {
	servers := measure.ServersOf(stack)
	at, err := url.Parse(servers.DatabaseURL)
	if err != nil {
		return nil, fmt.Errorf("read the address of the database: %w", err)
	}
	conn, err := pgx.Connect(ctx, servers.DatabaseURL)
	if err != nil {
		return nil, fmt.Errorf("connect to the server: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // nothing is pending on it
	at.Path = fmt.Sprintf("/round_%d", round+1)
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+at.Path[1:]); err != nil {
		return nil, fmt.Errorf("create the database of a round: %w", err)
	}
	servers.DatabaseURL = at.String()
	profiles := profilesOf(round)
	for i := range profiles {
		profiles[i].Schedulers = o.path.Schedulers
		if o.path.Quick {
			profiles[i].Executions /= 10
		}
	}
	return measure.All(ctx, profiles, servers, logger, progress)
}

// measureDataPath stops the broker, restarts PostgreSQL with more memory, and measures.
func (r *report) measureDataPath(
	ctx context.Context, o options, stack *devstack.Stack, progress func(string, ...any), logger *slog.Logger,
) error {
	if err := restart(ctx, stack, datapath.Prepare); err != nil {
		return err
	}
	o.path.BeforeDir = o.dir + "-before"
	o.path.Progress = func(format string, args ...any) { progress("data path, "+format, args...) }
	measured, err := datapath.Run(ctx, o.path, stack.DatabaseURL(), logger)
	if err != nil {
		return fmt.Errorf("measure the data path: %w", err)
	}
	r.DataPath = &measured
	if o.out == "" {
		return nil
	}
	return measured.Save(o.out)
}

// measureDashboard makes PostgreSQL measure statements, and runs the dashboard's readings on a large
// installation.
func (r *report) measureDashboard(
	ctx context.Context, o options, stack *devstack.Stack, progress func(string, ...any), logger *slog.Logger,
) error {
	if err := restart(ctx, stack, dashboard.Prepare); err != nil {
		return err
	}
	size := dashboard.Full
	if o.path.Quick {
		size = dashboard.Size{Executions: size.Executions / 10, Queued: size.Queued / 10}
	}
	measured, err := dashboard.Run(ctx, dashboard.Options{
		Size: size, Progress: func(format string, args ...any) { progress("dashboard, "+format, args...) },
	}, stack.DatabaseURL(), logger)
	if err != nil {
		return fmt.Errorf("measure the dashboard's readings: %w", err)
	}
	r.Dashboard = &measured
	return nil
}

// restart stops the broker, which is not measured, and restarts PostgreSQL with the settings of prepare.
func restart(ctx context.Context, stack *devstack.Stack, prepare func(context.Context, string) error) error {
	if err := stack.KillBroker(ctx); err != nil {
		return fmt.Errorf("stop the unmeasured broker: %w", err)
	}
	if err := prepare(ctx, stack.DatabaseURL()); err != nil {
		return err
	}
	if err := errors.Join(stack.KillPostgres(ctx), stack.StartPostgres(ctx)); err != nil {
		return fmt.Errorf("start PostgreSQL with other settings: %w", err)
	}
	return nil
}
