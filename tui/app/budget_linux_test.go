package app

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/attune-go/attune/tui/screen"
)

// cpuTime is the processor time of this thread. A clock would count the interruptions on a busy machine.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var used unix.Timespec
	require.NoError(t, unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &used))
	return time.Duration(used.Nano())
}

// The cost of a poll is linear in the listed dead letters (5,000 take 5 ms on an idle machine); a frame costs the same
// for many as for few. Neither reads a body. It is not parallel because it measures processor time.
func TestTheLedgerCostsLittle(t *testing.T) {
	few, half, many := polled(t, longLedger(500), 140, 40), polled(t, longLedger(3_000), 140, 40),
		polled(t, longLedger(6_000), 140, 40)
	for _, b := range []*bundle{few, half, many} {
		b.press("5")
		for range 80 {
			b.press("G")
		}
	}
	require.GreaterOrEqual(t, many.deadLetters.Len(), 5_000)
	poll := func(b *bundle) time.Duration {
		begun := cpuTime(t)
		b.apply(screen.FeedDeadLetters, b.env.Data.DeadLetters)
		return cpuTime(t) - begun
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	some, all := time.Hour, time.Hour
	for range 20 {
		some, all = min(some, poll(half)), min(all, poll(many))
	}
	frame := func(b *bundle) time.Duration {
		fastest := time.Hour
		for i := range 60 {
			begun := cpuTime(t)
			b.Update(keyMsg([]string{"k", "j", "ctrl+u", "ctrl+d"}[i%4]))
			_ = b.View()
			fastest = min(fastest, cpuTime(t)-begun)
		}
		return fastest
	}
	small, large := frame(few), frame(many)
	t.Logf("a poll takes %s with %d rows and %s with %d, a frame %s with %d and %s with %d", some,
		half.deadLetters.Len(), all, many.deadLetters.Len(),
		small, few.deadLetters.Len(), large, many.deadLetters.Len())
	// Linear work takes 1.7 times as long, quadratic work 2.8 times. Both sizes are too large for the caches, which
	// made a smaller one too fast to compare with.
	require.Less(t, all.Seconds(), 2.3*some.Seconds(), "a poll of 5,000 rows is compared with one of 3,000")
	require.Less(t, large, 4*small)
	require.Nil(t, many.env.Data.LedgerDetail, "nothing was shown, so nothing was read")
}
