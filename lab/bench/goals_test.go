package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/measure"
)

func TestTheWholeSystemIsComparedWithAnEarlierProgram(t *testing.T) {
	t.Parallel()
	var mine, theirs []measure.Report
	for _, profile := range profilesOf(1) {
		mine = append(mine, measure.Report{Config: profile, PerSecond: 210, StartP99: 0.019, CPU: 0.002})
		theirs = append(theirs, measure.Report{Config: profile, PerSecond: 100, StartP99: 0.020, CPU: 0.004})
	}
	pairs := map[string][]pairOf{}
	systemPairs(pairs, mine, theirs)
	met := map[string]bool{}
	for _, g := range judge(pairs) {
		met[g.What] = g.Met
	}
	require.Equal(t, map[string]bool{
		"whole system, flood, no limit: throughput against before":                                          true,
		"whole system, flood, 100 actions, limit 5: throughput against before":                              true,
		"whole system, flood, one action, limit 10: throughput against before":                              false,
		"whole system, flood, one action, limit 5: throughput against before":                               false,
		"whole system, flood, no limit, 2 workers × 1,000: throughput against before":                       true,
		"whole system, paced 200/s, no limit: CPU of all processes against before, p99 requested → running": true,
	}, met)
	require.Empty(t, judge(nil))
}

// The earlier program is asked for the standard profiles, and for the one with more places.
func TestTheEarlierProgramMeasuresTheWholeSystem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "before")
	text := "#!/bin/sh\necho \"$@\" >>" + dir + "/asked\n" +
		`echo '{"whole_system": [{"config": {"Profile": "flood, no limit"}, "executions_per_second": 7}]}'` + "\n"
	// Another process does the writing: a file cannot be executed while a child that a parallel test has forked holds
	// it open for writing.
	require.NoError(t, exec.CommandContext(t.Context(), "sh", "-c", `printf '%s' "$1" >"$2" && chmod 700 "$2"`, "sh",
		text, program).Run())
	reports, err := systemBefore(t.Context(), program, "servers", true)
	require.NoError(t, err)
	require.Len(t, reports, 2)
	require.InDelta(t, 7, reports[0].PerSecond, 1e-9)
	asked, err := os.ReadFile(filepath.Join(dir, "asked"))
	require.NoError(t, err)
	require.Equal(t, "bench --dir servers -o json --quick\nbench --dir servers -o json --profile "+profileWide+
		" --executions 2000 --actions 10 --workers 2 --concurrency 1000\n", string(asked))
}
