package advancement_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/advancement"
	"github.com/attune-go/attune/core/batch"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/lab/testkit"
)

const single = "version: \"1\"\ntasks: [{name: a, action: pk.a}]"

// The existing engine creates the workflow before its execution runs, and may die in between (upstream 38): the
// execution becomes running, and the workflow goes on.
func TestAWorkflowWhoseExecutionWasNeverSaidToRun(t *testing.T) {
	t.Parallel()
	for _, status := range []lifecycle.Status{lifecycle.StatusRequested, lifecycle.StatusScheduling} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			id := w.existing(w.define("pk.one", single), nil, nil)
			testkit.Exec(t, w.store, `UPDATE execution SET status = $2 WHERE id = $1`, id, status)
			step := advancement.NewStep(w.cfg, w.sources, []advancement.Request{{Start: id}})
			_, err := w.batches.Run(testkit.Context(t), step)
			require.NoError(t, err)
			w.order(append(step.Again(), advancement.Request{Workflow: w.workflowOf(id)})...)
			require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, w.store, id))
			w.completes(id)
			require.Equal(t, []string{"a/0/0"}, w.ran)
		})
	}
}

// A row for a task that never got its child does not keep the workflow from being
// taken over.
func TestARowWithoutItsChildIsTakenOver(t *testing.T) {
	w := setup(t)
	id := w.existing(w.define("pk.one", single), nil, nil)
	testkit.Exec(t, w.store, `INSERT INTO workflow_task_dispatch (workflow_execution, task_name) VALUES ($1, 'a')`,
		w.workflowOf(id))
	w.check(id)
	w.completes(id)
	require.Equal(t, []string{"a/0/0"}, w.ran)
}

// between is a step that does something between the plan of a batch and its locks.
type between func()

func (between) Executions() []int64                           { return nil }
func (b between) Plan(context.Context, *scheduler.Plan) error { b(); return nil }
func (between) Apply(*scheduler.Batch)                        {}

// A child that ends between the reading and the locking of a batch with an early report is read again, and its question
// is opened.
func TestAQuestionIsSeenHoweverEarlyItsEndIsReported(t *testing.T) {
	w := setup(t)
	id := w.request(w.define("pk.one", single), nil)
	w.take(nil, []int64{id})
	child := w.dispatched()[0].ID
	testkit.Exec(t, w.store, `UPDATE execution SET status = 'running', started_at = now() WHERE id = $1`, child)
	done := false
	_, err := w.batches.Run(testkit.Context(t), completionOf(child), between(func() {
		if !done {
			done = true
			testkit.Exec(t, w.store, `UPDATE execution SET status = 'completed', result = '{"data": {"__inquiry": {"prompt": "ok?"}}}' WHERE id = $1`, child)
		}
	}))
	require.NoError(t, err)
	require.Equal(t, 1, testkit.Count(t, w.store, `SELECT count(*) FROM inquiry WHERE execution = $1`, child))
}

// The sweep finds a question that was never opened, for any reason.
func TestUnopenedInquiriesAreFound(t *testing.T) {
	w := setup(t)
	id := w.request(w.define("pk.one", single), nil)
	w.take(nil, []int64{id})
	child := w.dispatched()[0]
	w.finish(child)
	w.released(child.ID)
	testkit.Exec(t, w.store, `ALTER TABLE execution DISABLE TRIGGER USER`)
	testkit.Exec(t, w.store, `UPDATE execution SET result = '{"__inquiry": {"prompt": "ok?"}}', updated = now() - interval '1 min' WHERE id = $1`, child.ID)
	rows, err := w.store.FindWorkflows(testkit.Context(t), 10, 0, 10)
	require.NoError(t, err)
	require.Equal(t, []int64{child.ID}, rows[0].Unasked)
}

// A workflow that can neither be led on nor ended costs the others nothing: it waits
// for its turns, which become rare.
func TestAHopelessWorkflowDelaysNoOther(t *testing.T) {
	w := setup(t)
	action := w.define("pk.one", single)
	bad := w.request(action, nil)
	w.take(nil, []int64{bad})
	testkit.Exec(t, w.store,
		fmt.Sprintf(`ALTER TABLE workflow_execution ADD CHECK (execution <> %d OR version = 1)`, bad))
	runner := advancement.NewRunner(w.cfg, w.batches, func(error, int) batch.Verdict { return batch.Suspect },
		func(context.Context, scheduler.Result) {}, testkit.Logger(t), nil)
	require.NoError(t, runner.Start(testkit.Context(t)))
	t.Cleanup(runner.Stop)
	child := w.dispatched()[0]
	w.finish(child)
	w.released(child.ID)
	runner.Advance(scheduler.Task{Workflow: w.workflowOf(bad), Child: child.ID})
	for range 5 {
		good := w.request(action, nil)
		runner.Begin(good)
		testkit.Eventually(t, func() bool { return testkit.StatusOf(t, w.store, good) == lifecycle.StatusRunning },
			10*time.Second)
	}
	testkit.Eventually(t, func() bool { return runner.Stuck() == 1 }, 30*time.Second, "it is left alone in the end")
}

// A workflow that calls itself comes to an end, however its tasks call it.
func TestAWorkflowThatCallsItselfEnds(t *testing.T) {
	w := setup(t)
	raw := []byte(`{"version": "1", "tasks": [{"name": "again", "action": "pk.self"}]}`)
	id := w.request(w.keep("pk.self", raw), nil)
	w.run()
	status, _ := w.outcome(id)
	require.Equal(t, lifecycle.StatusFailed, status)
	require.Equal(t, 17, testkit.Count(t, w.store, `SELECT count(*) FROM workflow_execution`))
	require.Equal(t, 1, testkit.Count(t, w.store,
		`SELECT count(*) FROM execution WHERE result ->> 'message' LIKE '%does a workflow call itself?'`))
}
