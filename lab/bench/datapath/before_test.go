package datapath

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Another build runs the compared scenarios, and the ratios are those of the round.
func TestARoundIsComparedWithAnEarlierProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	theirs := map[string]Report{"data_path": {Scenarios: []Outcome{
		{Scenario: Scenario{Name: hot}, Rounds: []Result{{PerSecond: 500, GoMicros: 100, PGMicros: 300}}},
	}}}
	raw, err := json.Marshal(theirs)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "answer"), raw, 0o600))
	program := filepath.Join(dir, "before")
	// Another process does the writing: a file cannot be executed while a child that a parallel test has forked holds
	// it open for writing.
	text := "#!/bin/sh\ncd \"$(dirname \"$0\")\"\necho \"$@\" >asked\ncat answer\n"
	require.NoError(t, exec.CommandContext(t.Context(), "sh", "-c", `printf '%s' "$1" >"$2" && chmod 700 "$2"`, "sh",
		text, program).Run())

	report := Report{Scenarios: []Outcome{
		{Scenario: Scenario{Name: hot}, Rounds: []Result{{PerSecond: 1000, GoMicros: 50, PGMicros: 50}}},
		{Scenario: Scenario{Name: slots}, Rounds: []Result{{PerSecond: 1}}},
	}}
	options := Options{Before: program, BeforeDir: "servers"}.withDefaults()
	require.NoError(t, report.before(t.Context(), nil, options, 0))
	asked, err := os.ReadFile(filepath.Join(dir, "asked"))
	require.NoError(t, err)
	require.Equal(t, "--data-path --rounds 1 --dir servers -o json --scenario hot\n", string(asked))
	require.InDelta(t, 2, report.Scenarios[0].Rounds[0].Before, 1e-9)
	require.InDelta(t, 0.25, report.Scenarios[0].Rounds[0].BeforeCPU, 1e-9)
	require.Zero(t, report.Scenarios[1].Rounds[0].Before)

	report.conclude()
	for _, g := range report.Goals {
		if g.Number == "B2" {
			require.False(t, g.Met)
			require.Equal(t, "2.00 × (1000/s; CPU 0.25 ×; 0.0 × D1)", g.Measured)
			return
		}
	}
	t.Fatal("the throughput is not judged")
}
