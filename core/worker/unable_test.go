package worker_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/worker"
	"github.com/attune-go/attune/lab/testkit"
)

// Without a folder for temporary files no action can start. The worker gives its work back, says why and takes no more.
// When it can start actions again, the same work runs.
func TestAWorkerThatCannotStartActionsGivesThemBack(t *testing.T) {
	b := setup(t)
	temp := filepath.Join(t.TempDir(), "missing")
	w := b.worker(t, func(c *worker.Config) { c.TempDir = temp })
	action := b.script(t, "unable.do", "echo done", nil)
	var ids []int64
	for range 3 {
		ids = append(ids, b.schedule(t, w, action, nil))
	}
	b.dispatch(t, w, ids[0])
	b.dispatchBatch(t, w, ids[1:]...)
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `select count(*) from worker where status = 'error'
			and capabilities->'health'->>'status' = 'unhealthy'
			and capabilities->'health'->>'trouble' like 'cannot start actions: %/missing: no such file%'`) == 1
	}, waitTimeout)
	require.Contains(t, w.Health().Trouble, "cannot start actions")
	b.queue(t, w, 0, 2)
	require.Equal(t, 3, testkit.Count(t, b.store,
		"select count(*) from execution where status = 'scheduled' and started_at is null and attempt = 1"))

	require.NoError(t, os.Mkdir(temp, 0o700))
	for _, id := range ids {
		status, r := b.await(t, id)
		require.Equal(t, lifecycle.StatusCompleted, status)
		require.Equal(t, "done\n", r.Stdout)
		require.Len(t, b.completions(id), 1)
	}
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `select count(*) from worker where status = 'active'
			and capabilities->'health'->>'status' = 'healthy' and not capabilities->'health' ? 'trouble'`) == 1
	}, waitTimeout)
	require.Zero(t, testkit.Count(t, b.store, "select count(*) from late_write"))
}

// A missing script is the action's fault, and the worker stays in service.
func TestAnActionThatCannotStartFails(t *testing.T) {
	b := setup(t)
	w := b.worker(t)
	for name, text := range map[string]string{"no_program": "\x7fELF", "no_interpreter": "#!/missing/interpreter\n"} {
		path := filepath.Join(t.TempDir(), "program")
		worker.WriteExecutable(t, path, text)
		status, r := b.run(t, w, b.described(t, "broken."+name, path, nil, false), nil)
		require.Equal(t, lifecycle.StatusFailed, status, name)
		require.Contains(t, r.Error, "start "+path, name)
	}
	require.Empty(t, w.Health().Trouble)
}

// A program that is being written starts when it is written. Meanwhile other executions start.
func TestAProgramThatIsBeingWrittenStartsLater(t *testing.T) {
	b := setup(t)
	w := b.worker(t)
	path := filepath.Join(t.TempDir(), "program")
	worker.WriteExecutable(t, path, "#!/bin/sh\necho whole\n")
	writer, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	id := b.schedule(t, w, b.described(t, "busy.do", path, nil, false), nil)
	b.dispatch(t, w, id)
	b.awaitRunning(t, id)
	status, r := b.run(t, w, b.script(t, "beside.do", "echo beside", nil), nil)
	require.Equal(t, lifecycle.StatusCompleted, status, r.Error)
	require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, b.store, id))
	require.NoError(t, writer.Close())
	status, r = b.await(t, id)
	require.Equal(t, lifecycle.StatusCompleted, status, r.Error)
	require.Equal(t, "whole\n", r.Stdout)
}

// An execution that was cancelled while the worker could not start it ends as cancelled.
func TestACancelledExecutionIsNotGivenBack(t *testing.T) {
	b := setup(t)
	w := testkit.Worker(t, b.store, "w1")
	give := func(status lifecycle.Status, attempt int32) ([]store.ReturnExecutionRow, int64) {
		id := testkit.Execution(t, b.store, b.core(t, "core.noop"), func(e *testkit.ExecutionRow) {
			e.Worker, e.Status, e.Attempt = &w.ID, status, 2
		}).ID
		rows, err := b.store.ReturnExecution(testkit.Context(t), store.ReturnExecutionParams{
			CancelledResult: []byte("{}"), ID: id, Worker: &w.ID, Attempt: attempt,
		})
		require.NoError(t, err)
		return rows, id
	}
	rows, id := give(lifecycle.StatusCanceling, 2)
	require.Len(t, rows, 1)
	require.Equal(t, lifecycle.StatusCancelled, testkit.StatusOf(t, b.store, id))
	rows, id = give(lifecycle.StatusRunning, 2)
	require.Empty(t, rows)
	require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, b.store, id))
	_, id = give(lifecycle.StatusRunning, 1)
	require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, b.store, id), "another attempt is not touched")
}
