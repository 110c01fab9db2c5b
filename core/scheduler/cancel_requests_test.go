package scheduler_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/testkit"
)

// S2: a dead worker without fencing gets a cancel request for executions that are retried elsewhere, since it may
// come back before its queue has expired. A worker with fencing refuses them itself, and a deleted worker has no
// queue.
func TestADeadWorkerGetsCancelRequestsForRetriedExecutions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change string
		cancel bool
	}{
		"existing":  {`UPDATE worker SET capabilities = '{"max_concurrent_executions": 5}' WHERE id = $1`, true},
		"says no":   {`UPDATE worker SET capabilities = '{"attempt_fence": false}' WHERE id = $1`, true},
		"not known": {`UPDATE worker SET worker_role = 'sensor' WHERE id = $1`, true},
		"deleted":   {`DELETE FROM worker WHERE id = $1`, false},
		"fences":    {`UPDATE worker SET capabilities = '{"attempt_fence": true}' WHERE id = $1`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			ids, old, other := unstartedAtDeadWorker(t, b, 1)
			testkit.Exec(t, b.store, c.change, old)
			testkit.Exec(t, b.store, `UPDATE worker SET cordoned = true, capabilities = '{}' WHERE id = $1`, other)
			b.age(t, time.Hour, ids...)
			b.scheduler = b.replica(t)
			require.Equal(t, scheduler.Result{Ended: 1}, b.reassign(t, ids))
			require.Equal(t, attune.StatusFailed, testkit.StatusOf(t, b.store, ids[0]))
			var requests []message.ExecutionCancelRequested
			for _, m := range b.relay.take() {
				if m.RoutingKey == message.CancelKey(old) {
					drop, err := message.Decode[message.ExecutionCancelRequested](m.Body)
					require.NoError(t, err)
					requests = append(requests, drop.Payload)
				}
			}
			if !c.cancel {
				require.Empty(t, requests)
				return
			}
			require.Equal(t, []message.ExecutionCancelRequested{{ExecutionID: ids[0], WorkerID: old}}, requests)
		})
	}
}
