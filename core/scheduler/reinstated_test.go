package scheduler_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/lab/testkit"
)

// S3: a shared limit that was out of force for a while counts all running executions when it is in force again,
// although its policy is the same as before.
func TestS3AReinstatedSharedLimitCountsRunningExecutions(t *testing.T) {
	t.Parallel()
	for name, away := range map[string][2]string{
		"other parameters": {`UPDATE policy SET parameters = '{tenant}'`, `UPDATE policy SET parameters = '{}'`},
		"another kind": {
			`UPDATE policy SET kind = 'quota', window_seconds = 86400`,
			`UPDATE policy SET kind = 'concurrency', window_seconds = NULL`,
		},
		"a newer policy": {
			`INSERT INTO policy (ref, pack, name, threshold, method, parameters, created)
			 SELECT 'pk.newer', pack, 'newer', 9, method, '{tenant}', created + interval '1 second' FROM policy`,
			`DELETE FROM policy WHERE ref = 'pk.newer'`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			testkit.Worker(t, b.store, "w1")
			action := testkit.Action(t, b.store, "pk.a")
			testkit.Policy(t, b.store, action, 2, testkit.OfPack(action))
			tenant := func(i int) int64 {
				return b.requestWith(t, action,
					func(e *testkit.ExecutionRow) { e.Config = map[string]any{"tenant": fmt.Sprint(i)} })
			}
			first := tenant(0)
			require.Equal(t, scheduler.Result{Granted: 1}, b.dispatch(t, first))
			testkit.Exec(t, b.store, away[0])
			second, third := tenant(1), tenant(2)
			require.Equal(t, 2, b.dispatch(t, second, third).Granted)
			testkit.Exec(t, b.store, away[1])
			late := tenant(3)
			require.Equal(t, scheduler.Result{Enqueued: 1}, b.dispatch(t, late), "three run under a limit of two")
			b.finish(t, lifecycle.StatusCompleted, first)
			require.Equal(t, scheduler.Result{Released: 1}, b.complete(t, first))
			b.finish(t, lifecycle.StatusCompleted, second)
			require.Equal(t, scheduler.Result{Released: 1, Granted: 1}, b.complete(t, second))
			b.quiet(t)
		})
	}
}
