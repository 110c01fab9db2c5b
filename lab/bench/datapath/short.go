package datapath

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strings"
)

// The short form compares the engine with D1 in one run of some seconds, as part of `make test`. Both run on
// the same server at almost the same time, so that the ratio of their throughputs is more reliable than
// either of them.

// recorded are the ratios of throughput on 2 processors (Intel Xeon, 2.5 GHz, PostgreSQL 15.18), low ones of
// a dozen runs with and without other programs: 3.3 to 7.6, and 2.4 to 6.6. Run `bin/attune-bench --short`
// to record new ones.
var recorded = map[string]float64{noLimit: 3.9, hot: 3.1}

// recordedCPU are the ratios of the CPU time of an execution, with PostgreSQL, of D1 to the engine. Other
// programs hardly change them: 5.5 to 9.2, and 3.9 to 6.1.
var recordedCPU = map[string]float64{noLimit: 6.5, hot: 4.7}

const (
	// tolerance is the share of a recorded ratio that may be lost before Short fails.
	tolerance = 1.0 / 3
	// busy processors of other programs make the throughput meaningless.
	busy = 0.5

	// leastLaps is how many laps a comparison has, up to mostLaps until it is as fast as recorded: other programs may
	// have used the processors during the first ones.
	leastLaps = 3
	mostLaps  = 12
)

// Comparison is the engine's throughput beside that of D1, each the best of all laps.
type Comparison struct {
	Name     string  `json:"name"`
	What     string  `json:"what"`
	Engine   float64 `json:"engine_per_second"`
	D1       float64 `json:"d1_per_second"`
	Ratio    float64 `json:"ratio"`
	Recorded float64 `json:"recorded"`
	Least    float64 `json:"least"` // a lower ratio is a failure, unless other programs used the processors
	Laps     int     `json:"laps"`
	// EngineCPU and D1CPU are the CPU microseconds of an execution, with PostgreSQL, each the least of all
	// laps.
	EngineCPU float64 `json:"engine_cpu_micros"`
	D1CPU     float64 `json:"d1_cpu_micros"`
	RatioCPU  float64 `json:"cpu_ratio"`
	LeastCPU  float64 `json:"least_cpu_ratio"`
	// Foreign is the number of processors that other programs used in the quietest lap.
	Foreign float64 `json:"foreign_cpu"`
}

// lost reports whether the engine has lost its lead in CPU time, or in throughput on an idle machine.
func (c *Comparison) lost() bool {
	return c.RatioCPU < c.LeastCPU || c.Ratio < c.Least && c.Foreign < busy
}

// ErrSlower reports that the engine lost more than a third of its lead over D1.
var ErrSlower = errors.New("the engine is slower than recorded")

// shortScenarios returns the engine's scenario and D1's for each comparison. With one scheduler and one
// consumer of each queue, the ratio does not depend on the number of processors. D1 is slower with a longer
// queue, so a ratio holds for these numbers of executions.
func shortScenarios() [][2]Scenario {
	var pairs [][2]Scenario
	for _, size := range []struct {
		name       string
		engine, d1 int
	}{{noLimit, 1_000, 150}, {hot, 300, 80}} {
		for _, s := range floods() {
			if s.Name != size.name {
				continue
			}
			s.Schedulers, s.Executions = 1, size.engine
			reference := s
			reference.Design, reference.Executions, reference.Batch = DesignD1, size.d1, 1
			pairs = append(pairs, [2]Scenario{s, reference})
		}
	}
	return pairs
}

// Short measures on databases of its own on the server of databaseURL. The comparisons are also valid with
// the error ErrSlower.
func Short(ctx context.Context, databaseURL string, logger *slog.Logger) ([]Comparison, error) {
	s, err := openServer(ctx, databaseURL, logger)
	if err != nil {
		return nil, err
	}
	defer s.close(ctx)
	return s.short(ctx, shortScenarios())
}

// rival is one side of a comparison: a running world.
type rival struct {
	*world
	sent int
	best float64 // executions a second
	// cpu is the least CPU time of an execution in microseconds, foreign the fewest processors of other
	// programs.
	cpu, foreign float64
}

func (s *server) short(ctx context.Context, pairs [][2]Scenario) ([]Comparison, error) {
	list := make([]Comparison, len(pairs))
	rivals := make([][2]*rival, len(pairs))
	var built []*rival
	defer func() {
		for _, one := range built {
			one.close()
		}
	}()
	for i, pair := range pairs {
		ratio := recorded[pair[0].Name]
		list[i] = Comparison{
			Name: pair[0].Name, What: pair[0].What, Recorded: ratio, Least: ratio * (1 - tolerance),
			LeastCPU: recordedCPU[pair[0].Name] * (1 - tolerance),
		}
		for side, scenario := range pair {
			w, err := s.build(ctx, scenario)
			if err != nil {
				return nil, fmt.Errorf("prepare %s: %w", scenario.What, err)
			}
			one := &rival{world: w}
			built = append(built, one)
			rivals[i][side] = one
			if err := one.prepare(ctx); err != nil {
				return nil, err
			}
		}
	}
	for lap := range mostLaps {
		for i := range list {
			if c := &list[i]; lap < leastLaps || c.lost() {
				if err := c.lap(ctx, rivals[i]); err != nil {
					return nil, err
				}
			}
		}
	}
	for _, one := range built {
		if err := one.stop(); err != nil {
			return nil, err
		}
		if _, err := one.check(ctx, one.query.Pool(), one.sent); err != nil {
			return nil, fmt.Errorf("%s: %w", one.scenario.What, err)
		}
	}
	return list, verdictOf(list)
}

// lap measures both sides, one after the other.
func (c *Comparison) lap(ctx context.Context, rivals [2]*rival) error {
	for _, one := range rivals {
		if err := one.lap(ctx, one.scenario.Executions); err != nil {
			return fmt.Errorf("%s: %w", one.scenario.What, err)
		}
	}
	c.Laps++
	c.Engine, c.D1 = rivals[0].best, rivals[1].best
	c.Ratio = c.Engine / c.D1
	c.EngineCPU, c.D1CPU = rivals[0].cpu, rivals[1].cpu
	c.RatioCPU = c.D1CPU / c.EngineCPU
	c.Foreign = max(rivals[0].foreign, rivals[1].foreign)
	return nil
}

// prepare starts the world, and forgets what its first lap measures.
func (r *rival) prepare(ctx context.Context) error {
	if err := r.start(ctx); err != nil {
		return err
	}
	if err := r.lap(ctx, r.scenario.warmUp()); err != nil {
		return fmt.Errorf("warm up %s: %w", r.scenario.What, err)
	}
	r.best, r.cpu, r.foreign = 0, math.Inf(1), math.Inf(1)
	return nil
}

// lap requests n executions at once and waits for their end.
func (r *rival) lap(ctx context.Context, n int) error {
	r.tally.reset()
	before := r.server.burned()
	if err := r.send(ctx, r.sent, n, 0); err != nil {
		return err
	}
	r.sent += n
	if err := r.await(ctx, n); err != nil {
		return err
	}
	spent := r.server.burned().since(before)
	r.best = max(r.best, float64(n)/spent.elapsed.Seconds())
	r.cpu = min(r.cpu, float64((spent.own+spent.postgres).Microseconds())/float64(n))
	r.foreign = min(r.foreign, spent.foreign.Seconds()/spent.elapsed.Seconds())
	return nil
}

// verdictOf returns ErrSlower with every ratio that is too low.
func verdictOf(list []Comparison) error {
	var slow []string
	for _, c := range list {
		if c.lost() {
			slow = append(slow, fmt.Sprintf("%s: %.1f × D1 at best in %d laps, recorded %.1f, at least %.1f; "+
				"CPU time %.1f ×, at least %.1f; other programs used %.1f processors",
				c.What, c.Ratio, c.Laps, c.Recorded, c.Least, c.RatioCPU, c.LeastCPU, c.Foreign))
		}
	}
	if len(slow) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrSlower, strings.Join(slow, "; "))
}

// PrintShort writes the comparisons as a table.
func PrintShort(out io.Writer, list []Comparison) {
	_, _ = fmt.Fprintln(out,
		"SCENARIO\tENGINE/S\tD1/S\tRATIO\tRECORDED\tAT LEAST\tLAPS\tCPU µs\tD1 CPU µs\tRATIO\tOTHERS")
	for _, c := range list {
		_, _ = fmt.Fprintf(out, "%s\t%.0f\t%.0f\t%.1f\t%.1f\t%.1f\t%d\t%.0f\t%.0f\t%.1f\t%.1f\n",
			c.What, c.Engine, c.D1, c.Ratio, c.Recorded, c.Least, c.Laps, c.EngineCPU, c.D1CPU, c.RatioCPU, c.Foreign)
	}
}
