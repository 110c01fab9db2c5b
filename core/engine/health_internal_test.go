package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// F9: a round that does not come to its end makes the replica unready; having
// nothing to do does not.
func TestARoundThatHangsIsNotReady(t *testing.T) {
	t.Parallel()
	e := &Engine{hot: &hot{}}
	require.True(t, e.roundsReady().OK)
	require.Equal(t, "idle", e.roundsReady().Detail)
	e.hot.lastDone.Store(time.Now().Add(-time.Hour).UnixNano())
	require.True(t, e.roundsReady().OK, "nothing had to be done for an hour")
	e.hot.begun.Store(time.Now().Add(-5 * time.Second).UnixNano())
	e.hot.inFlight.Store(3)
	require.True(t, e.roundsReady().OK)
	e.hot.begun.Store(time.Now().Add(-61 * time.Second).UnixNano())
	check := e.roundsReady()
	require.False(t, check.OK)
	require.Contains(t, check.Detail, "3 executions under way since 20")
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
