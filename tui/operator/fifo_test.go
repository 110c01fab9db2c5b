package operator_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/testkit"
	"github.com/attune-go/attune/tui/act"
)

// Retries join their queue in the order of the original requests, not in that of the dead letters or the marks.
func TestDeadLettersOfTheLedgerAreRequeuedInTheOrderOfTheirExecutions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	worker := testkit.Worker(t, b.store, "pk.fifo")
	actions := []testkit.ActionRow{testkit.Action(t, b.store, "pk.one"), testkit.Action(t, b.store, "pk.two")}
	var executions []int64
	for i := range 6 {
		x := testkit.Execution(t, b.store, actions[i%2],
			func(e *testkit.ExecutionRow) { e.Status, e.Worker = attune.StatusFailed, &worker.ID })
		executions = append(executions, x.ID)
	}
	var targets []act.Target
	for _, at := range []int{3, 0, 5, 1, 4, 2} { // as they died
		targets = append(targets, act.Target{ID: b.deadLetter(executions[at], worker.ID)})
	}
	slices.Reverse(targets)
	p, err := b.Plan(t.Context(), act.Request{Kind: act.RequeueDeadLetter, Targets: targets})
	require.NoError(t, err)
	require.Contains(t, text(p.Lines), "order    as first enqueued")
	require.Equal(t, "Requeue: 6 of 6 done.", b.run(p).Text)
	rows, err := b.store.Pool().Query(t.Context(),
		`select original_execution from execution where retry_reason = 'manual_retry' order by id`)
	require.NoError(t, err)
	defer rows.Close()
	var repeated []int64
	for rows.Next() {
		var of int64
		require.NoError(t, rows.Scan(&of))
		repeated = append(repeated, of)
	}
	require.NoError(t, rows.Err())
	require.Equal(t, executions, repeated)
}
