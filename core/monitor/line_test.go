package monitor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/lab/testkit"
)

// A queue lists its executions in the order of admission, by lanes and then FIFO, with the source of each.
func TestAQueueIsInTheOrderOfAdmission(t *testing.T) {
	b := setup(t, nil)
	action := testkit.Action(t, b.Store, "demo.sleep")
	worker := testkit.Worker(t, b.Store, "w")
	state, holders, normal := b.AddQueue(t, action, 1, 1, 3, worker.ID)
	low, high := b.Enqueue(t, action, state, -1), b.Enqueue(t, action, state, 1)
	testkit.Exec(t, b.Store,
		`update execution_admission_state set queued_count = 5, queued_high = 1, queued_low = 1 where id = $1`, state)
	testkit.Exec(t, b.Store, `insert into identity (login) values ('alice')`)
	testkit.Exec(t, b.Store,
		`update execution set executor = (select id from identity where login = 'alice') where id = $1`, high)
	testkit.Exec(t, b.Store, `update execution set original_execution = $2 where id = $1`, normal[0], holders[0])
	testkit.Exec(t, b.Store, `update execution set parent = $2, workflow_task = '{"task_name": "fetch"}' where id = $1`,
		normal[1], holders[0])
	testkit.Exec(t, b.Store, `with n as (insert into enforcement (rule_ref, trigger_ref, payload) values ('nightly.start', 'core.timer', '{}') returning id)
		update execution set enforcement = n.id from n where execution.id = $1`, normal[2])

	l, err := b.QueueLine(t.Context(), LineAsk{Queue: state})
	require.NoError(t, err)
	require.EqualValues(t, 5, l.Of)
	want := append(append([]int64{high}, normal...), low)
	require.Len(t, l.List, len(want))
	for i, w := range l.List {
		require.Equal(t, want[i], w.ID)
		require.EqualValues(t, i+1, w.Place)
		require.InDelta(t, 120, l.At.Sub(w.Since).Seconds(), 60)
	}
	require.Equal(t, LaneHigh, l.List[0].Lane)
	require.Equal(t, "by alice", l.List[0].Source)
	require.Equal(t, "retry of "+name(holders[0]), l.List[1].Source)
	require.Equal(t, "workflow", l.List[2].Source)
	require.Equal(t, "fetch", l.List[2].Task)
	require.Equal(t, "demo.sleep", l.List[2].ParentRef)
	require.Equal(t, holders[0], *l.List[2].Parent)
	require.Equal(t, "rule nightly.start", l.List[3].Source)
	require.Equal(t, "request", l.List[4].Source)

	l, err = b.QueueLine(t.Context(), LineAsk{Queue: state, Rows: 2})
	require.NoError(t, err)
	require.Equal(t, []int64{high, normal[0]}, ids(l))
	l, err = b.QueueLine(t.Context(), LineAsk{Queue: state, Rows: 2, End: true})
	require.NoError(t, err)
	require.Equal(t, []int64{normal[2], low}, ids(l))
	require.EqualValues(t, 4, l.List[0].Place)
	require.EqualValues(t, 5, l.List[1].Place)
	_, err = b.QueueLine(t.Context(), LineAsk{Queue: state + 1})
	require.ErrorIs(t, err, ErrNotFound)
}

func ids(l *Line) []int64 {
	var out []int64
	for _, w := range l.List {
		out = append(out, w.ID)
	}
	return out
}

// TestPlacesOfAPublishedSchemaAreUnknown and not an error of SQL.
func TestPlacesOfAPublishedSchemaAreUnknown(t *testing.T) {
	b := setup(t, nil)
	action := testkit.Action(t, b.Store, "demo.sleep")
	worker := testkit.Worker(t, b.Store, "w")
	testkit.Execution(t, b.Store, action,
		func(r *testkit.ExecutionRow) { r.Status, r.Worker = lifecycle.StatusRunning, &worker.ID })
	testkit.Exec(t, b.Store,
		`drop table worker_load, admission_blocked, admission_scope, engine_replica, worker_history cascade`)
	testkit.Exec(t, b.Store, `alter table execution drop column if exists finished_status cascade, drop column finished_at cascade,
		drop column attempt cascade, drop column admitted_at cascade, drop column priority cascade`)
	testkit.Exec(t, b.Store, `update worker set created = now() - interval '1 hour'`)
	_, err := b.QueueLine(t.Context(), LineAsk{Queue: 1})
	require.ErrorIs(t, err, ErrUnmigrated)
	p, err := b.QueuesPast(t.Context(), 0)
	require.NoError(t, err)
	require.Empty(t, p.List)
	past, err := b.WorkersPast(t.Context())
	require.NoError(t, err)
	require.Empty(t, past.List)
	d, err := b.Worker(t.Context(), worker.ID)
	require.NoError(t, err)
	require.False(t, d.Recorded)
	require.Len(t, d.Running, 1)
	require.Equal(t, BeatUnknown, d.Beats[58], "it was not recorded")
	require.Equal(t, BeatAlive, d.Beats[59])
}

func TestWaitsCountForThoseThatTheyStandFor(t *testing.T) {
	t.Parallel()
	p := weigh([]Waited{{Since: time.Second, Weight: 98}, {Since: time.Hour, Weight: 2}})
	require.Equal(t, time.Second, p.P95)
	require.Equal(t, time.Hour, p.P99)
}
