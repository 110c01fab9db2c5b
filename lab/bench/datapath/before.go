package datapath

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
)

// compared are the names, or their beginnings, of the scenarios for the comparison with an earlier program.
var compared = []string{noLimit, keys10, keys100, hot, paced}

// before measures once with another build of the engine, on servers of its own, and compares the round. What is
// paced is measured again at the pace that the earlier program had: slower ones cost more.
func (r *Report) before(ctx context.Context, s *server, options Options, round int) error {
	args := []string{"--data-path", "--rounds", "1", "--dir", options.BeforeDir, "-o", "json"}
	if options.Quick {
		args = append(args, "--quick")
	}
	asked := len(args)
	for _, name := range compared {
		if o, ok := r.find(name); ok && len(o.Rounds) > round {
			args = append(args, "--scenario", name)
		}
	}
	if len(args) == asked {
		return nil
	}
	options.Progress("round %d of %d: the earlier program", round+1, options.Rounds)
	theirs, err := ask(ctx, options, args...)
	if err != nil {
		return err
	}
	for i := range r.Scenarios {
		o := &r.Scenarios[i]
		same := slices.IndexFunc(theirs.Scenarios,
			func(t Outcome) bool { return t.Scenario.Name == o.Scenario.Name && len(t.Rounds) > 0 })
		if same < 0 {
			continue
		}
		mine, other := &o.Rounds[round], theirs.Scenarios[same].Rounds[0]
		if o.Scenario.Pace > 0 {
			again, err := s.run(ctx, o.Scenario, other.PerSecond/o.Scenario.Pace)
			if err != nil {
				return fmt.Errorf("%s at the earlier program's pace: %w", o.Scenario.Name, err)
			}
			again.Floor1, again.Floor16 = mine.Floor1, mine.Floor16
			*mine = again
		}
		mine.Before = mine.PerSecond / other.PerSecond
		mine.BeforeCPU = (mine.GoMicros + mine.PGMicros) / (other.GoMicros + other.PGMicros)
	}
	return nil
}

// ask has the earlier program measure.
func ask(ctx context.Context, options Options, args ...string) (Report, error) {
	var out, failure bytes.Buffer
	command := exec.CommandContext(ctx, options.Before, args...)
	command.Stdout, command.Stderr = &out, &failure
	if err := command.Run(); err != nil {
		return Report{}, fmt.Errorf("measure with %s: %w: %s", options.Before, err, bytes.TrimSpace(failure.Bytes()))
	}
	var theirs struct {
		DataPath Report `json:"data_path"`
	}
	if err := json.Unmarshal(out.Bytes(), &theirs); err != nil {
		return Report{}, fmt.Errorf("read the report of %s: %w", options.Before, err)
	}
	return theirs.DataPath, nil
}

// beforeBatches compares batches of one execution with those of the earlier program, in a short queue.
func (r *Report) beforeBatches(ctx context.Context, s *server, options Options) error {
	if r.Batches == nil {
		r.Batches = map[string][]float64{}
	}
	mine, err := s.grow(ctx, growthPlan(true), options.Progress)
	if err != nil {
		return err
	}
	theirs, err := ask(ctx, options, "--data-path", "--quick", "--scenario", growthName, "--dir", options.BeforeDir,
		"-o", "json")
	if err != nil {
		return err
	}
	for _, operation := range []string{operationAdmit, operationComplete} {
		waiting := growthPlan(true).Levels[0]
		here, ok := (&Report{Growth: mine}).point(waiting, operation, 1)
		there, also := theirs.point(waiting, operation, 1)
		if ok && also {
			r.Batches[operation] = append(r.Batches[operation], here.P50/there.P50)
		}
	}
	return nil
}
