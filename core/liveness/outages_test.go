package liveness

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
)

// Nothing is known from silence until the database has answered without a gap for
// as long as a worker may be silent; and after each kind of gap this begins anew.
func TestHeartbeatsCountAfterAnUnbrokenTime(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	s := NewOutageDetector(30*time.Second, nil, testkit.Logger(t), nil)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock, started := now.Add(time.Hour), now.Add(-time.Hour) // the database's clock is its own
	s.now = func() time.Time { return now }
	run := func(seconds int) {
		for range seconds / 2 {
			now, clock = now.Add(2*time.Second), clock.Add(2*time.Second)
			s.recordAnswer(ctx, clock, started)
		}
	}
	require.True(t, s.Unsure(), "before the first answer")
	run(30)
	require.True(t, s.Unsure())
	run(4)
	require.False(t, s.Unsure())
	require.False(t, s.Recovering(), "a start is no outage")

	for name, gap := range map[string]func(){
		"no answer":           func() { s.recordGap(ctx, "it does not answer") },
		"not asked":           func() { now, clock = now.Add(time.Minute), clock.Add(time.Minute) },
		"another server":      func() { started = started.Add(time.Second) },
		"its clock was set":   func() { clock = clock.Add(time.Hour) },
		"it was set back":     func() { clock = clock.Add(-time.Hour) },
		"ours stood for long": func() { clock = clock.Add(10 * time.Second) },
	} {
		gap()
		run(2)
		require.True(t, s.Unsure(), name)
		require.True(t, s.Recovering(), name)
		run(28)
		require.True(t, s.Unsure(), name)
		run(6)
		require.False(t, s.Unsure(), name)
		require.False(t, s.Recovering(), name)
	}
	now = now.Add(20 * time.Second)
	require.True(t, s.Unsure(), "no answer, and no refusal yet")
}
