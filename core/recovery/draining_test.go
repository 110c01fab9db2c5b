package recovery_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/lab/testkit"
)

// Upstream 31: a sweep finds unstarted executions of draining and stopped workers at once, and of workers that
// cannot start anything. It does not find running ones, those of workers without fencing, and those of dead workers.
func TestUnstartedExecutionsOfLeavingWorkersAreFound(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "pk.a")
	worker := func(name string, change func(*testkit.WorkerRow)) int64 {
		id := testkit.Worker(t, st, name, func(w *testkit.WorkerRow) {
			w.Capabilities = map[string]any{"attempt_fence": true}
			change(w)
		}).ID
		testkit.Exec(t, st, `UPDATE worker_load SET assigned = 2 WHERE worker = $1`, id)
		return id
	}
	state := testkit.State(t, st, action, 99)
	at := func(worker int64, status lifecycle.Status) int64 {
		return testkit.Execution(t, st, action,
			func(e *testkit.ExecutionRow) { e.Worker, e.Status, e.AdmissionState = &worker, status, &state.ID }).ID
	}
	drains := worker("drains", func(w *testkit.WorkerRow) { w.Draining = true })
	left := worker("left", func(w *testkit.WorkerRow) { w.Status = "inactive" })
	unable := worker("unable", func(w *testkit.WorkerRow) { w.Status = "error" })
	missed := worker("missed", func(w *testkit.WorkerRow) { w.Status = "inactive" })
	testkit.Exec(t, st, `UPDATE worker SET deactivated_at = now() WHERE id = $1`, missed)
	foreign := worker("foreign", func(w *testkit.WorkerRow) { w.Draining, w.Capabilities = true, map[string]any{} })
	works := worker("works", func(*testkit.WorkerRow) {})
	cordoned := worker("cordoned", func(w *testkit.WorkerRow) { w.Cordoned = true })

	first, second := at(drains, lifecycle.StatusScheduled), at(left, lifecycle.StatusScheduled)
	third := at(unable, lifecycle.StatusScheduled)
	at(drains, lifecycle.StatusRunning)
	at(left, lifecycle.StatusCanceling)
	for _, other := range []int64{missed, foreign, works, cordoned} {
		at(other, lifecycle.StatusScheduled)
	}
	found := sweep(t, st)
	want := []scheduler.Unstarted{
		{Execution: first, Leaving: true}, {Execution: second, Leaving: true}, {Execution: third, Leaving: true},
	}
	require.Equal(t, want, next(t, found).Unstarted)
	testkit.Exec(t, st, `UPDATE worker SET draining = false, status = 'active'`)
	testkit.Eventually(t, func() bool { // ticks that began before the change have found them too
		select {
		case <-found:
			return false
		case <-time.After(300 * time.Millisecond):
			return true
		}
	}, 20*time.Second, "nothing more is found")
}
