package demo

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/lab/testkit"
)

// Completed executions and rightly decided dead letters are right, cancelled executions and other decisions
// are wrong, open tasks are undone, and an execution without a row is lost.
func TestAPracticeIsJudged(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "ops.print")
	with := func(status lifecycle.Status) int64 {
		return testkit.Execution(t, st, action, func(r *testkit.ExecutionRow) { r.Status = status }).ID
	}
	i := (&Demo{store: st}).newIncident()
	i.span = span{0, openEnd, 0, openEnd}
	var v verdict
	asked := []int64{with(lifecycle.StatusCompleted), with(lifecycle.StatusCancelled), with(lifecycle.StatusFailed),
		4711}
	require.NoError(t, i.ran(t.Context(), &v, "ops.print", asked))
	testkit.Exec(t, st, `insert into dead_letter (fingerprint, queue, decision)
		values ('a', 'mirror.events', 'requeued'), ('b', 'mirror.events', 'discarded'), ('c', 'mirror.events', null),
			('d', 'elsewhere', null)`)
	require.NoError(t, i.deadLetterVerdict(t.Context(), &v, map[string]string{groupMirror: "requeued"}))
	require.Equal(t, []string{
		"  practice              consumer-away",
		"    right               1 executions of ops.print: completed",
		"    right               1 dead letters requeued (events that the mirror missed)",
		"    wrong               1 executions of ops.print: cancelled",
		"    wrong               1 dead letters discarded (events that the mirror missed)",
		"    undone              1 executions of ops.print: failed",
		"    undone              1 dead letters wait: events that expired while the mirror was away: requeue them",
		"    lost                1 executions of ops.print: missing",
	}, v.lines("consumer-away", nil))
}
