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
var compared = []string{noLimit, keys100, hot, paced}

// before measures once with another build of the engine, on servers of its own, and compares the round.
func (r *Report) before(ctx context.Context, options Options, round int) error {
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
	var out, failure bytes.Buffer
	command := exec.CommandContext(ctx, options.Before, args...)
	command.Stdout, command.Stderr = &out, &failure
	if err := command.Run(); err != nil {
		return fmt.Errorf("measure with %s: %w: %s", options.Before, err, bytes.TrimSpace(failure.Bytes()))
	}
	var theirs struct {
		DataPath Report `json:"data_path"`
	}
	if err := json.Unmarshal(out.Bytes(), &theirs); err != nil {
		return fmt.Errorf("read the report of %s: %w", options.Before, err)
	}
	for i := range r.Scenarios {
		o := &r.Scenarios[i]
		same := slices.IndexFunc(theirs.DataPath.Scenarios,
			func(t Outcome) bool { return t.Scenario.Name == o.Scenario.Name && len(t.Rounds) > 0 })
		if same < 0 {
			continue
		}
		mine, other := &o.Rounds[round], theirs.DataPath.Scenarios[same].Rounds[0]
		mine.Before = mine.PerSecond / other.PerSecond
		mine.BeforeCPU = (mine.GoMicros + mine.PGMicros) / (other.GoMicros + other.PGMicros)
	}
	return nil
}
