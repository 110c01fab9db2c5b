package datapath

import (
	"fmt"
	"math"
	"strings"
)

// Goal is one bar and what was measured against it.
type Goal struct {
	Number   string `json:"number"`
	What     string `json:"what"`
	Bar      string `json:"bar"`
	Measured string `json:"measured"`
	Met      bool   `json:"met"`
}

// goals judges what was measured; goals whose scenarios were left out are
// left out too.
func (r *Report) goals() (goals []Goal) {
	add := func(g Goal, measured bool) {
		if measured {
			goals = append(goals, g)
		}
	}
	add(r.floorGoal("1", noLimit, 3))
	add(r.floorGoal("2", keys10, 1.8))
	add(r.floorGoal("2b", keys100, 2))
	add(r.hotGoal())
	add(r.slotsGoal())
	add(r.growthGoal())
	add(r.batchGoal())
	add(r.replicasGoal())
	add(r.costGoal())
	add(r.faultsGoal())
	add(r.pacedGoal())
	return goals
}

func (r *Report) floorGoal(number, name string, bar float64) (Goal, bool) {
	o, ok := r.find(name)
	return Goal{
		Number: number, What: o.Scenario.What, Bar: fmt.Sprintf("≥ %g × F1", bar),
		Measured: fmt.Sprintf("%.2f × F1 (%.0f/s, %s)%s", o.Median.Floor1, o.Median.PerSecond, versus(o.Median), r.withoutHistory(name)),
		Met:      o.Median.Floor1 >= bar,
	}, ok
}

// withoutHistory is what the same scenario reaches when no history is written.
func (r *Report) withoutHistory(name string) string {
	o, ok := r.find(name + bareOf)
	if !ok {
		return ""
	}
	return fmt.Sprintf("; without history %.2f × F1 (%.0f/s)", o.Median.Floor1, o.Median.PerSecond)
}

// versus is the comparison with D1, if there was one.
func versus(m Result) string {
	if m.D1 == 0 {
		return "D1 not measured"
	}
	return fmt.Sprintf("%.1f × D1", m.D1)
}

func (r *Report) hotGoal() (Goal, bool) {
	o, ok := r.find(hot)
	return Goal{
		Number: "3", What: o.Scenario.What, Bar: "≥ 1 × F1 and ≥ 10 × D1",
		Measured: fmt.Sprintf("%.2f × F1 (%.0f/s), %s%s", o.Median.Floor1, o.Median.PerSecond, versus(o.Median), r.withoutHistory(hot)),
		Met:      o.Median.Floor1 >= 1 && o.Median.D1 >= 10,
	}, ok
}

func (r *Report) slotsGoal() (Goal, bool) {
	o, ok := r.find(slots)
	return Goal{
		Number: "4", What: o.Scenario.What, Bar: "≥ 75 % of ideal",
		Measured: fmt.Sprintf("%.0f %% (%.0f/s, %s)", 100*o.Median.OfIdeal, o.Median.PerSecond, versus(o.Median)),
		Met:      o.Median.OfIdeal >= 0.75,
	}, ok
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

// levels are the fewest and the most that waited.
func (r *Report) levels() (fewest, most int) {
	fewest = math.MaxInt
	for _, g := range r.Growth {
		fewest, most = min(fewest, g.Waiting), max(most, g.Waiting)
	}
	return fewest, most
}

func (r *Report) growthGoal() (Goal, bool) {
	fewest, most := r.levels()
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
		Number: "5", What: fmt.Sprintf("%s waiting against %s: admit, complete and promote, ×1 and ×100", thousands(most), thousands(fewest)),
		Bar: "p50 ≤ 1.2 ×, p99 ≤ 1.5 ×", Measured: fmt.Sprintf("worst p50 %.2f ×, worst p99 %.2f ×", p50, p99),
		Met: p50 <= 1.2 && p99 <= 1.5,
	}, true
}

func (r *Report) batchGoal() (Goal, bool) {
	fewest, _ := r.levels()
	one, ok := r.point(fewest, operationComplete, 1)
	many, also := r.point(fewest, operationComplete, growthBatch)
	if !ok || !also || many.P50 == 0 {
		return Goal{}, false
	}
	ratio := one.P50 / (many.P50 / growthBatch)
	return Goal{
		Number: "6", What: "cost of an execution, batch of 100 against 1 (complete and promote)", Bar: "≤ 1/6",
		Measured: fmt.Sprintf("1/%.1f", ratio), Met: ratio >= 6,
	}, true
}

func (r *Report) replicasGoal() (Goal, bool) {
	var parts []string
	met := true
	for _, name := range []string{hot, keys10, keys100, noLimit} {
		if o, ok := r.find(name + threeOf); ok && o.Median.OfAlone > 0 {
			parts = append(parts, fmt.Sprintf("%s %.2f", name, o.Median.OfAlone))
			met = met && o.Median.OfAlone >= 0.5
		}
	}
	return Goal{
		Number: "7", What: "three replicas against one, any replica takes any key", Bar: "≥ 0.5",
		Measured: strings.Join(parts, ", "), Met: met,
	}, len(parts) > 0
}

func (r *Report) costGoal() (Goal, bool) {
	var parts []string
	met := true
	for _, name := range []string{keys100, noLimit} {
		if o, ok := r.find(name); ok {
			parts = append(parts, fmt.Sprintf("%s %.3f and %.1f kB", name, o.Median.Commits, o.Median.WALBytes/1000))
			met = met && o.Median.Commits <= 0.05 && o.Median.WALBytes <= 2500
		}
	}
	return Goal{
		Number: "8", What: "transactions and WAL an execution, under flood (the bar is for a lean table; ours has history and indexes)",
		Bar: "≤ 0.05 and ≤ 2.5 kB", Measured: strings.Join(parts, ", "), Met: met,
	}, len(parts) > 0
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
		Number: "9", What: "three replicas, 20 % of messages twice, 3 % of rounds aborted: above limit, out of order, lost, double, left over, deadlocks",
		Bar: "all 0", Measured: fmt.Sprintf("all 0 in %s executions and %s aborted rounds (a run with any fails)", thousands(total), thousands(aborted)),
		Met: true,
	}, total > 0
}

func (r *Report) pacedGoal() (Goal, bool) {
	o, ok := r.find(paced)
	if !ok {
		return Goal{}, false
	}
	var floors []float64
	for _, f := range r.Floor1 {
		floors = append(floors, f.PerSecond)
	}
	unit := 1000 / middle(floors) // milliseconds
	p50, p99 := o.Median.WaitP50/unit, o.Median.WaitP99/unit
	return Goal{
		Number: "12", What: o.Scenario.What + ": request visible → dispatch received, in units of 1/F1", Bar: "p50 ≤ 4, p99 ≤ 15",
		Measured: fmt.Sprintf("p50 %.1f, p99 %.1f (%.2f and %.2f ms)", p50, p99, o.Median.WaitP50, o.Median.WaitP99),
		Met:      p50 <= 4 && p99 <= 15,
	}, true
}

// thousands writes a number with separators.
func thousands(n int) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
