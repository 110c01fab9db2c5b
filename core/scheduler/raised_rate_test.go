package scheduler_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/lab/testkit"
)

// A raised rate is in force at once: executions that the old one postponed start.
func TestARaisedRateDoesNotWaitForTheOldOne(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1", func(w *testkit.WorkerRow) { w.Capabilities = testkit.DefaultCapabilities(100) })
	action := testkit.Action(t, b.store, "pk.paced")
	testkit.Policy(t, b.store, action, 1,
		func(p *testkit.PolicyRow) { p.Kind, p.WindowSeconds = "rate", new(int32(86_400)) })
	ids := b.request(t, action, 3)
	require.Equal(t, 1, b.dispatch(t, ids...).Granted)
	testkit.Exec(t, b.store, `UPDATE policy SET threshold = 1000, window_seconds = 1`)
	result := b.nudge(t, ids[1])
	for deadline := time.Now().Add(time.Minute); result.Wake > 0 && time.Now().Before(deadline); {
		require.LessOrEqual(t, result.Wake, time.Second)
		time.Sleep(result.Wake)
		result = b.run(t, scheduler.FillStep{})
	}
	require.Equal(t, 3, testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE status = 'scheduled'`))
	b.quiet(t)
}
