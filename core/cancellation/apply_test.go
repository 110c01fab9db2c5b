package cancellation_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/cancellation"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// The table has every status, each of its transitions is legal, and terminal statuses have none (S8).
func TestTheTableIsCompleteAndLegal(t *testing.T) {
	t.Parallel()
	for _, status := range lifecycle.Statuses {
		for _, f := range []cancellation.Facts{
			{Status: status},
			{Status: status, Worker: true},
			{Status: status, Worker: true, Started: true},
			{Status: status, Worker: true, Fences: true},
			{Status: status, Worker: true, Fences: true, Started: true},
			{Status: status, Worker: true, Since: time.Hour},
			{Status: status, Tends: true},
		} {
			rule := cancellation.Decide(f, time.Minute)
			require.NotEmpty(t, rule.Why)
			switch rule.Step {
			case cancellation.StepEnd:
				require.True(t, lifecycle.CanMove(status, lifecycle.StatusCancelled), "%+v", f)
			case cancellation.StepAsk:
				require.True(t, lifecycle.CanMove(status, lifecycle.StatusCanceling), "%+v", f)
				require.True(t, f.Worker || f.Tends, "only a worker or a workflow can be asked: %+v", f)
			case cancellation.StepWait:
				require.Equal(t, lifecycle.StatusCanceling, status)
				require.True(t, f.Tends)
			case cancellation.StepAgain:
				require.Equal(t, lifecycle.StatusCanceling, status)
				require.True(t, f.Worker, "only a worker can be asked: %+v", f)
			case cancellation.StepNone:
				require.True(t, status.Terminal(), "%+v", f)
			}
			require.Equal(t, status.Terminal(), rule.Step == cancellation.StepNone, "%+v", f)
		}
	}
}

// One execution in every status: its next status, the messages, and the note.
func TestTheOutcomeOfEveryStatus(t *testing.T) {
	b := setup(t)
	age := func(d time.Duration) func(*testkit.ExecutionRow) { return func(e *testkit.ExecutionRow) { e.Age = d } }
	unstarted := func(id int64) int64 {
		testkit.Exec(t, b.store, `ALTER TABLE execution DISABLE TRIGGER USER`)
		testkit.Exec(t, b.store, `UPDATE execution SET started_at = NULL WHERE id = $1`, id)
		testkit.Exec(t, b.store, `ALTER TABLE execution ENABLE TRIGGER USER`)
		return id
	}
	for _, c := range []struct {
		name   string
		id     int64
		want   lifecycle.Status
		worker *testkit.WorkerRow // the receiver of a message
	}{
		{"requested", b.at(t, lifecycle.StatusRequested, nil), lifecycle.StatusCancelled, nil},
		{"scheduling", b.at(t, lifecycle.StatusScheduling, nil), lifecycle.StatusCancelled, nil},
		{"scheduled, fenced", b.at(t, lifecycle.StatusScheduled, &b.fenced), lifecycle.StatusCancelled, &b.fenced},
		{"scheduled, not fenced", b.at(t, lifecycle.StatusScheduled, &b.plain), lifecycle.StatusCanceling, &b.plain},
		{"running", b.at(t, lifecycle.StatusRunning, &b.fenced), lifecycle.StatusCanceling, &b.fenced},
		{"running, not fenced", b.at(t, lifecycle.StatusRunning, &b.plain), lifecycle.StatusCanceling, &b.plain},
		{"running without a worker", b.at(t, lifecycle.StatusRunning, nil), lifecycle.StatusCancelled, nil},
		{"canceling", b.at(t, lifecycle.StatusCanceling, &b.plain, age(time.Hour)), lifecycle.StatusCanceling,
			&b.plain},
		{"canceling without a worker", b.at(t, lifecycle.StatusCanceling, nil), lifecycle.StatusCancelled, nil},
		{
			"canceling, not started", unstarted(b.at(t, lifecycle.StatusCanceling, &b.plain)),
			lifecycle.StatusCanceling,
			&b.plain,
		},
		{
			"canceling, long not started", unstarted(b.at(t, lifecycle.StatusCanceling, &b.plain, age(time.Minute))),
			lifecycle.StatusCancelled, &b.plain,
		},
		{
			"canceling, never to be started", unstarted(b.at(t, lifecycle.StatusCanceling, &b.fenced)),
			lifecycle.StatusCancelled, &b.fenced,
		},
	} {
		was := testkit.StatusOf(t, b.store, c.id)
		result, sent := b.one(t, c.id)
		require.Equal(t, c.want, result.Status, c.name)
		require.Equal(t, was, result.Was, c.name)
		require.Equal(t, c.want, testkit.StatusOf(t, b.store, c.id), c.name)
		require.Equal(t, 1,
			b.count(t,
				`SELECT count(*) FROM execution_cancel WHERE execution = $1 AND actor = 'ann' AND reason = 'enough'`,
				c.id), c.name)
		if c.want == lifecycle.StatusCancelled {
			require.Equal(t, cancellation.Cancelled, result.Outcome, c.name)
			b.requireEnd(t, c.id, sent[0])
			sent = sent[1:]
		} else {
			require.Equal(t, cancellation.Asked, result.Outcome, c.name)
			require.Equal(t, c.worker.Name, result.WorkerName, c.name)
		}
		if c.worker == nil {
			require.Empty(t, sent, c.name)
			continue
		}
		require.Len(t, sent, 1, c.name)
		requireStop(t, c.id, *c.worker, sent[0])
	}
	require.Zero(t, b.count(t, `SELECT count(*) FROM late_write`), "S8: nothing had to be refused")
}

// An ended execution stays as it ended, and an unknown one is reported as unknown.
func TestEndedExecutionsStay(t *testing.T) {
	b := setup(t)
	for _, status := range lifecycle.TerminalStatuses {
		id := b.at(t, status, &b.plain)
		result, sent := b.one(t, id)
		require.Equal(t, cancellation.Ended, result.Outcome)
		require.Equal(t, status, result.Status)
		require.Empty(t, sent)
		require.Equal(t, status, testkit.StatusOf(t, b.store, id))
		noted := b.count(t, `SELECT count(*) FROM execution_cancel WHERE execution = $1`, id)
		require.Equal(t, status != lifecycle.StatusCompleted && status != lifecycle.StatusCancelled, noted == 1,
			"S15: what failed and might be about to be repeated is not: %s", status)
	}
	result, _ := b.one(t, 999_999)
	require.Equal(t, cancellation.Missing, result.Outcome)
}

// A cancel applies to the newest attempt, also one that is not due yet; it then never becomes due.
func TestARetryIsCancelledInPlaceOfItsOriginal(t *testing.T) {
	b := setup(t)
	first := b.at(t, lifecycle.StatusFailed, &b.plain)
	second := b.retryOf(t, first, lifecycle.StatusFailed, false)
	third := b.retryOf(t, second, lifecycle.StatusRequested, true)

	page, err := b.apply(testkit.Context(t), cancellation.Request{Actor: "ann", Reason: "enough"}, first, second, third)
	require.NoError(t, err)
	require.Len(t, page.Results, 3)
	for i, id := range []int64{first, second, third} {
		require.Equal(t, cancellation.Cancelled, page.Results[i].Outcome)
		require.Equal(t, id, page.Results[i].ID)
		require.Equal(t, third, page.Results[i].Acting())
	}
	require.Len(t, page.Messages, 1, "S14: one end")
	b.requireEnd(t, third, page.Messages[0])
	require.Equal(t, lifecycle.StatusFailed, testkit.StatusOf(t, b.store, first))
	require.Zero(t, b.count(t, `SELECT count(*) FROM execution_retry WHERE waiting`))
}

// A cancel of an execution ends its inquiry, and its workflow (upstream 51).
func TestInquiriesOfACancelledExecutionEndWithIt(t *testing.T) {
	b := setup(t)
	id := b.at(t, lifecycle.StatusRunning, nil)
	testkit.Exec(t, b.store, `INSERT INTO inquiry (execution, prompt) VALUES ($1, 'go on?')`, id)
	testkit.Exec(t, b.store, `WITH def AS (
			INSERT INTO workflow_definition (ref, pack, pack_ref, label, version, definition)
			SELECT 'pk.flow', pack, pack_ref, 'flow', '1', '{}' FROM action WHERE id = $2 RETURNING id)
		INSERT INTO workflow_execution (execution, workflow_def, task_graph, status) SELECT $1, id, '{}',
			'running' FROM def`, id, b.action.ID)
	b.one(t, id)
	require.Equal(t, 1, b.count(t, `SELECT count(*) FROM inquiry WHERE execution = $1 AND status = 'cancelled'`, id))
	require.Equal(t, 1,
		b.count(t, `SELECT count(*) FROM workflow_execution WHERE execution = $1 AND status = 'cancelled'`, id))
}

// A worker that sends no heartbeats is not asked; the search for orphans decides.
func TestAWorkerThatIsGoneIsNotAsked(t *testing.T) {
	b := setup(t)
	gone := testkit.Worker(t, b.store, "gone", func(w *testkit.WorkerRow) { w.HeartbeatAge = time.Hour })
	result, sent := b.one(t, b.at(t, lifecycle.StatusRunning, &gone))
	require.Equal(t, cancellation.Asked, result.Outcome)
	require.True(t, result.WorkerGone)
	require.Empty(t, sent)
}

// The note keeps the first requester, but a later cancel completes a note without one.
func TestTheNoteKeepsTheFirstRequester(t *testing.T) {
	b := setup(t)
	id := b.at(t, lifecycle.StatusRunning, &b.plain)
	testkit.Exec(t, b.store, `UPDATE execution SET status = 'canceling' WHERE id = $1`, id)
	require.Equal(t, 1, b.count(t, `SELECT count(*) FROM execution_cancel WHERE execution = $1 AND actor IS NULL`, id),
		"the trigger notes it")
	b.one(t, id)
	_, err := b.apply(testkit.Context(t), cancellation.Request{Actor: "bob"}, id)
	require.NoError(t, err)
	require.Equal(t, 1, b.count(t,
		`SELECT count(*) FROM execution_cancel WHERE execution = $1 AND actor = 'ann' AND reason = 'enough'`, id))
}

// Preview returns the result of Apply, and changes nothing.
func TestPreviewEqualsApply(t *testing.T) {
	b := setup(t)
	failed := b.at(t, lifecycle.StatusFailed, &b.plain)
	b.retryOf(t, failed, lifecycle.StatusRequested, true)
	ids := []int64{
		b.at(t, lifecycle.StatusRequested, nil), b.at(t, lifecycle.StatusRunning, &b.plain),
		b.at(t, lifecycle.StatusCompleted, &b.plain), failed, 999_999,
	}
	request := cancellation.Request{Actor: "ann"}
	preview, err := cancellation.Preview(testkit.Context(t), b.store.Queries, request, ids)
	require.NoError(t, err)
	require.Zero(t, b.count(t, `SELECT count(*) FROM execution_cancel`))
	page, err := b.apply(testkit.Context(t), request, ids...)
	require.NoError(t, err)
	require.Equal(t, page.Results, preview)
	require.Equal(t, 2, countType(page, message.TypeExecutionCompleted))
}

func countType(page *cancellation.Page, kind string) int {
	n := 0
	for _, m := range page.Messages {
		if m.Type == kind {
			n++
		}
	}
	return n
}

func TestAPageHasItsBound(t *testing.T) {
	b := setup(t)
	_, err := b.apply(testkit.Context(t), cancellation.Request{}, make([]int64, cancellation.MaxPage+1)...)
	require.ErrorContains(t, err, "at most 200")
}

// An execution that is retried, or starts to wait, while its row is being locked is not decided by the older read:
// the cancel is asked for again, and then includes it.
func TestRowsThatChangeUnderALockAreDecidedAgain(t *testing.T) {
	b := setup(t)
	state := testkit.State(t, b.store, b.action, 1)
	var retry int64
	for name, c := range map[string]struct {
		id     int64
		change func(tx pgx.Tx, id int64) error
		acts   func(id int64) int64
	}{
		"repeated": {
			b.at(t, lifecycle.StatusFailed, &b.plain),
			func(tx pgx.Tx, id int64) error {
				return tx.QueryRow(t.Context(), `WITH made AS (
						INSERT INTO execution (action, action_ref, retry_count, original_execution)
						SELECT action, action_ref, 1, id FROM execution WHERE id = $1 RETURNING id,
							original_execution), noted AS (
						INSERT INTO execution_retry (failed, execution, reason, due) SELECT original_execution, id,
							'x', now() FROM made)
					SELECT id FROM made`, id).Scan(&retry)
			},
			func(int64) int64 { return retry },
		},
		"enqueued": {
			b.at(t, lifecycle.StatusRequested, nil),
			func(tx pgx.Tx, id int64) error {
				_, err := tx.Exec(t.Context(), `WITH counted AS (
						UPDATE execution_admission_state SET queued_count = 1, next_queue_order = 2 WHERE id = $1)
					INSERT INTO execution_admission_entry (state_id, execution_id, status, queue_order) VALUES ($1,
						$2, 'queued', 1)`, state.ID, id)
				return err
			},
			func(id int64) int64 { return id },
		},
	} {
		holder := testkit.Begin(t, b.store)
		_, err := holder.Exec(t.Context(), `SELECT FROM execution WHERE id = $1 FOR UPDATE`, c.id)
		require.NoError(t, err)
		done := make(chan *cancellation.Page, 1)
		go func() {
			page, err := b.apply(t.Context(), cancellation.Request{Actor: "ann", WithoutStats: true}, c.id)
			if err != nil {
				panic(err)
			}
			done <- page
		}()
		testkit.Eventually(t, func() bool {
			return b.count(t,
				`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) > 0
		}, testkit.TestTimeout)
		require.NoError(t, c.change(holder, c.id), name)
		require.NoError(t, holder.Commit(t.Context()))
		page := <-done
		require.Equal(t, []int64{c.id}, page.Again, name)
		require.Empty(t, page.Results, name)
		require.Empty(t, page.Messages, name)
		result, _ := b.one(t, c.id)
		require.Equal(t, cancellation.Cancelled, result.Outcome, name)
		require.Equal(t, c.acts(c.id), result.Acting(), name)
	}
	require.Zero(t, b.count(t, `SELECT count(*) FROM execution_admission_entry`))
	testkit.Exec(t, b.store, `DELETE FROM queue_stats`) // the entry was made without them
	testkit.Invariants(t, b.store)
}

// A page that only withdraws leaves everything alone that a worker has. It stores no request for it, by which the poll
// would stop it before its turn.
func TestAWithdrawalLeavesWhatWorkersHave(t *testing.T) {
	b := setup(t)
	waiting, parent := b.at(t, lifecycle.StatusRequested, nil), b.at(t, lifecycle.StatusRunning, nil)
	held := []int64{
		b.at(t, lifecycle.StatusScheduled, &b.fenced), b.at(t, lifecycle.StatusRunning, &b.plain),
		b.at(t, lifecycle.StatusCanceling, &b.plain),
	}
	testkit.Exec(t, b.store, `DELETE FROM execution_cancel`) // that of the third
	page, err := b.apply(testkit.Context(t), cancellation.Request{Actor: "ann", Waiting: true},
		append([]int64{waiting, parent}, held...)...)
	require.NoError(t, err)
	require.Equal(t, held, page.Held)
	require.Len(t, page.Results, 2, "the others are not missing")
	require.Equal(t, 2, b.count(t, `SELECT count(*) FROM execution_cancel WHERE execution = ANY ($1)`,
		[]int64{waiting, parent}))
	require.Zero(t, b.count(t, `SELECT count(*) FROM execution_cancel WHERE execution = ANY ($1)`, held))
	require.Equal(t, 2, b.count(t, `SELECT count(*) FROM execution WHERE status = 'cancelled'`))
	require.Len(t, page.Messages, 2)
}

// The writes repeat what was read: with another status, worker or attempt they fail, and change nothing.
func TestWritesAboutChangedRowsFail(t *testing.T) {
	b := setup(t)
	id := b.at(t, lifecycle.StatusScheduled, &b.fenced)
	for name, c := range map[string]struct {
		status  lifecycle.Status
		worker  int64
		attempt int32
	}{
		"status":  {lifecycle.StatusRunning, b.fenced.ID, 1},
		"worker":  {lifecycle.StatusScheduled, b.plain.ID, 1},
		"attempt": {lifecycle.StatusScheduled, b.fenced.ID, 2},
	} {
		ids, statuses := []int64{id}, []string{string(c.status)}
		workers, attempts := []int64{c.worker}, []int32{c.attempt}
		require.ErrorContains(t, b.store.EndCancelled(t.Context(), store.EndCancelledParams{
			Ids: ids, Statuses: statuses, Workers: workers, Attempts: attempts, Results: [][]byte{[]byte("{}")},
		}), "cancelled executions", name)
		require.ErrorContains(t, b.store.AskToStop(t.Context(), store.AskToStopParams{
			Ids: ids, Statuses: statuses, Workers: workers, Attempts: attempts,
		}), "executions asked to stop", name)
	}
	require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, b.store, id))
}

// A question that another service asks about an execution which a worker had stays open when that one is cancelled.
func TestQuestionsAboutWorkOfAWorkerStayOpen(t *testing.T) {
	b := setup(t)
	id := b.at(t, lifecycle.StatusScheduled, &b.fenced)
	testkit.Exec(t, b.store, `INSERT INTO inquiry (execution, prompt) VALUES ($1, 'go on?')`, id)
	result, _ := b.one(t, id)
	require.Equal(t, cancellation.Cancelled, result.Outcome)
	require.Equal(t, 1, b.count(t, `SELECT count(*) FROM inquiry WHERE status = 'pending'`))
}

// A started execution is not closed over the head of its worker, although that fences attempts.
func TestAStartedExecutionWaitsForItsWorker(t *testing.T) {
	t.Parallel()
	started := cancellation.Facts{
		Status: lifecycle.StatusCanceling, Worker: true, Fences: true, Started: true, Since: time.Hour,
	}
	require.Equal(t, cancellation.StepAgain, cancellation.Decide(started, cancellation.GraceDefault).Step)
}
