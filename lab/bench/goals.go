package main

import (
	"fmt"

	"github.com/attune-go/attune/lab/bench/datapath"
	"github.com/attune-go/attune/lab/measure"
)

// systemGoals returns the goals of the measured profiles. They are relative to the floor of the same server:
// rows a second, inserted and updated one by one on sixteen connections.
func systemGoals(reports []measure.Report, floor float64) (goals []datapath.Goal) {
	share := func(number, profile string, bar float64) {
		for _, r := range reports {
			if r.Config.Profile == profile && floor > 0 {
				goals = append(goals, datapath.Goal{
					Number: number, What: "whole system, " + profile, Bar: fmt.Sprintf("≥ %g × F1·16", bar),
					Measured: fmt.Sprintf("%.2f × F1·16 (%.0f/s of %.0f/s)", r.PerSecond/floor, r.PerSecond, floor),
					Met:      r.PerSecond >= bar*floor,
				})
			}
		}
	}
	share("A5", measure.ProfileFlood, 0.5)
	share("A5", measure.ProfileMany, 0.5)
	share("A6", measure.ProfileTen, 0.18)
	share("A6", measure.ProfileFive, 0.11)
	for _, r := range reports {
		if r.Config.Profile == measure.ProfilePaced {
			goals = append(goals, datapath.Goal{
				Number: "A7", What: "whole system, " + measure.ProfilePaced,
				Bar:      "p99 ≤ 20 ms, CPU an execution ≤ 3.5 ms",
				Measured: fmt.Sprintf("p99 %.1f ms, CPU %.1f ms", 1000*r.StartP99, 1000*r.CPU),
				Met:      r.StartP99 <= 0.020 && r.CPU <= 0.0035,
			})
		}
	}
	return goals
}
