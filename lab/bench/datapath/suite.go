package datapath

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Options configures a measurement.
type Options struct {
	Rounds    int      // of every scenario, interleaved; 3 when 0
	Scenarios []string // names, or their beginnings; all when empty
	Quick     bool     // shorter, one round, a smaller growth
	// Schedulers is the number of schedulers of every replica; 0 means the engine's default.
	Schedulers int
	// Before is the program of another build with the same flags. It runs after each round; BeforeDir is the
	// folder of its servers. Empty compares with none.
	Before, BeforeDir string
	River             bool // measure River after each round
	// Progress prints the progress; may be nil.
	Progress func(format string, args ...any)
}

func (o Options) withDefaults() Options {
	if o.Rounds <= 0 {
		o.Rounds = 3
		if o.Quick {
			o.Rounds = 1
		}
	}
	if o.Progress == nil {
		o.Progress = func(string, ...any) {}
	}
	return o
}

func (o Options) wants(name string) bool {
	return len(o.Scenarios) == 0 || slices.ContainsFunc(o.Scenarios, func(wanted string) bool {
		return strings.HasPrefix(name, wanted)
	})
}

// Report is the result of a measurement.
type Report struct {
	Measured  time.Time `json:"measured"`
	Rounds    int       `json:"rounds"`
	Quick     bool      `json:"quick,omitempty"`
	Machine   Machine   `json:"machine"`
	Notes     []string  `json:"notes"`
	Goals     []Goal    `json:"goals"`
	Floor1    []Floor   `json:"floor_1"`  // of every round
	Floor16   []Floor   `json:"floor_16"` // of every round
	Scenarios []Outcome `json:"scenarios"`
	Growth    []Growth  `json:"growth,omitempty"`
	// Batches are the ratios of every round to the earlier program, of batches of one execution by operation.
	Batches map[string][]float64 `json:"batches_per_before,omitempty"`
}

// Outcome is one scenario with all its rounds.
type Outcome struct {
	Scenario Scenario `json:"scenario"`
	Median   Result   `json:"median"` // of each figure
	Rounds   []Result `json:"rounds"`
}

// notes explain the figures.
var notes = []string{
	"An execution's life here: requested (insert and message), admitted or queued, dispatched, running, completed, released, all messages deleted; every status is written.",
	"The tables are those of the product, with all their indexes, triggers and history; the floor F1 is a lean table. The messages are the product's JSON.",
	"Load, engine, workers and PostgreSQL share the machine's processors; the workers write with the product's statements and do nothing in between.",
	"D1, the one-at-a-time design, is kept for this comparison only. It works on the same tables and gets the same set-based requests and workers.",
	"The program of before, if one is named, has servers of its own, and is measured after each round with the same scenarios.",
	"River, if it is measured, has a database of its own on the same server, the settings of its own benchmark, and as many jobs as there are executions without a limit. It keeps no order under a limit, writes no history and has no broker.",
	"Replicas are not routed by key; every replica takes whatever comes.",
}

// ErrUnknownScenario reports a name without a scenario.
var ErrUnknownScenario = errors.New("there is no such scenario")

// Check checks the names of the scenarios.
func (o Options) Check() error {
	for _, wanted := range o.Scenarios {
		known := strings.HasPrefix(growthName, wanted)
		for _, s := range Scenarios(o.Quick) {
			known = known || strings.HasPrefix(s.Name, wanted)
		}
		if !known {
			return fmt.Errorf("%w: %s", ErrUnknownScenario, wanted)
		}
	}
	return nil
}

// Names returns the names of the scenarios.
func Names() []string {
	names := []string{growthName}
	for _, s := range Scenarios(false) {
		names = append(names, s.Name)
	}
	return names
}

// Run measures on a private, idle server; databaseURL is any database of it. It creates and drops its own
// databases.
func Run(ctx context.Context, options Options, databaseURL string, logger *slog.Logger) (report Report, err error) {
	options = options.withDefaults()
	if err := options.Check(); err != nil {
		return report, err
	}
	s, err := openServer(ctx, databaseURL, logger)
	if err != nil {
		return report, err
	}
	defer s.close(ctx)
	report = Report{Measured: time.Now().UTC(), Rounds: options.Rounds, Quick: options.Quick, Notes: notes}
	if report.Machine, err = s.machine(ctx); err != nil {
		return report, err
	}
	for _, scenario := range Scenarios(options.Quick) {
		if options.wants(scenario.Name) {
			if scenario.Design == DesignEngine && options.Schedulers > 0 && scenario.Delay == 0 {
				scenario.Schedulers = options.Schedulers
			}
			report.Scenarios = append(report.Scenarios, Outcome{Scenario: scenario})
		}
	}
	for round := range options.Rounds {
		if err := s.round(ctx, options, &report, round); err != nil {
			return report, fmt.Errorf("round %d: %w", round+1, err)
		}
	}
	if options.wants(growthName) {
		if report.Growth, err = s.grow(ctx, growthPlan(options.Quick), options.Progress); err != nil {
			return report, fmt.Errorf("growth: %w", err)
		}
	}
	report.conclude()
	return report, nil
}

// growthPlan is the standard measurement of the growth.
func growthPlan(quick bool) GrowthPlan {
	if quick {
		return GrowthPlan{Levels: []int{1_000, 20_000}, Samples: 20, SamplesD1: 2}
	}
	return GrowthPlan{Levels: []int{1_000, 100_000, 1_000_000}, Samples: 200, SamplesD1: 10}
}

// floorTime is the duration of each measurement of the floor.
const floorTime = 1500 * time.Millisecond

// round measures every scenario once.
func (s *server) round(ctx context.Context, options Options, report *Report, round int) error {
	options.Progress("round %d of %d: floor", round+1, options.Rounds)
	one, err := s.floor(ctx, 1, floorTime)
	if err != nil {
		return err
	}
	sixteen, err := s.floor(ctx, 16, floorTime)
	if err != nil {
		return err
	}
	report.Floor1, report.Floor16 = append(report.Floor1, one), append(report.Floor16, sixteen)
	for i := range report.Scenarios {
		o := &report.Scenarios[i]
		options.Progress("round %d of %d: %s", round+1, options.Rounds, o.Scenario.What)
		result, err := s.run(ctx, o.Scenario, one.PerSecond)
		if err != nil {
			return fmt.Errorf("%s: %w", o.Scenario.Name, err)
		}
		result.Floor1, result.Floor16 = result.PerSecond/one.PerSecond, result.PerSecond/sixteen.PerSecond
		o.Rounds = append(o.Rounds, result)
	}
	if options.River {
		if err := s.river(ctx, options, report, round); err != nil {
			return err
		}
	}
	if options.Before == "" {
		return nil
	}
	if options.wants(growthName) {
		if err := report.beforeBatches(ctx, s, options); err != nil {
			return err
		}
	}
	return report.before(ctx, s, options, round)
}

// conclude compares scenarios of one round with each other and takes medians.
func (r *Report) conclude() {
	for i := range r.Scenarios {
		o := &r.Scenarios[i]
		reference, compared := r.find(o.Scenario.Reference)
		alone, replicated := r.find(o.Scenario.Alone)
		for k := range o.Rounds {
			if compared {
				o.Rounds[k].D1 = o.Rounds[k].PerSecond / reference.Rounds[k].PerSecond
			}
			if replicated {
				o.Rounds[k].OfAlone = o.Rounds[k].PerSecond / alone.Rounds[k].PerSecond
			}
		}
		o.Median = median(o.Rounds)
	}
	r.Goals = r.goals()
}

// find returns a scenario's outcome by its name.
func (r *Report) find(name string) (Outcome, bool) {
	for _, o := range r.Scenarios {
		if name != "" && o.Scenario.Name == name && len(o.Rounds) > 0 {
			return o, true
		}
	}
	return Outcome{}, false
}

// median returns the median of each figure.
func median[T any](rounds []T) (m T) {
	if len(rounds) == 0 {
		return m
	}
	out := reflect.ValueOf(&m).Elem()
	for i := range out.NumField() {
		switch out.Field(i).Kind() {
		case reflect.Int:
			var values []int
			for _, r := range rounds {
				values = append(values, int(reflect.ValueOf(r).Field(i).Int()))
			}
			out.Field(i).SetInt(int64(Middle(values)))
		case reflect.Float64:
			var values []float64
			for _, r := range rounds {
				values = append(values, reflect.ValueOf(r).Field(i).Float())
			}
			out.Field(i).SetFloat(Middle(values))
		default:
		}
	}
	return m
}

// Middle returns the median, of an even number of values the mean of the two in the middle.
func Middle[T int | float64](values []T) T {
	values = slices.Sorted(slices.Values(values))
	n := len(values)
	if n == 0 {
		return 0
	}
	return (values[(n-1)/2] + values[n/2]) / 2
}
