package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/supervise"
)

// A loop that ticks and fails is not ready, and says why.
func TestALoopThatFailsIsNotReady(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var readOnly atomic.Bool
		l := supervise.NewLoop(supervise.LoopConfig{
			Name: "sweep", Interval: time.Second, Tick: func(context.Context) error {
				if readOnly.Load() {
					return errors.New("the database is read only")
				}
				return nil
			},
		})
		e := &Engine{loops: map[string]loop{"sweep": l}}
		require.False(t, e.loopReady("sweep").OK, "it has not begun")
		require.NoError(t, l.Start(t.Context()))
		defer l.Stop()
		time.Sleep(5 * time.Second)
		require.True(t, e.loopReady("sweep").OK)
		readOnly.Store(true)
		time.Sleep(10 * l.SuccessTimeout())
		check := e.loopReady("sweep")
		require.False(t, check.OK)
		require.Contains(t, check.Detail, "the last tick failed: the database is read only")
		readOnly.Store(false)
		time.Sleep(10 * l.SuccessTimeout())
		require.True(t, e.loopReady("sweep").OK)
	})
}
