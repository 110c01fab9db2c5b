package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strconv"

	"github.com/attune-go/attune/lab/bench/datapath"
	"github.com/attune-go/attune/lab/measure"
)

// profileWide has so many places at workers that they never are the limit.
const profileWide = "flood, no limit, 2 workers × 1,000"

// wide is measured in addition to the standard profiles.
func wide() measure.Config {
	return measure.Config{
		Profile: profileWide, Executions: 20_000, Actions: 10, Replicas: 1, Workers: 2, Concurrency: 1_000,
	}
}

// systemGoal is a goal of a profile, against an earlier program: throughput, or CPU and latency at a pace.
type systemGoal struct {
	number, profile string
	bar             float64
}

var systemGoals = []systemGoal{
	{"B4", measure.ProfileFlood, 2},
	{"B4", measure.ProfileMany, 2},
	{"B4", measure.ProfileTen, 2.2},
	{"B4", measure.ProfileFive, 2.2},
	{"B5", profileWide, 2},
	{"B6", measure.ProfilePaced, 0.55},
}

// profilesOf are the profiles of a round: all of them in the first one, and then those with goals.
func profilesOf(round int) []measure.Config {
	return slices.DeleteFunc(append(measure.Profiles(), wide()), func(p measure.Config) bool {
		return round > 0 && !slices.ContainsFunc(systemGoals, func(g systemGoal) bool { return g.profile == p.Profile })
	})
}

// pairOf are the reports of a profile in one round, of this program and of the earlier one.
type pairOf struct{ mine, theirs measure.Report }

// systemPairs pairs the reports of a round by profile.
func systemPairs(pairs map[string][]pairOf, mine, theirs []measure.Report) {
	for _, m := range mine {
		for _, t := range theirs {
			if t.Config.Profile == m.Config.Profile {
				pairs[m.Config.Profile] = append(pairs[m.Config.Profile], pairOf{m, t})
			}
		}
	}
}

// judge returns the goals whose profiles were compared: medians of the ratios.
func judge(pairs map[string][]pairOf) (goals []datapath.Goal) {
	for _, g := range systemGoals {
		measured := pairs[g.profile]
		if len(measured) == 0 {
			continue
		}
		median := func(of func(measure.Report) float64) float64 {
			var ratios []float64
			for _, p := range measured {
				ratios = append(ratios, of(p.mine)/of(p.theirs))
			}
			return datapath.Middle(ratios)
		}
		cpu := median(func(r measure.Report) float64 { return r.CPU })
		goal := datapath.Goal{Number: g.number, What: "whole system, " + g.profile}
		if g.profile == measure.ProfilePaced {
			p99 := median(func(r measure.Report) float64 { return r.StartP99 })
			goal.What += ": CPU of all processes against before, p99 requested → running"
			goal.Bar, goal.Met = fmt.Sprintf("≤ %g ×, ≤ 1 ×", g.bar), cpu <= g.bar && p99 <= 1
			goal.Measured = fmt.Sprintf("%.2f ×, %.2f ×", cpu, p99)
		} else {
			speed := median(func(r measure.Report) float64 { return r.PerSecond })
			goal.What += ": throughput against before"
			goal.Bar, goal.Met = fmt.Sprintf("≥ %g ×", g.bar), speed >= g.bar
			goal.Measured = fmt.Sprintf("%.2f × (CPU %.2f ×)", speed, cpu)
		}
		goals = append(goals, goal)
	}
	return goals
}

// systemBefore measures the whole system with the program of an earlier commit, on servers of its own.
func systemBefore(ctx context.Context, program, dir string, quick bool) (reports []measure.Report, err error) {
	w := wide()
	executions := w.Executions
	standard := []string{"bench", "--dir", dir, "-o", "json"}
	custom := slices.Clone(standard)
	if quick {
		standard, executions = append(standard, "--quick"), executions/10
	}
	custom = append(custom, "--profile", w.Profile, "--executions", strconv.Itoa(executions),
		"--actions", strconv.Itoa(w.Actions), "--workers", strconv.Itoa(w.Workers),
		"--concurrency", strconv.Itoa(w.Concurrency))
	for _, args := range [][]string{standard, custom} {
		var out, failure bytes.Buffer
		command := exec.CommandContext(ctx, program, args...)
		command.Stdout, command.Stderr = &out, &failure
		if err := command.Run(); err != nil {
			return nil, fmt.Errorf("measure with %s: %w: %s", program, err, bytes.TrimSpace(failure.Bytes()))
		}
		var theirs report
		if err := json.Unmarshal(out.Bytes(), &theirs); err != nil {
			return nil, fmt.Errorf("read the report of %s: %w", program, err)
		}
		reports = append(reports, theirs.WholeSystem...)
	}
	return reports, nil
}
