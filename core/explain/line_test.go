package explain

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
)

func TestWaitsOfAQueueHavePercentiles(t *testing.T) {
	b := setup(t)
	action := testkit.Action(t, b.Store, "demo.sleep")
	worker := testkit.Worker(t, b.Store, "w")
	state, _, waiters := b.AddQueue(t, action, 1, 1, 4, worker.ID)
	testkit.Exec(t, b.Store,
		`update execution_admission_entry set enqueued_at = now() - interval '1 hour' where execution_id = $1`,
		waiters[0])
	w := mustDetail(t, b, state).Ages.Waited
	require.EqualValues(t, 4, w.Count)
	require.InDelta(t, 120, w.P50.Seconds(), 30)
	require.InDelta(t, 3600, w.Max.Seconds(), 30)
}
