package worker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A stop does not cancel a running heartbeat at once: the database could execute it after the final status, and a
// stopped worker would look active.
func TestARunningHeartbeatOutlastsAStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		parent, stop := context.WithCancel(t.Context())
		ctx, cancel := outlasting(parent, 10*time.Second)
		defer cancel()
		stop()
		time.Sleep(9 * time.Second)
		require.NoError(t, ctx.Err())
		time.Sleep(2 * time.Second)
		require.Error(t, ctx.Err(), "a database without an answer delays the stop only for a while")

		parent, stop = context.WithTimeout(t.Context(), time.Second)
		defer stop()
		ctx, cancel = outlasting(parent, time.Hour)
		defer cancel()
		time.Sleep(2 * time.Second)
		require.Error(t, ctx.Err(), "the deadline of a heartbeat stays")
	})
}
