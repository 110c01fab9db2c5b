package recovery

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/lab/testkit"
)

// noRelay leaves messages to the outbox.
type noRelay struct{}

func (noRelay) Published(int64, []outbox.Message) {}

// A tick reads a few windows of the waiting executions, however many there are. The next tick continues behind them.
func TestATickReadsAFewWindowsOfWaitingExecutions(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "pk.a")
	for range 65 {
		testkit.Execution(t, st, action)
	}
	lost := testkit.Execution(t, st, action, func(e *testkit.ExecutionRow) { e.Status = lifecycle.StatusRunning }).ID
	testkit.Exec(t, st, `UPDATE execution SET attempt = 1 WHERE id = $1`, lost)
	o := NewRescuer(RescuerConfig{StaleAfter: 1}, st, func(context.Context, Found) error { return nil }, noRelay{},
		testkit.Logger(t), nil)
	t.Cleanup(func() { o.early.Stop() })
	o.rows = 10
	for i, want := range []lifecycle.Status{
		lifecycle.StatusRunning, lifecycle.StatusRunning, lifecycle.StatusRunning,
		lifecycle.StatusAbandoned,
	} {
		require.NoError(t, o.tick(testkit.Context(t)))
		require.Equal(t, want, testkit.StatusOf(t, st, lost), "tick %d", i+1)
	}
	require.Zero(t, o.after[false], "it begins anew")
}
