package worker

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/lab/testkit"
)

// After the lost answer of an executed statement its retry counts only its own executions.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	st := testkit.Store(t)
	me := testkit.Worker(t, st, "me")
	incarnation := uuid.New()
	testkit.Exec(t, st, "update worker set incarnation = $2 where id = $1", me.ID, incarnation)
	action := testkit.Action(t, st, "lost.answer")
	execution := func(status lifecycle.Status) int64 {
		return testkit.Execution(t, st, action, func(row *testkit.ExecutionRow) {
			row.Worker, row.Status, row.Attempt = &me.ID, status, 1
		}).ID
	}
	start := func(id int64, incarnation uuid.UUID, again bool) []started {
		s := &starter{store: st, worker: me.ID, incarnation: incarnation}
		rows, err := s.start(testkit.Context(t), []*job{{id: id, attempt: 1}}, again)
		require.NoError(t, err)
		return rows
	}

	t.Run("Start", func(t *testing.T) {
		t.Parallel()
		id := execution(lifecycle.StatusScheduled)
		require.Empty(t, start(id, uuid.New(), false), "a process that has lost its name starts nothing")
		require.Len(t, start(id, incarnation, false), 1)
		require.Empty(t, start(id, incarnation, false), "S2: once")
		again := start(id, incarnation, true)
		require.Len(t, again, 1)
		require.Equal(t, lifecycle.StatusRunning, again[0].Status)
		testkit.Exec(t, st, "update execution set status = 'completed' where id = $1", id)
		require.Empty(t, start(id, incarnation, true))
	})

	t.Run("StartCancelledMeanwhile", func(t *testing.T) {
		t.Parallel()
		id := execution(lifecycle.StatusScheduled)
		require.Len(t, start(id, incarnation, false), 1)
		testkit.Exec(t, st, "update execution set status = 'canceling' where id = $1", id)
		again := start(id, incarnation, true)
		require.Len(t, again, 1)
		require.Equal(t, lifecycle.StatusCancelled, again[0].Status)
	})

	t.Run("Finish", func(t *testing.T) {
		t.Parallel()
		a := newTestAnnouncer(&scripted{})
		f := &finisher{
			store: st, worker: me.ID, roster: newRoster(4), announcer: a, logger: telemetry.Discard(),
			metrics: NewMetrics(nil), wake: make(chan struct{}, 1),
		}
		mine, foreign := execution(lifecycle.StatusRunning), execution(lifecycle.StatusRunning)
		testkit.Exec(t, st, "update execution set status = 'abandoned' where id = $1", foreign)
		later, moved := execution(lifecycle.StatusRunning), execution(lifecycle.StatusRunning)
		testkit.Exec(t, st, "update execution set attempt = 2 where id = $1", later)
		testkit.Exec(t, st, "update execution set worker = $2 where id = $1", moved, testkit.Worker(t, st, "other").ID)
		var batch []ending
		for _, id := range []int64{mine, foreign, later, moved} {
			j, added := f.roster.add(t.Context(), id, 1)
			require.True(t, added)
			batch = append(batch, ending{job: j, status: lifecycle.StatusCompleted, result: `{"succeeded":true}`})
		}
		require.NoError(t, f.once(t.Context(), &ends{list: batch}))
		require.Len(t, a.dequeue(), 1)
		for _, id := range []int64{later, moved} {
			require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, st, id), "another attempt or worker runs it")
			testkit.Exec(t, st, "update execution set status = 'completed' where id = $1", id)
		}
		require.NoError(t, f.once(t.Context(), &ends{list: batch}))
		require.Empty(t, a.dequeue(), "not won again")
		require.NoError(t, f.once(t.Context(), &ends{list: batch, uncertain: true}))
		require.Len(t, a.dequeue(), 1,
			"its first announcement may be lost with the answer; the foreign ends are not announced")
		require.Zero(t, testkit.Count(t, st, "select count(*) from late_write"),
			"guards, not the trigger, keep late writes out")
	})

	t.Run("AResultTheDatabaseRefusesFailsAloneAndDoesNotBlock", func(t *testing.T) {
		t.Parallel()
		f := &finisher{
			store: st, worker: me.ID, roster: newRoster(4), announcer: newTestAnnouncer(&scripted{}),
			logger: telemetry.Discard(), metrics: NewMetrics(nil), wake: make(chan struct{}, 1),
		}
		good, bad := execution(lifecycle.StatusRunning), execution(lifecycle.StatusRunning)
		var batch []ending
		for id, result := range map[int64]string{good: `{"ok":1}`, bad: `{"nul":"\u0000"}`} {
			j, _ := f.roster.add(t.Context(), id, 1)
			batch = append(batch, ending{job: j, status: lifecycle.StatusCompleted, result: result})
		}
		require.True(t, f.write(testkit.Context(t), batch, false))
		require.Equal(t, lifecycle.StatusCompleted, testkit.StatusOf(t, st, good))
		require.Equal(t, lifecycle.StatusFailed, testkit.StatusOf(t, st, bad))
		require.Zero(t, f.roster.size())
	})
}

// An execution that was given back may start again after its row was read. It is in hand then, and only the time of
// the start tells.
func TestAnExecutionThatStartedSinceItWasReadIsNotForgotten(t *testing.T) {
	st := testkit.Store(t)
	m := &membership{store: st, logger: testkit.Logger(t), incarnation: uuid.New()}
	require.NoError(t, m.enrol(testkit.Context(t), Config{Name: "w", Type: "local"}, nil))
	id := testkit.Execution(t, st, testkit.Action(t, st, "read.before"), func(row *testkit.ExecutionRow) {
		row.Worker, row.Status, row.Attempt = &m.id, lifecycle.StatusRunning, 1
	}).ID
	testkit.Hold(t, st, id, 1)
	read := func() store.ReadHeldRunsRow {
		rows, err := st.ReadHeldRuns(testkit.Context(t), m.id)
		require.NoError(t, err)
		require.Len(t, rows, 1)
		return rows[0]
	}
	before := read()
	testkit.Exec(t, st, "update execution set started_at = now() where id = $1", id)
	ended, err := m.settle(testkit.Context(t), forgottenWith, []int64{id}, &before.At)
	require.NoError(t, err)
	require.Empty(t, ended)
	after := read()
	ended, err = m.settle(testkit.Context(t), forgottenWith, []int64{id}, &after.At)
	require.NoError(t, err)
	require.Len(t, ended, 1)
}

// A process that has lost its name does not end the executions of earlier processes: the newer process may run them.
func TestAProcessWithoutItsNameEndsNoExecutions(t *testing.T) {
	st := testkit.Store(t)
	process := func() *membership {
		m := &membership{store: st, logger: testkit.Logger(t), incarnation: uuid.New()}
		require.NoError(t, m.enrol(testkit.Context(t), Config{Name: "w", Type: "local"}, nil))
		return m
	}
	slow, newer := process(), process()
	require.Equal(t, slow.id, newer.id)
	action := testkit.Action(t, st, "lost.name")
	id := testkit.Execution(t, st, action, func(row *testkit.ExecutionRow) {
		row.Worker, row.Status, row.Attempt = &newer.id, lifecycle.StatusRunning, 1
	}).ID
	testkit.Exec(t, st, `INSERT INTO execution_holder (execution, state_id, worker, attempt, granted_at)
		VALUES ($1, 1, $2, 1, now())`, id, newer.id)
	ended, err := slow.endLeftovers(testkit.Context(t))
	require.NoError(t, err)
	require.Empty(t, ended)
	require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, st, id))
	ended, err = newer.endLeftovers(testkit.Context(t))
	require.NoError(t, err)
	require.Len(t, ended, 1)
}
