package act_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/lab/testkit"
)

// Retries join their queue in the order of the original requests, not in that of the dead letters or the marks.
func TestDeadLettersOfTheLedgerAreRequeuedInTheOrderOfTheirExecutions(t *testing.T) {
	b := setup(t)
	worker := testkit.Worker(t, b.store, "pk.fifo")
	actions := []testkit.ActionRow{testkit.Action(t, b.store, "pk.one"), testkit.Action(t, b.store, "pk.two")}
	var executions []int64
	for i := range 6 {
		x := testkit.Execution(t, b.store, actions[i%2],
			func(e *testkit.ExecutionRow) { e.Status, e.Worker = lifecycle.StatusFailed, &worker.ID })
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
	require.Equal(t, executions, b.repeated())
}

// Workflows begin anew in the order of their first requests, not in that of the marks.
func TestMarkedWorkflowsBeginAnewInTheOrderOfTheirRequests(t *testing.T) {
	b := setup(t)
	var workflows []int64
	var targets []act.Target
	for range 3 {
		id := b.workflow("shop.flow" + strconv.Itoa(len(workflows)))
		testkit.Exec(t, b.store, `update execution set status = 'failed' where id = $1`, id)
		workflows = append(workflows, id)
		targets = append([]act.Target{{ID: id, Name: strconv.FormatInt(id, 10)}}, targets...)
	}
	p, err := b.Plan(t.Context(), act.Request{Kind: act.RetryWorkflow, Targets: targets})
	require.NoError(t, err)
	require.Equal(t, "3 of 3 done.", b.run(p).Text)
	require.Equal(t, workflows, b.repeated())
}

// repeated lists the repeated executions in the order of their retries.
func (b *bundle) repeated() (of []int64) {
	b.t.Helper()
	require.NoError(b.t, b.store.Pool().QueryRow(b.t.Context(), `select coalesce(array_agg(original_execution order by id), '{}')
		from execution where retry_reason = 'manual_retry'`).Scan(&of))
	return of
}
