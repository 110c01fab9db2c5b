package datapath

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/testkit"
)

func TestARoundIsComparedWithRiver(t *testing.T) {
	t.Parallel()
	s := testServer(t)
	dir := t.TempDir()
	program := filepath.Join(dir, "river")
	text := "#!/bin/sh\necho \"$@\" >\"$(dirname \"$0\")/asked\"\necho '{\"jobs\":20000,\"seconds\":4,\"per_second\":5000}'\n"
	require.NoError(t, exec.CommandContext(t.Context(), "sh", "-c", `printf '%s' "$1" >"$2" && chmod 700 "$2"`, "sh", text, program).Run())

	report := Report{Scenarios: []Outcome{{Scenario: Scenario{Name: noLimit, Executions: 20_000}, Rounds: []Result{{PerSecond: 3000}}}}}
	require.NoError(t, s.river(testkit.Context(t), Options{Rounds: 1, River: program}.withDefaults(), &report, 0))
	report.conclude()
	asked, err := os.ReadFile(filepath.Join(dir, "asked"))
	require.NoError(t, err)
	require.Regexp(t, `^-database postgres://\S+ -jobs 20000\n$`, string(asked))
	goal, ok := report.riverGoal()
	require.True(t, ok)
	require.False(t, goal.Met)
	require.Equal(t, "0.60 × (3000/s)", goal.Measured)
}
