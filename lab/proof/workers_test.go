package proof

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/crashpoint"
	"github.com/attune-go/attune/lab/testkit"
)

// actScript is an action as a process of its own, which logs its start. A worker that dies cannot undo that.
const actScript = "stage.script"

// script makes the action and returns the number of starts of each execution.
func (s *stage) script() func() map[int64]int { return s.scriptFor("0.02") }

// scriptFor makes it run for a time, in the words of sleep(1).
func (s *stage) scriptFor(pause string) func() map[int64]int {
	dir := s.t.TempDir()
	path, starts := filepath.Join(dir, "run.sh"), filepath.Join(dir, "starts")
	text := fmt.Sprintf("#!/bin/sh\necho \"$ATTUNE_EXEC_ID\" >> '%s'\nsleep %s\n", starts, pause)
	require.NoError(s.t, os.WriteFile(path, []byte(text), 0o700))
	testkit.Action(s.t, s.store, actScript, func(a *testkit.ActionRow) { a.Entrypoint, a.MaxRetries = path, 2 })
	return func() map[int64]int { return startsIn(s.t, starts) }
}

// startsIn reads the number of starts of each execution from the log of the actions; without a start there is
// none.
func startsIn(t testing.TB, path string) map[int64]int {
	t.Helper()
	raw, err := os.ReadFile(path)
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(t, err)
	}
	counts := map[int64]int{}
	for line := range strings.Lines(string(raw)) {
		id, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		require.NoError(t, err)
		counts[id]++
	}
	return counts
}

// process starts a worker as a process and waits until it works.
func (s *stage) process(name string, settings ...string) *process {
	p := s.run("worker", append([]string{
		"ATTUNE__WORKER__NAME=" + name, "ATTUNE__WORKER__HEARTBEAT_INTERVAL=200ms",
		"ATTUNE__WORKER__MAX_CONCURRENT_TASKS=4",
	}, settings...)...)
	p.says(s.t, "Worker started")
	return p
}

// aside starts a worker that gets nothing until its uncordon, so that it can replace another one at once, however
// busy the machine is.
func (s *stage) aside(name string, settings ...string) (p *process, let func()) {
	p = s.process(name, settings...)
	return p, s.cordoned(name)
}

// cordoned keeps a worker from new work until its uncordon.
func (s *stage) cordoned(name string) (let func()) {
	s.t.Helper()
	require.Equal(s.t, 1, testkit.Exec(s.t, s.store, `UPDATE worker SET cordoned = true WHERE name = $1`, name))
	return func() { testkit.Exec(s.t, s.store, `UPDATE worker SET cordoned = false WHERE name = $1`, name) }
}

// watchful are the settings of a replica that presumes a worker dead after three seconds. A live one gets longer
// to start its work: on a busy machine that may take seconds after its registration.
func watchful() []string {
	return []string{
		"ATTUNE__EXECUTOR__NO_WORKERS=wait", "ATTUNE__EXECUTOR__HEARTBEAT_INTERVAL=1s",
		"ATTUNE__EXECUTOR__HEARTBEAT_STALENESS_MULTIPLIER=3",
		"ATTUNE__EXECUTOR__TIMEOUT_CHECK_INTERVAL=200ms", "ATTUNE__EXECUTOR__SCHEDULED_TIMEOUT=30s",
	}
}

// requireDoneOnce checks that each of these completed once in the end, at any attempt, that a lost one was retried
// once, and that by the log of the actions no attempt started twice.
func (s *stage) requireDoneOnce(ids []int64, starts map[int64]int) {
	s.t.Helper()
	require.Equal(s.t, len(ids), s.count(`SELECT count(*) FROM execution o WHERE o.id = ANY ($1) AND EXISTS (
		SELECT FROM execution e WHERE e.status = 'completed' AND coalesce(e.original_execution, e.id) = o.id)`, ids), "L2: everything is done in the end")
	require.Zero(s.t, s.count(`SELECT count(*) FROM (
		SELECT FROM execution WHERE status = 'completed' GROUP BY coalesce(original_execution, id) HAVING count(*) > 1) twice`), "completed executions are not retried")
	require.Equal(s.t, s.count(`SELECT count(*) FROM execution WHERE status <> 'completed'`),
		s.count(`SELECT count(*) FROM execution_retry`), "S19: one retry for each that was lost")
	for id, n := range starts {
		require.Equal(s.t, 1, n, "S2: the starts of execution %d", id)
	}
}

// F24 and L4: workers die between two effects: with rows that say running, with ended actions and rows that have
// not, with unreported ends. The engine decides all of their executions, and retries an unfinished one as a new
// row while its action allows it. By the log of the actions no attempt starts twice (S2, S19), every end is
// published (S14) and every slot released.
func TestWorkersThatDieAtAnyPointAreFollowedByAnother(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "kill workers at their points; other tests kill replicas")
	s := newStage(t)
	starts := s.script()
	engine := s.serve(watchful()...)
	var doomed []*process
	for i, point := range crashpoint.Worker() {
		doomed = append(doomed, s.process(fmt.Sprintf("doomed-%d", i), dieAt(point, 3)))
	}
	var ids []int64
	testkit.Eventually(t, func() bool {
		if len(ids) < 200 {
			ids = append(ids, s.request(actScript, 4)...)
		}
		return !slices.ContainsFunc(doomed, func(p *process) bool { return !p.killed() })
	}, 30*time.Second, "every worker dies at its point")
	rescue := s.process("rescue")
	s.over()

	require.GreaterOrEqual(t, s.count(`SELECT count(*) FROM execution WHERE status = 'abandoned'`), 2,
		"two workers died with running executions")
	s.requireDoneOnce(ids, starts())
	rows, err := s.store.Pool().Query(testkit.Context(t), `SELECT id, status::text FROM execution`)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var id int64
		var status string
		require.NoError(t, rows.Scan(&id, &status))
		testkit.Eventually(t, func() bool { return len(s.completions.of(id)) > 0 }, 5*time.Second,
			"S14: the end of execution %d is published", id)
		require.Equal(t, []string{status}, s.completions.of(id), "S14: the published ends of execution %d", id)
	}
	require.NoError(t, rows.Err())
	require.Zero(t, rescue.stop(t))
	require.Zero(t, engine.stop(t))
}

// F2, for a worker: it freezes with running executions and ones that it has not started, until the engine presumes
// it dead and has moved all of them. When it continues, it starts nothing that was moved (S2), and the engine
// stores what it reports about the rest beside the rows, which stay as decided (S8, S9).
func TestAFrozenWorkerDoesNoHarmWhenItContinues(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "freeze a worker until it is given up")
	s := newStage(t)
	starts := s.script()
	engine := s.serve(watchful()...)
	// It starts at most three at once, and gets two more than the four that it may run.
	rescue, let := s.aside("rescue")
	frozen := s.process("frozen", freezeAt("worker:started", 1))
	var ids []int64
	testkit.Eventually(t, func() bool {
		if len(ids) < 80 {
			ids = append(ids, s.request(actScript, 4)...)
		}
		return frozen.stopped(t) && s.count(`SELECT count(*) FROM execution WHERE status = 'scheduled'`) > 0
	}, 30*time.Second, "it is frozen with work that it has not started")
	running := s.count(`SELECT count(*) FROM execution WHERE status = 'running'`)
	require.Positive(t, running)
	let()
	s.over()
	abandoned := s.count(`SELECT count(*) FROM execution WHERE status = 'abandoned'`)
	require.GreaterOrEqual(t, abandoned, running, "also those that the database started after it froze")
	require.Positive(t, s.count(`SELECT count(*) FROM execution WHERE status = 'completed' AND attempt = 2`),
		"unstarted work was moved")
	late := s.count(`SELECT count(*) FROM late_write`)

	require.NoError(t, frozen.cmd.Process.Signal(syscall.SIGCONT))
	ids = append(ids, s.request(actScript, 40)...)
	s.over()
	require.Equal(t, late, s.count(`SELECT count(*) FROM late_write`), "a worker of ours asks before it writes")
	require.Equal(t, abandoned, s.count(`SELECT count(*) FROM execution WHERE status = 'abandoned'`))
	require.Zero(t, frozen.stop(t), "it has finished its running executions")
	s.requireDoneOnce(ids, starts())
	require.Zero(t, rescue.stop(t))
	require.Zero(t, engine.stop(t))
}

// A second process with the name of a living worker ends with exit code 3 and says which process that is. After kill -9
// the name is free at once.
func TestASecondProcessDoesNotTakeTheNameOfAWorker(t *testing.T) {
	s := newStage(t)
	first := s.run("worker", "ATTUNE_WORKER_NAME=only")
	first.says(t, "Worker started")
	second := s.run("worker", "ATTUNE_WORKER_NAME=only")
	testkit.Eventually(t, second.ended, 30*time.Second)
	require.Equal(t, 3, second.cmd.ProcessState.ExitCode(), "%s", second.log)
	require.Contains(t, second.log.String(), fmt.Sprintf("as process %d", first.cmd.Process.Pid))
	require.Contains(t, second.log.String(), "--replace")
	require.False(t, first.ended())
	first.kill()
	third := s.run("worker", "ATTUNE_WORKER_NAME=only")
	third.says(t, "Worker started")
	require.NotContains(t, third.log.String(), "waiting for its heartbeat")
	require.Zero(t, third.stop(t))
}
