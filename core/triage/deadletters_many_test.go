package triage_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
)

func TestManyDeadLettersAreRequeuedUnderOneLock(t *testing.T) {
	b := setup(t)
	action := b.limited(t, "demo.sleep", 1)
	var ids []int64
	for range 3 {
		execution := b.ended(t, action, lifecycle.StatusFailed)
		ids = append(ids, b.deadLetter(t, func(r *deadLetterRow) { r.execution = execution }))
	}
	done := b.ended(t, action, lifecycle.StatusCompleted)
	useless := b.deadLetter(t, func(r *deadLetterRow) { r.execution = done })
	decided := b.deadLetter(t, event, func(r *deadLetterRow) { r.decision = "requeued" })

	held, err := b.store.LockSession(t.Context(), deadletter.LockName(message.QueueDeadLetter), "attune-tui bob@desk")
	require.NoError(t, err)
	_, err = requeueMany(b.operator, t.Context(), ids, nil, "")
	locked, ok := errors.AsType[*triage.LockedError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, "attune-tui bob@desk", locked.By)
	plan, err := b.operator.PlanDiscardOf(t.Context(), ids)
	require.NoError(t, err)
	discarded, err := b.operator.DiscardMany(t.Context(), plan)
	require.ErrorAs(t, err, &locked, "discarding many needs the lock too")
	require.Equal(t, []int{0, 3}, []int{discarded.Discarded, discarded.Left})
	held.Release(t.Context())

	r, err := requeueMany(b.operator, t.Context(), append(ids[:2:2], useless, decided), nil, "because")
	require.NoError(t, err)
	require.Equal(t, []int{4, 2, 2, 0, 0}, []int{r.Planned, r.Done, r.Changed, r.Failed, len(r.Left)})
	require.Len(t, r.Audits, 2)
	b.keeps(t, ids[0], "requeued")
	r, err = requeueMany(b.operator, t.Context(), []int64{useless}, []int64{useless}, "once more")
	require.NoError(t, err)
	require.Equal(t, 1, r.Done, "it was requested anyway")
}

func TestDiscardedDeadLettersAreReopened(t *testing.T) {
	b := setup(t)
	first, second, decided := b.deadLetter(t, event), b.deadLetter(t, event), b.deadLetter(t, event,
		func(r *deadLetterRow) { r.decision = "requeued" })
	later := b.deadLetter(t, event)
	plan, err := b.operator.PlanDiscardOf(t.Context(), []int64{first, second, decided})
	require.NoError(t, err)
	require.Equal(t, []int64{first, second}, plan.IDs())
	discarded, err := b.operator.DiscardMany(t.Context(), plan)
	require.NoError(t, err)
	require.Equal(t, 2, discarded.Discarded)
	r, err := b.operator.Reopen(t.Context(), []int64{first, second, decided, later}, "by mistake")
	require.NoError(t, err)
	require.Equal(t, []int{2, 2}, []int{r.Done, r.Changed})
	require.Equal(t, 3, testkit.Count(t, b.store, `select count(*) from dead_letter where decision is null`))
	require.Equal(t, 2, testkit.Count(t, b.store, `select count(*) from dead_letter where evidence->'decisions'->-1->>'decision' = 'reopened'
		and evidence->'decisions'->-1->>'before' = 'discarded' and evidence->'decisions'->-1->>'note' = 'by mistake'`))
	require.Equal(t, "dead_letter.reopen", b.audit(t, r.Audits[0]).Action)
}

// A stop ends a run after the running step. The receipt names the rows that are left, and the same
// run again continues with them.
func TestAStoppedRunNamesTheRowsThatAreLeft(t *testing.T) {
	b := setup(t)
	action := b.limited(t, "demo.sleep", 1)
	var ids []int64
	for range 3 {
		execution := b.ended(t, action, lifecycle.StatusFailed)
		ids = append(ids, b.deadLetter(t, func(r *deadLetterRow) { r.execution = execution }))
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r, err := requeueMany(b.operator, triage.WithProgress(ctx, func(int64, int64) { stop() }), ids, nil, "")
	require.NoError(t, err)
	require.Equal(t, []int{3, 1, 0, 0}, []int{r.Planned, r.Done, r.Changed, r.Failed})
	require.Equal(t, ids[1:], r.Left)
	require.Equal(t, "stopped by hand", r.Stopped)
	r, err = requeueMany(b.operator, t.Context(), r.Left, nil, "")
	require.NoError(t, err)
	require.Equal(t, 2, r.Done)
	require.Empty(t, r.Stopped)
}

// While the database is away no row fails by its own fault: the same run again must reach each of them.
func TestRowsThatMetAnAbsentDatabaseAreLeft(t *testing.T) {
	b := setup(t)
	away, broken := fmt.Errorf("read: %w", net.ErrClosed), errors.New("broken")
	var run triage.Run
	for i, err := range []error{nil, broken, nil, broken, away, away, nil} {
		run.Steps = append(run.Steps, triage.Step{
			Rows: []int64{int64(i)},
			Do: func(context.Context, string) (triage.Outcome, error) {
				return triage.Outcome{Done: 1}, err
			},
		})
	}
	r, err := b.operator.Run(t.Context(), run, "")
	require.NoError(t, err)
	require.Equal(t, []int{7, 2, 0, 2}, []int{r.Planned, r.Done, r.Changed, r.Failed})
	require.Equal(t, []int64{4, 5, 6}, r.Left)
	require.Equal(t, "stopped after 3 failures in a row", r.Stopped)
}
