package inquiry_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/inquiry"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/lab/testkit"
)

// about makes an inquiry as the existing API does: a row, whatever the execution
// does, and no message.
func (b *bundle) about(t *testing.T, status lifecycle.Status, change ...func(*testkit.ExecutionRow)) asked {
	t.Helper()
	execution := testkit.Execution(t, b.store, b.act, append(change, func(e *testkit.ExecutionRow) {
		e.Status, e.Result = status, object{"exit_code": 0}
	})...).ID
	return asked{
		execution,
		int64(testkit.Count(t, b.store, `INSERT INTO inquiry (execution, prompt) VALUES ($1, 'fine?') RETURNING id`,
			execution)),
	}
}

// An inquiry of the API belongs to no task: it stays open until its answer or its timeout, however and whenever its
// execution ends. The execution stays as it is.
func TestInquiriesOfTheAPIOutliveTheirExecutions(t *testing.T) {
	b := setup(t)
	worker := testkit.Worker(t, b.store, "w1")
	at := func(e *testkit.ExecutionRow) { e.Worker = &worker.ID }
	task := func(e *testkit.ExecutionRow) {
		e.Worker, e.Parent, e.WorkflowTask = &worker.ID, &b.workflow, object{"task_name": "x"}
	}
	list := map[string]asked{}
	for _, status := range []lifecycle.Status{
		lifecycle.StatusCompleted, lifecycle.StatusFailed, lifecycle.StatusCancelled, lifecycle.StatusTimeout,
		lifecycle.StatusAbandoned,
	} {
		list["ended "+string(status)] = b.about(t, status, at)
	}
	list["never begun"] = b.about(t, lifecycle.StatusCancelled)
	list["of an ended workflow"] = b.about(t, lifecycle.StatusFailed, task)
	ends := b.about(t, lifecycle.StatusRunning, at)
	list["ends later"] = ends
	running := b.about(t, lifecycle.StatusRunning, at)
	list["running"] = running
	late := b.about(t, lifecycle.StatusFailed, at)
	stray := b.task(t) // the engine's own question ends with its execution
	b.ended(t, stray.execution, "abandoned")
	b.ended(t, b.workflow, "failed")
	b.watch(t)
	b.ended(t, ends.execution, "failed")
	b.becomes(t, stray, inquiry.Cancelled, lifecycle.StatusAbandoned)
	for name, a := range list {
		require.Equal(t, inquiry.Pending, b.status(t, a.inquiry), name)
	}

	before := map[string]string{}
	for name, a := range list {
		before[name] = string(testkit.StatusOf(t, b.store, a.execution)) + b.resultOf(t, a.execution)
	}
	early := list["ended failed"]
	b.announce(t, inquiry.Announced{Inquiry: early.inquiry}) // the message overtakes the commit
	for _, a := range list {
		testkit.Exec(t, b.store, `UPDATE inquiry SET status = 'responded', response = '{"approved": true}', responded_at = now() WHERE id = $1`, a.inquiry)
		b.announce(t, inquiry.Announced{Inquiry: a.inquiry})
	}
	for name, a := range list {
		b.becomes(t, a, inquiry.Responded, testkit.StatusOf(t, b.store, a.execution))
		require.Equal(t, before[name], string(testkit.StatusOf(t, b.store, a.execution))+b.resultOf(t, a.execution),
			name)
		require.Equal(t, 1, testkit.Count(t, b.store,
			`SELECT count(*) FROM inquiry WHERE id = $1 AND response = '{"approved": true}'`, a.inquiry))
	}
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM late_write WHERE execution <> $1`, stray.execution),
		"closed rows stay unchanged")

	testkit.Exec(t, b.store, `UPDATE inquiry SET timeout_at = clock_timestamp() WHERE id = $1`, late.inquiry)
	b.becomes(t, late, inquiry.Expired, lifecycle.StatusFailed)
}

// Inquiries of the API can be answered here too. Their execution continues, at a worker or as a workflow.
func TestInquiriesOfTheAPIAreAnswered(t *testing.T) {
	b := setup(t)
	worker := testkit.Worker(t, b.store, "w1")
	at := func(e *testkit.ExecutionRow) { e.Worker = &worker.ID }
	workflow := b.about(t, lifecycle.StatusRunning)
	testkit.Exec(t, b.store, `WITH d AS (
			INSERT INTO workflow_definition (ref, pack, pack_ref, label, version, definition)
			SELECT 'pk.w', p.id, 'pk', 'w', '1', '{}' FROM pack p WHERE p.ref = 'pk' RETURNING id)
		INSERT INTO workflow_execution (execution, workflow_def, task_graph, status) SELECT $1::bigint, d.id, '{}', 'running' FROM d`, workflow.execution)
	for name, a := range map[string]asked{
		"failed": b.about(t, lifecycle.StatusFailed, at), "completed": b.about(t, lifecycle.StatusCompleted, at),
		"running": b.about(t, lifecycle.StatusRunning, at), "workflow": workflow,
	} {
		was := testkit.StatusOf(t, b.store, a.execution)
		done, err := b.yes(testkit.Context(t), a.inquiry)
		require.NoError(t, err, name)
		require.False(t, done.Completed, name)
		b.becomes(t, a, inquiry.Responded, was)
		require.JSONEq(t, `{"exit_code": 0}`, b.resultOf(t, a.execution), name)
		_, err = b.yes(testkit.Context(t), a.inquiry)
		require.Equal(t, inquiry.AlreadyAnswered, refusal(t, err), name)
	}
}
