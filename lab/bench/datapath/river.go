package datapath

import (
	"context"
	"fmt"

	"github.com/attune-go/attune/lab/bench/river"
)

// river measures River once, in a database of its own on the same server, and compares the round.
func (s *server) river(ctx context.Context, options Options, report *Report, round int) error {
	o, ok := report.find(noLimit)
	if !ok || len(o.Rounds) <= round {
		return nil
	}
	options.Progress("round %d of %d: River", round+1, options.Rounds)
	at, drop, err := s.fresh(ctx)
	if err != nil {
		return err
	}
	defer drop()
	perSecond, err := river.PerSecond(ctx, at, o.Scenario.Executions, s.logger)
	if err != nil {
		return fmt.Errorf("measure River: %w", err)
	}
	o.Rounds[round].River = o.Rounds[round].PerSecond / perSecond
	return nil
}

// riverGoal compares with River, which has no ordered limits, no history and no broker.
func (r *Report) riverGoal() (Goal, bool) {
	o, ok := r.find(noLimit)
	return Goal{
		Number: "B7", What: o.Scenario.What + ", against River's insert and work of jobs that do nothing",
		Bar:      "≥ 0.8 ×",
		Measured: fmt.Sprintf("%.2f × (%.0f/s)", o.Median.River, o.Median.PerSecond),
		Met:      o.Median.River >= 0.8,
	}, ok && o.Median.River > 0
}
