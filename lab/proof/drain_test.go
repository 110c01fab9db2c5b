package proof

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
)

// leaveTimeout is the longest acceptable time for the consequences of a leave: less than any timeout that would decide
// them otherwise, which is at least 90 s.
const leaveTimeout = 75 * time.Second

// Upstream 31: each of three workers under load is stopped and started again in turn. Nothing fails, nothing is
// retried, nothing starts twice, and nothing waits for a timeout.
func TestWorkersAreRestartedInTurnUnderLoad(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "restart workers in turn")
	s := newStage(t)
	starts := s.script()
	engine := s.serve("ATTUNE__EXECUTOR__NO_WORKERS=wait")
	names := []string{"one", "two", "three"}
	processes := map[string]*process{}
	for _, name := range names {
		processes[name] = s.process(name)
	}
	each := 25
	if testkit.Slow() {
		each = 60
	}
	ids := s.request(actScript, each)
	begin := time.Now()
	for _, name := range names {
		ids = append(ids, s.request(actScript, each)...)
		require.Zero(t, processes[name].stop(t))
		ids = append(ids, s.request(actScript, each)...)
		processes[name] = s.process(name)
	}
	s.over()
	require.Less(t, time.Since(begin), leaveTimeout, "nothing waited for a timeout")
	s.requireAllDoneAtOnce(ids, starts())
	for _, p := range processes {
		require.Zero(t, p.stop(t))
	}
	require.Zero(t, engine.stop(t))
}

// requireAllDoneAtOnce checks that the first row of each of these was completed by one start.
func (s *stage) requireAllDoneAtOnce(ids []int64, starts map[int64]int) {
	s.t.Helper()
	require.Equal(s.t, len(ids), s.count(`SELECT count(*) FROM execution WHERE id = ANY ($1) AND status = 'completed'`,
		ids), "%s", s.others(ids))
	require.Zero(s.t, s.count(`SELECT count(*) FROM execution_retry`))
	require.Zero(s.t, s.count(`SELECT count(*) FROM late_write`))
	require.Zero(s.t, s.count(`SELECT count(*) FROM lost_work WHERE outcome <> 'moved'`))
	require.Len(s.t, starts, len(ids))
	for id, n := range starts {
		require.Equal(s.t, 1, n, "S2: the starts of execution %d", id)
	}
}

// A drain under load: running executions end there, another worker gets the ones that were not started, nothing
// new arrives, and after the uncordon the worker works again.
func TestAWorkerIsDrainedUnderLoad(t *testing.T) {
	s := newStage(t)
	starts := s.script()
	s.serve("ATTUNE__EXECUTOR__NO_WORKERS=wait")
	s.process("drained")
	s.process("other")
	ctx := testkit.Context(t)
	at := func() int {
		return s.count(`SELECT count(*) FROM execution WHERE worker = (SELECT id FROM worker WHERE name = 'drained')`)
	}
	var ids []int64
	drains, each := 1, 40
	if testkit.Slow() {
		drains, each = 3, 80
	}
	for range drains {
		before := at()
		ids = append(ids, s.request(actScript, each)...)
		testkit.Eventually(t, func() bool { return at() > before }, leaveTimeout, "it gets executions")
		receipt, err := s.operator.ActOnWorker(ctx, triage.WorkerRequest{Act: triage.DrainWorker, Worker: "drained"})
		require.NoError(t, err)
		require.True(t, receipt.Settled)
		testkit.Eventually(t, func() bool {
			now, err := s.operator.WorkerNow(ctx, triage.WorkerRequest{Worker: "drained"})
			return err == nil && now.Empty()
		}, leaveTimeout, "it becomes empty")
		had := at()
		ids = append(ids, s.request(actScript, 40)...)
		s.over()
		require.Equal(t, had, at(), "it got nothing more")
		_, err = s.operator.ActOnWorker(ctx, triage.WorkerRequest{Act: triage.UncordonWorker, Worker: "drained"})
		require.NoError(t, err)
	}
	s.over()
	s.requireAllDoneAtOnce(ids, starts())
}

// The last worker can be drained: executions that it has not started and new ones wait, and run after the
// uncordon.
func TestTheLastWorkerIsDrained(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "drain the last worker; another test drains one of several")
	s := newStage(t)
	starts := s.script()
	s.serve("ATTUNE__EXECUTOR__NO_WORKERS=wait")
	s.process("last")
	ids := s.request(actScript, 60)
	testkit.Eventually(t,
		func() bool { return s.count(`SELECT count(*) FROM execution WHERE status = 'completed'`) > 5 }, leaveTimeout)
	_, err := s.operator.ActOnWorker(testkit.Context(t), triage.WorkerRequest{Act: triage.DrainWorker, Worker: "last"})
	require.NoError(t, err)
	running := `SELECT count(*) FROM execution WHERE status IN ('running', 'canceling')`
	testkit.Eventually(t, func() bool { return s.count(running) == 0 }, leaveTimeout, "running executions end")
	ids = append(ids, s.request(actScript, 5)...)
	time.Sleep(7 * time.Second) // longer than a sweep
	require.Zero(t, s.count(running))
	require.Zero(t,
		s.count(`SELECT count(*) FROM execution WHERE status NOT IN ('completed', 'scheduled', 'requested')`))
	_, err = s.operator.ActOnWorker(testkit.Context(t), triage.WorkerRequest{
		Act:    triage.UncordonWorker,
		Worker: "last",
	})
	require.NoError(t, err)
	s.over()
	s.requireAllDoneAtOnce(ids, starts())
}

// A worker that is killed during its drain is decided like every other when its heartbeat is stale: the engine
// abandons and retries what it ran, and moves what it had not started.
func TestAWorkerIsKilledWhileItDrains(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "kill a worker that drains")
	s := newStage(t)
	engine := s.serve(watchful()...)
	rescue, let := s.aside("rescue")
	doomed := s.process("doomed", "ATTUNE__WORKER__MAX_CONCURRENT_TASKS=1")
	path := filepath.Join(t.TempDir(), "slow.sh")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\nexec sleep 2\n"), 0o700))
	testkit.Action(t, s.store, "stage.slow", func(a *testkit.ActionRow) { a.Entrypoint, a.MaxRetries = path, 1 })
	ids := s.request("stage.slow", 3)
	testkit.Eventually(t,
		func() bool { return s.count(`SELECT count(*) FROM execution WHERE status = 'running'`) == 1 }, leaveTimeout)
	receipt, err := s.operator.ActOnWorker(testkit.Context(t),
		triage.WorkerRequest{Act: triage.DrainWorker, Worker: "doomed"})
	require.NoError(t, err)
	require.EqualValues(t, 1, receipt.After.Running)
	doomed.kill()
	let()
	s.over()
	require.Equal(t, 1, s.count(`SELECT count(*) FROM execution WHERE status = 'abandoned'`),
		"its death is noticed although it was draining")
	require.Equal(t, 1, s.count(`SELECT count(*) FROM execution_retry`), "the running execution is retried once")
	require.Equal(t, 3,
		s.count(
			`SELECT count(*) FROM execution WHERE status = 'completed' AND coalesce(original_execution, id) = ANY ($1)`, ids))
	require.Equal(t, 2,
		s.count(`SELECT count(*) FROM execution WHERE id = ANY ($1) AND status = 'completed' AND attempt = 2`, ids),
		"the others were moved in place")
	require.Zero(t, rescue.stop(t))
	require.Zero(t, engine.stop(t))
}

// An existing worker, which cannot recognize outdated dispatches: a drain sends it nothing new and moves nothing
// away; it finishes its executions.
func TestAForeignWorkerIsDrained(t *testing.T) {
	s := newStage(t)
	s.serve("ATTUNE__EXECUTOR__NO_WORKERS=wait")
	gate := make(chan struct{})
	foreign := testkit.StartFakeWorker(t, testkit.FakeWorkerConfig{
		AMQPURL: s.AMQP, DatabaseURL: s.Database, Name: "foreign", Concurrency: 1,
		Behave: func(ctx context.Context, _ testkit.Job) testkit.Answer {
			select {
			case <-gate:
			case <-ctx.Done():
			}
			return testkit.Answer{}
		},
	})
	ids := s.request(actFree, 3)
	testkit.Eventually(t, func() bool {
		return len(foreign.Runs()) == 1 && s.count(`SELECT count(*) FROM execution WHERE worker = $1`, foreign.ID) == 3
	}, leaveTimeout, "one runs, and two are dispatched")
	receipt, err := s.operator.ActOnWorker(testkit.Context(t),
		triage.WorkerRequest{Act: triage.DrainWorker, Worker: "foreign"})
	require.NoError(t, err)
	require.False(t, receipt.After.Fences)
	require.EqualValues(t, 3, receipt.After.Running+receipt.After.Unstarted)
	s.worker("other")
	time.Sleep(7 * time.Second) // longer than a sweep
	require.Equal(t, 3, s.count(`SELECT count(*) FROM execution WHERE id = ANY ($1) AND worker = $2`, ids, foreign.ID),
		"nothing is taken away")
	more := s.request(actFree, 5)
	close(gate)
	s.over()
	require.Equal(t, 8, s.count(`SELECT count(*) FROM execution WHERE status = $1::text::execution_status_enum`,
		lifecycle.StatusCompleted))
	require.Zero(t, s.count(`SELECT count(*) FROM execution WHERE id = ANY ($1) AND worker = $2`, more, foreign.ID),
		"it gets nothing more")
	require.Len(t, foreign.Runs(), 3)
}
