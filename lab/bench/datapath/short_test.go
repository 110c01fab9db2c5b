package datapath

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
)

// The engine keeps its lead over the one-at-a-time design, as `attune-bench --short` measures it.
//
// It measures a program without the race detector, which makes Go code several times as slow and not PostgreSQL: the
// ratios would hide a statement of twice the cost. It is not parallel, because other tests would compete for the
// processors. TestAnExecutionKeepsItsBudgetOfStatements in core/engine counts statements, commits and round trips.
func TestTheEngineKeepsItsLead(t *testing.T) {
	testkit.Alone(t)
	program, database := filepath.Join(t.TempDir(), "attune-bench"), testkit.Database(t)
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", program, "..")
	built, err := build.CombinedOutput()
	require.NoError(t, err, string(built))
	var out, failure bytes.Buffer
	command := exec.CommandContext(testkit.Context(t), program, "--short", "--database", database, "-o", "json")
	command.Stdout, command.Stderr = &out, &failure
	err = command.Run()
	t.Logf("%s", out.String())
	require.NoError(t, err, failure.String())
	var list []Comparison
	require.NoError(t, json.Unmarshal(out.Bytes(), &list))
	require.Len(t, list, len(recorded))
	for _, c := range list {
		require.GreaterOrEqual(t, c.RatioCPU, recordedCPU[c.Name]*(1-tolerance), c.What)
	}
}

// A ratio that fell by more than a third is an error that names it, whatever the others are.
// Throughput counts only where others leave the engine the processors.
func TestALostLeadIsAnError(t *testing.T) {
	t.Parallel()
	const least = 10 * (1 - tolerance)
	kept := Comparison{What: "kept", Ratio: 7, Recorded: 10, Least: least, Laps: 2, RatioCPU: 7, LeastCPU: least}
	beside := kept
	beside.Ratio, beside.Foreign = 1, 2*busy
	require.NoError(t, verdictOf([]Comparison{kept, beside}))
	slower, costlier := kept, beside
	slower.What, slower.Ratio, slower.Laps = "slower", 6, 8
	costlier.What, costlier.RatioCPU = "costlier", 6
	err := verdictOf([]Comparison{kept, slower, costlier})
	require.ErrorIs(t, err, ErrSlower)
	require.ErrorContains(t, err, "slower: 6.0 × D1 at best in 8 laps, recorded 10.0, at least 6.7")
	require.ErrorContains(t, err, "costlier: 1.0 × D1")
	require.NotContains(t, err.Error(), "kept")
}

// Every comparison has a recorded ratio, and each recorded ratio is compared.
func TestEveryComparisonHasARecordedRatio(t *testing.T) {
	t.Parallel()
	pairs := shortScenarios()
	require.Len(t, pairs, len(recorded))
	for _, pair := range pairs {
		require.Positive(t, recorded[pair[0].Name], pair[0].Name)
		require.Positive(t, recordedCPU[pair[0].Name], pair[0].Name)
		require.Equal(t, []Design{DesignEngine, DesignD1}, []Design{pair[0].Design, pair[1].Design})
	}
}
