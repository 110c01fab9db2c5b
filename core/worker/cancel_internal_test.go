package worker

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// A request to stop leaves a trace only on what is in hand: those for executions
// that are unknown, not here yet, or gone are forgotten, however many there are.
func TestRequestsToStopLeaveNoTrace(t *testing.T) {
	t.Parallel()
	r := newRoster(2)
	for id := range int64(1000) {
		require.False(t, r.interrupt(id, ErrCancelled))
	}
	require.Zero(t, r.size())
	j, added := r.add(context.Background(), 7, 1)
	require.True(t, added)
	require.NoError(t, j.ctx.Err(), "F15: a request that came before is not remembered, its row is")
	require.True(t, r.interrupt(7, ErrCancelled), "not started yet, but in hand")
	require.ErrorIs(t, context.Cause(j.ctx), ErrCancelled)
	require.Empty(t, r.active(), "only what was started is compared with its row")
	r.remove(j)
	require.False(t, r.interrupt(7, ErrCancelled))
	require.Zero(t, r.size())
}
