package proof

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
)

// The workflows of lists whose workers die: one allows retries of its items, the other does not.
const (
	flowSturdy  = "flow.sturdy"
	flowFragile = "flow.fragile"
)

// flowList is a list, with a task for its failure.
func flowList(more string) string {
	return `
version: "1"
vars: {way: none}
tasks:
  - name: list
    action: stage.script
    ` + more + `
    with_items: "{{ range(14) }}"
    concurrency: 4
    input: {item: "{{ item }}"}
    next:
      - {when: "{{ succeeded() }}", publish: [{way: whole}], do: [after]}
      - {when: "{{ failed() }}", publish: [{way: "{{ task.list.failed_count }}"}], do: [after]}
  - {name: after, action: stage.script, input: {}}
output_map: {way: "{{ way }}", results: "{{ length(task.list.results) }}"}
`
}

// F24, L4, S10, S12: the worker of a list is killed in the middle, with as many running items as the concurrency
// allows. Started items are retried, each as one new row of the same item, if their task allows it, and fail
// otherwise. Another worker gets the items that were not started. The workflow continues and ends.
func TestAWorkerThatDiesInTheMiddleOfAList(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "kill a worker in the middle of a list")
	f := newFlow(t)
	starts := f.scriptFor("0.3")
	f.define(flowSturdy, flowList(`retry: {count: 2, delay: 0}`))
	f.define(flowFragile, flowList(``)) // workflows ignore the retries of an action
	engine := f.serve(watchful()...)
	rescue, let := f.aside("rescue", "ATTUNE__WORKER__MAX_CONCURRENT_TASKS=8")
	doomed := f.process("doomed", "ATTUNE__WORKER__MAX_CONCURRENT_TASKS=8")
	sturdy, fragile := f.request(flowSturdy, 1)[0], f.request(flowFragile, 1)[0]
	running := func(parent int64) int {
		return f.count(`SELECT count(*) FROM execution WHERE parent = $1 AND status = 'running'`, parent)
	}
	done := func(parent int64) int {
		return f.count(`SELECT count(*) FROM execution WHERE parent = $1 AND status = 'completed'`, parent)
	}
	middle := func() bool {
		return running(sturdy) > 0 && running(fragile) > 0 && done(sturdy) > 1 && done(fragile) > 1
	}
	testkit.Eventually(t, func() bool {
		if !middle() {
			return false
		}
		// It writes nothing more about its executions, however long the kill takes.
		require.NoError(t, doomed.cmd.Process.Signal(syscall.SIGSTOP))
		testkit.Eventually(t, func() bool { // the server still finishes the statements that it has received
			return f.count(`SELECT count(*) FROM pg_stat_activity
				WHERE datname = current_database() AND application_name = 'attune-executor worker' AND state = 'active'`) == 0
		}, 10*time.Second, "no statement of a worker is under way")
		if middle() {
			return true
		}
		require.NoError(t, doomed.cmd.Process.Signal(syscall.SIGCONT))
		return false
	}, 40*time.Second, "both lists are in their middle")
	doomed.kill()
	let()
	testkit.Eventually(t, func() bool {
		return f.count(`SELECT count(*) FROM execution e WHERE e.finished_status IS NULL`) == 0
	}, testkit.TestTimeout, "S12: the workflows end: %s", lazily(f.open))
	f.stage.over()

	lost := func(parent int64) int {
		return f.count(`SELECT count(*) FROM execution WHERE parent = $1 AND status = 'abandoned'`, parent)
	}
	require.Positive(t, lost(sturdy), "it died with running executions")
	require.Positive(t, lost(fragile))
	var whole, broken string
	require.NoError(t, f.store.Pool().QueryRow(testkit.Context(t),
		`SELECT result ->> 'way' FROM execution WHERE id = $1`, sturdy).Scan(&whole))
	require.NoError(t, f.store.Pool().QueryRow(testkit.Context(t),
		`SELECT result ->> 'way' FROM execution WHERE id = $1`, fragile).Scan(&broken))
	require.Equal(t, "whole", whole, "the lost items were retried")
	require.Equal(t, lost(fragile), f.count(`SELECT ($1::text)::int`, broken), "lost items have failed")
	require.Equal(t, 2, f.count(`SELECT count(*) FROM execution WHERE parent IS NULL AND status = 'completed' AND (result ->> 'results')::int = 14`))
	require.Equal(t, 14+14, f.count(`SELECT count(DISTINCT (parent, workflow_task ->> 'task_index')) FROM execution WHERE workflow_task ->> 'task_name' = 'list'`))
	require.Equal(t, lost(sturdy),
		f.count(`SELECT count(*) FROM execution WHERE parent = $1 AND retry_count = 1 AND status = 'completed'`,
			sturdy), "S19")
	require.Zero(t, f.count(`SELECT count(*) FROM execution WHERE parent = $1 AND retry_count > 0`, fragile))
	require.LessOrEqual(t, f.count(`SELECT max(n) FROM (SELECT (SELECT count(*) FROM execution b WHERE b.parent = a.parent AND b.action_ref = a.action_ref
			AND b.started_at <= a.started_at AND b.finished_at > a.started_at) AS n FROM execution a WHERE a.started_at IS NOT NULL AND a.parent IS NOT NULL) x`), 4,
		"S12: never more of a list at a time")
	for id, n := range starts() {
		require.Equal(t, 1, n, "S2: the starts of execution %d", id)
	}
	require.Zero(t, rescue.stop(t))
	require.Zero(t, engine.stop(t))
}
