package datapath

import (
	"fmt"
	"math"
)

// Goal is one bar and the measured value.
type Goal struct {
	Number   string `json:"number"`
	What     string `json:"what"`
	Bar      string `json:"bar"`
	Measured string `json:"measured"`
	Met      bool   `json:"met"`
}

// goals returns the goals of the measured scenarios.
func (r *Report) goals() (goals []Goal) {
	add := func(g Goal, measured bool) {
		if measured {
			goals = append(goals, g)
		}
	}
	add(r.cpuGoal())
	add(r.speedGoal(hot, 2.2))
	add(r.speedGoal(keys10, 2.2))
	add(r.speedGoal(keys100, 2))
	add(r.speedGoal(noLimit, 2))
	add(r.batchGoal(operationComplete))
	add(r.batchGoal(operationAdmit))
	busySlots, ok := r.find(slots)
	add(Goal{
		Number: "–", What: busySlots.Scenario.What, Bar: "≥ 75 % of ideal",
		Measured: fmt.Sprintf("%.0f %% (%.0f/s)", 100*busySlots.Median.OfIdeal, busySlots.Median.PerSecond),
		Met:      busySlots.Median.OfIdeal >= 0.75,
	}, ok)
	add(r.replicasGoal())
	add(r.crowdGoal())
	add(r.growthGoal())
	add(r.riverGoal())
	add(r.faultsGoal())
	add(r.farGoal("B10", farKeys1000+threeOf, ", against one", 2.2))
	add(r.farGoal("B10", farKeys100+threeOf, ", against one", 1.5))
	add(r.farGoal("B10", farNoLimit+threeOf, ", against one", 2.2))
	add(r.farGoal("B10", far4, " against one", 2))
	return goals
}

// cpuGoal compares with an earlier program.
func (r *Report) cpuGoal() (Goal, bool) {
	o, ok := r.find(paced)
	return Goal{
		Number: "B1", What: "data path, one at a time (" + o.Scenario.What + "): CPU of all processes against before",
		Bar: "≤ 0.45 ×",
		Measured: fmt.Sprintf("%.2f × (%.0f µs; throughput %.2f ×)", o.Median.BeforeCPU,
			o.Median.GoMicros+o.Median.PGMicros, o.Median.Before),
		Met: o.Median.BeforeCPU <= 0.45,
	}, ok && o.Median.BeforeCPU > 0
}

// speedGoal compares with an earlier program.
func (r *Report) speedGoal(name string, bar float64) (Goal, bool) {
	o, ok := r.find(name)
	return Goal{
		Number: "B2", What: "data path, " + o.Scenario.What + ": throughput against before",
		Bar: fmt.Sprintf("≥ %g ×", bar),
		Measured: fmt.Sprintf("%.2f × (%.0f/s; CPU %.2f ×; %.1f × D1)", o.Median.Before, o.Median.PerSecond,
			o.Median.BeforeCPU, o.Median.D1),
		Met: o.Median.Before >= bar,
	}, ok && o.Median.Before > 0
}

// batchGoal compares batches of one execution with those of an earlier program.
func (r *Report) batchGoal(operation string) (Goal, bool) {
	ratio := Middle(r.Batches[operation])
	return Goal{
		Number: "B3", What: operation + " one: p50 against before", Bar: "≤ 0.45 ×",
		Measured: fmt.Sprintf("%.2f ×", ratio), Met: ratio <= 0.45,
	}, ratio > 0
}

func (r *Report) crowdGoal() (Goal, bool) {
	flood, ok := r.find(crowd)
	single, also := r.find(crowdPaced)
	calm, known := r.find(paced)
	if !ok || !also || !known || flood.Median.OfAlone == 0 {
		return Goal{}, false
	}
	wal := single.Median.WALBytes / calm.Median.WALBytes
	return Goal{
		Number: "B10", What: "1,000 live workers, from the moment they appear, against 1",
		Bar: "throughput ≥ 0.9 ×, WAL of a single execution ≤ 1.2 ×",
		Measured: fmt.Sprintf("throughput %.2f ×, slowest round in a hundred %.0f ms; WAL %.2f ×", flood.Median.OfAlone,
			flood.Median.RoundP99, wal),
		Met: flood.Median.OfAlone >= 0.9 && wal <= 1.2,
	}, true
}

// point finds one figure of the growth.
func (r *Report) point(waiting int, operation string, batch int) (Growth, bool) {
	for _, g := range r.Growth {
		if g.Design == DesignEngine && g.Waiting == waiting && g.Operation == operation && g.Batch == batch {
			return g, true
		}
	}
	return Growth{}, false
}

func (r *Report) growthGoal() (Goal, bool) {
	fewest, most := math.MaxInt, 0
	for _, g := range r.Growth {
		fewest, most = min(fewest, g.Waiting), max(most, g.Waiting)
	}
	var p50, p99 float64
	for _, operation := range []string{operationAdmit, operationComplete} {
		for _, batch := range []int{1, growthBatch} {
			few, ok := r.point(fewest, operation, batch)
			many, also := r.point(most, operation, batch)
			if !ok || !also || few.P50 == 0 || few.P99 == 0 {
				return Goal{}, false
			}
			p50, p99 = max(p50, many.P50/few.P50), max(p99, many.P99/few.P99)
		}
	}
	return Goal{
		Number: "B10", What: fmt.Sprintf("%s waiting against %s: admit, complete and promote, ×1 and ×100",
			thousands(most), thousands(fewest)),
		Bar: "p50 ≤ 1.2 ×, p99 ≤ 1.5 ×", Measured: fmt.Sprintf("worst p50 %.2f ×, worst p99 %.2f ×", p50, p99),
		Met: p50 <= 1.2 && p99 <= 1.5,
	}, true
}

func (r *Report) replicasGoal() (Goal, bool) {
	o, ok := r.find(keys100 + threeOf)
	return Goal{
		Number: "B8",
		What:   o.Scenario.What + ", against one: share of a batch's time that it waits for row locks; throughput",
		Bar:    "≤ 10 %, ≥ 0.95 ×", Measured: fmt.Sprintf("%.0f %%, %.2f ×", 100*o.Median.LockWaits, o.Median.OfAlone),
		Met: o.Median.LockWaits <= 0.1 && o.Median.OfAlone >= 0.95,
	}, ok && o.Median.OfAlone > 0
}

func (r *Report) faultsGoal() (Goal, bool) {
	total, aborted := 0, 0
	for _, o := range r.Scenarios {
		if o.Scenario.Aborts == 0 {
			continue
		}
		for _, result := range o.Rounds {
			total += result.Executions + o.Scenario.warmUp()
			aborted += result.Failed
		}
	}
	return Goal{
		Number: "B10", What: "three replicas, 20 % of messages twice, 3 % of rounds aborted, queues held by others: above limit, out of order, lost, double, left over, deadlocks",
		Bar: "all 0", Measured: fmt.Sprintf("all 0 in %s executions and %s aborted rounds (a run with any fails)",
			thousands(total), thousands(aborted)),
		Met: true,
	}, total > 0
}

// farGoal shows that replicas, or the schedulers of a replica, do not wait for each other.
func (r *Report) farGoal(number, name, against string, bar float64) (Goal, bool) {
	o, ok := r.find(name)
	return Goal{
		Number: number, What: o.Scenario.What + against, Bar: fmt.Sprintf("≥ %g ×", bar),
		Measured: fmt.Sprintf("%.2f × (%.0f/s)", o.Median.OfAlone, o.Median.PerSecond), Met: o.Median.OfAlone >= bar,
	}, ok && o.Median.OfAlone > 0
}

// thousands formats a number with separators.
func thousands(n int) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
