package datapath

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
)

// river measures once with the program of core/bench/river, in a database of its own on the
// same server, and compares this round without a limit with it.
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
	var out, said bytes.Buffer
	command := exec.CommandContext(ctx, options.River, "-database", at, "-jobs", strconv.Itoa(o.Scenario.Executions))
	command.Stdout, command.Stderr = &out, &said
	if err := command.Run(); err != nil {
		return fmt.Errorf("measure with %s: %w: %s", options.River, err, bytes.TrimSpace(said.Bytes()))
	}
	var theirs struct {
		PerSecond float64 `json:"per_second"`
	}
	if err := json.Unmarshal(out.Bytes(), &theirs); err != nil {
		return fmt.Errorf("read what %s measured: %w", options.River, err)
	}
	o.Rounds[round].River = o.Rounds[round].PerSecond / theirs.PerSecond
	return nil
}

// riverGoal compares with River, which keeps no order under a limit, writes no history
// and has no broker.
func (r *Report) riverGoal() (Goal, bool) {
	o, ok := r.find(noLimit)
	return Goal{
		Number: "A11", What: o.Scenario.What + ", against River's insert and work of jobs that do nothing", Bar: "≥ 0.8 ×",
		Measured: fmt.Sprintf("%.2f × (%.0f/s)%s", o.Median.River, o.Median.PerSecond, r.withoutHistory(noLimit)),
		Met:      o.Median.River >= 0.8,
	}, ok && o.Median.River > 0
}
