package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/measure"
)

func TestGoalsAreSharesOfTheFloor(t *testing.T) {
	t.Parallel()
	var reports []measure.Report
	for _, profile := range measure.Profiles() {
		reports = append(reports, measure.Report{Config: profile, PerSecond: 150, StartP99: 0.019, CPU: 0.004})
	}
	met := map[string]bool{}
	for _, g := range systemGoals(reports, 1000) {
		met[g.What] = g.Met
	}
	require.Equal(t, map[string]bool{
		"whole system, flood, no limit": false, "whole system, flood, 100 actions, limit 5": false,
		"whole system, flood, one action, limit 10": false, "whole system, flood, one action, limit 5": true,
		"whole system, paced 200/s, no limit": false,
	}, met)
	require.Empty(t, systemGoals(nil, 1000))
}
