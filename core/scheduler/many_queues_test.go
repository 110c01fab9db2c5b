package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/recovery"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/lab/testkit"
)

// S4 and no lost wake-up: however many queues wait for one moment, their executions start in the order
// in which they began to wait, and none is left out.
func TestS4ManyQueuesWaitForOneMoment(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1", func(w *testkit.WorkerRow) { w.Capabilities = testkit.DefaultCapabilities(1000) })
	action := testkit.Action(t, b.store, "pk.a")
	testkit.Policy(t, b.store, action, 100, func(p *testkit.PolicyRow) { p.Parameters = []string{"tenant"} })
	testkit.Policy(t, b.store, action, 5, testkit.OfPack(action),
		func(p *testkit.PolicyRow) { p.Kind, p.WindowSeconds = "quota", new(int32(86_400)) })
	var ids []int64
	for i := range 205 {
		ids = append(ids, b.requestWith(t, action,
			func(e *testkit.ExecutionRow) { e.Config = map[string]any{"tenant": fmt.Sprint(i)} }))
	}
	require.Equal(t, 5, b.dispatch(t, ids...).Granted)
	// The rows lie in the table in another order than they began to wait.
	testkit.Exec(t, b.store, `CREATE TABLE kept AS SELECT * FROM admission_blocked ORDER BY ticket DESC`)
	testkit.Exec(t, b.store, `DELETE FROM admission_blocked`)
	testkit.Exec(t, b.store, `INSERT INTO admission_blocked SELECT * FROM kept ORDER BY ticket DESC`)
	passes := func(most int) {
		testkit.Exec(t, b.store, `UPDATE admission_scope SET period_start = period_start - interval '1 day'`)
		testkit.Exec(t, b.store, `UPDATE admission_blocked SET until = now() - interval '1 second', wake = CASE WHEN wake IS NOT NULL THEN now() - interval '1 second' END`)
		batches := 0
		for result := b.run(t, scheduler.FillStep{}); result.Wake > 0 && result.Wake < time.Minute ||
			len(result.Unfilled) > 0; batches++ {
			require.Less(t, batches, most, "batches come to an end")
			result = b.run(t, scheduler.FillStep{Queues: result.Unfilled})
		}
	}
	passes(20)
	require.Equal(t, 10, testkit.Count(t, b.store,
		`SELECT count(*) FROM execution WHERE id = ANY ($1) AND status = 'scheduled'`, ids[:10]),
		"the first ten")
	testkit.Exec(t, b.store, `UPDATE policy SET threshold = 1000 WHERE kind = 'quota'`)
	passes(40)
	require.Equal(t, 205, testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE status = 'scheduled'`),
		"every execution starts")
	b.quiet(t)
}

// Executions that wait for a rare kind of worker do not delay executions whose kind has room, however
// many they are.
func TestManyExecutionsForARareWorkerDelayNoOthers(t *testing.T) {
	b := setup(t)
	kind := func(name string, n int) func(*testkit.WorkerRow) {
		return func(w *testkit.WorkerRow) {
			w.Capabilities = map[string]any{"runtimes": []string{name}, "max_concurrent_executions": n}
		}
	}
	testkit.Worker(t, b.store, "rare", kind("rare", 1))
	testkit.Worker(t, b.store, "common", kind("common", 1))
	runtime := func(name string) int64 {
		var id int64
		require.NoError(t, b.store.Pool().QueryRow(testkit.Context(t),
			`INSERT INTO runtime (ref, name, distributions) VALUES ($1, $2, '{}') RETURNING id`, "core."+name,
			name).Scan(&id))
		return id
	}
	rare, common := runtime("rare"), runtime("common")
	needs := func(ref string, id int64) testkit.ActionRow {
		action := testkit.Action(t, b.store, ref)
		testkit.Exec(t, b.store, `UPDATE action SET runtime = $1 WHERE id = $2`, id, action.ID)
		return action
	}
	var ids []int64
	for i := range 75 {
		ids = append(ids, b.request(t, needs(fmt.Sprintf("pk.rare%d", i), rare), 1)...)
	}
	require.Equal(t, 3, b.dispatch(t, ids...).Granted)
	one, two := needs("pk.one", common), needs("pk.two", common)
	running := b.request(t, one, 3)
	require.Equal(t, 3, b.dispatch(t, running...).Granted)
	waiting := b.request(t, two, 1)
	require.Equal(t, scheduler.Result{Enqueued: 1}, b.dispatch(t, waiting...))
	b.finish(t, lifecycle.StatusCompleted, running[0])
	require.Equal(t, 1, b.complete(t, running[0]).Granted)
	require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, b.store, waiting[0]))
	b.quiet(t)
}

// A sweep has one batch run for each obstacle that blocks queues, not for each queue, unless the rules have changed.
func TestASweepTriesOneQueueOfEachThatAreKept(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1", func(w *testkit.WorkerRow) { w.Capabilities = testkit.DefaultCapabilities(1) })
	var ids []int64
	for i := range 6 { // three run, three wait for a worker
		ids = append(ids, b.request(t, testkit.Action(t, b.store, fmt.Sprintf("pk.a%d", i)), 1)...)
	}
	require.Equal(t, scheduler.Result{Granted: 3, Enqueued: 3}, b.dispatch(t, ids...))
	paced := testkit.Action(t, b.store, "paced.a")
	testkit.Policy(t, b.store, paced, 1, func(p *testkit.PolicyRow) { p.Parameters = []string{"tenant"} })
	testkit.Policy(t, b.store, paced, 1, testkit.OfPack(paced))
	testkit.Exec(t, b.store, `INSERT INTO admission_scope (kind, scope_key, max_concurrent, active_count, policy)
		SELECT 'pack', pack::text, 1, 1, id FROM policy WHERE pack IS NOT NULL`)
	for i := range 3 {
		ids = append(ids,
			b.requestWith(t, paced, func(e *testkit.ExecutionRow) { e.Config = map[string]any{"tenant": i} }))
	}
	require.Equal(t, scheduler.Result{Enqueued: 3}, b.dispatch(t, ids[6:]...))
	found := make(chan recovery.Found)
	sweep(t, b, found)
	first := <-found
	require.Len(t, first.Queues, 6)
	oldest := (<-found).Queues
	require.Len(t, oldest, 2)
	require.Equal(t, 2, testkit.Count(t, b.store,
		`SELECT count(*) FROM execution_admission_entry WHERE state_id = ANY ($1) AND execution_id = ANY ($2)`,
		oldest, []int64{ids[3], ids[6]}))
	testkit.Exec(t, b.store, `UPDATE policy SET threshold = 2`)
	for sweeps := 0; len((<-found).Queues) != 6; sweeps++ {
		require.Less(t, sweeps, 2, "one may have been made before the change")
	}
}
