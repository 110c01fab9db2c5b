package worker

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// Cancel requests for unknown, future or ended executions leave nothing in the roster.
func TestCancelRequestsForOthersLeaveNoTrace(t *testing.T) {
	t.Parallel()
	r := newRoster(2)
	for id := range int64(1000) {
		require.False(t, r.interrupt(id, ErrCancelled))
	}
	require.Zero(t, r.size())
	j, added := r.add(context.Background(), 7, 1)
	require.True(t, added)
	require.NoError(t, j.ctx.Err(), "F15: an earlier request is forgotten; the row decides")
	require.True(t, r.interrupt(7, ErrCancelled), "not started yet, but in hand")
	require.ErrorIs(t, context.Cause(j.ctx), ErrCancelled)
	require.Empty(t, r.active(), "only started executions are compared with their rows")
	r.remove(j)
	require.False(t, r.interrupt(7, ErrCancelled))
	require.Zero(t, r.size())

	unnumbered, added := r.add(context.Background(), 8, 0)
	require.True(t, added)
	require.False(t, r.interruptExcept(8, 1, ErrTaken), "a dispatch without an attempt may be of the one in force")
	require.NoError(t, unnumbered.ctx.Err())
	require.True(t, r.interruptExcept(8, noAttempt, ErrTaken))
}

// A dispatch that the broker delivers after a drain or a stop has begun does not start, although there is room.
func TestNothingStartsAfterTheIntakeHasEnded(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(context.Background())
	r := newRoster(2)
	require.Equal(t, 1, r.acquire(ended, 1))
	end()
	require.Zero(t, r.acquire(ended, 1))
}
