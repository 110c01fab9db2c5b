package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
)

// A batch that does not come to its end makes the replica unready, whatever the other
// lanes do; having nothing to do does not.
func TestABatchThatHangsIsNotReady(t *testing.T) {
	t.Parallel()
	e := &Engine{hot: newHot(nil, nil, 3, nil, stepConfig{}, nil, nil)}
	stuck, busy := e.hot.lanes[0], e.hot.lanes[2]
	require.True(t, e.schedulerReady().OK)
	require.Equal(t, "idle", e.schedulerReady().Detail)
	stuck.lastDone.Store(time.Now().Add(-time.Hour).UnixNano())
	require.True(t, e.schedulerReady().OK, "nothing had to be done for an hour")
	stuck.begun.Store(time.Now().Add(-5 * time.Second).UnixNano())
	stuck.inFlight.Store(3)
	require.True(t, e.schedulerReady().OK)
	stuck.begun.Store(time.Now().Add(-61 * time.Second).UnixNano())
	busy.begun.Store(time.Now().UnixNano())
	busy.inFlight.Store(7)
	busy.lastDone.Store(time.Now().UnixNano())
	check := e.schedulerReady()
	require.False(t, check.OK)
	require.Contains(t, check.Detail, "3 executions under way since 20")
	require.EqualValues(t, 10, e.hot.inFlight())
	require.WithinDuration(t, time.Now(), e.hot.lastDone(), testkit.TestTimeout)
	stuck.begun.Store(0)
	require.True(t, e.schedulerReady().OK)
}

func TestAnOutageIsRememberedWithItsTimes(t *testing.T) {
	t.Parallel()
	var o outage
	o.note(nil)
	require.True(t, o.began().IsZero())
	require.Nil(t, o.last())
	o.note(errors.New("away"))
	began := o.began()
	o.note(errors.New("still away"))
	require.Equal(t, began, o.began(), "it is one outage")
	o.note(nil)
	require.True(t, o.began().IsZero())
	require.Equal(t, began, o.last().From)
	require.False(t, o.last().Until.Before(began))
}
