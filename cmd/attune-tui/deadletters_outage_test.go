package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/testkit"
	"github.com/attune-go/attune/core/triage"
)

// agrees confirms the take of so many messages, by the word where they are many.
func (x *terminal) agrees(n int) {
	x.t.Helper()
	word := fmt.Sprintf("take %d", n)
	x.shows("type " + word + " to confirm")
	x.call("send-keys", "-l", word)
	x.press("Enter")
}

// TestTheBrokerIsCutAmidATake: the receipt says what was taken and what was left, as the
// ledger and the queue have it, and the rest is taken when the broker is back.
func TestTheBrokerIsCutAmidATake(t *testing.T) {
	t.Parallel()
	const deadLetters = 6_000 // which is six seconds at the pace of a take, so that it is cut amid them
	u := withoutHandler(t)
	for i := range deadLetters {
		u.publish(fmt.Sprint(i), int64(i+1))
	}
	u.holds(deadLetters)
	way, address := through(t, u.address)
	way.mend()
	x := u.openOver(address)
	x.plansTake(deadLetters)
	x.agrees(deadLetters)
	testkit.Eventually(t, func() bool { return u.count(waiting) >= 100 }, wait, "some are taken")
	way.cut()
	ended := x.reads(`(\d+) of 6000 taken, (\d+) left\.`)
	taken, left := ended[0], ended[1]
	require.Equal(t, deadLetters, taken+left, "each is one of the two")
	require.Positive(t, left)
	require.Equal(t, taken, u.count(waiting), "what was taken is in the ledger, and nothing else")
	var there int
	testkit.Eventually(t, func() bool {
		there = u.depth(message.QueueDeadLetter)
		return there >= left
	}, wait, "what was in hand is back")
	require.LessOrEqual(t, there, left+triage.TakePrefetch)

	way.mend()
	x.press("Escape")
	x.hides(" of 6000 taken")
	testkit.Eventually(t, func() bool { there = u.depth(message.QueueDeadLetter); return there >= left }, wait)
	x.plansTake(there)
	x.agrees(there)
	x.shows(fmt.Sprintf("%d of %d taken.", there, there))
	u.holds(0)
	require.Equal(t, deadLetters, u.count(waiting))
	require.Equal(t, deadLetters, u.count(`select count(distinct message_id) from dead_letter`))
}
