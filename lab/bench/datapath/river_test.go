package datapath

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
)

// River completes as many jobs as the scenario has executions, and the goal is the ratio of the two.
func TestARoundIsComparedWithRiver(t *testing.T) {
	s := testServer(t)
	report := Report{Scenarios: []Outcome{
		{Scenario: Scenario{Name: noLimit, Executions: 300}, Rounds: []Result{{PerSecond: 1}}},
	}}
	require.NoError(t, s.river(testkit.Context(t), Options{Rounds: 1, River: true}.withDefaults(), &report, 0))
	measured := report.Scenarios[0].Rounds[0].River
	require.Positive(t, measured)
	require.Less(t, measured, 1.0, "River completes more than one job a second")

	report.Scenarios[0].Rounds[0] = Result{PerSecond: 3000, River: 0.6}
	report.conclude()
	goal, ok := report.riverGoal()
	require.True(t, ok)
	require.False(t, goal.Met)
	require.Equal(t, "0.60 × (3000/s)", goal.Measured)
}
