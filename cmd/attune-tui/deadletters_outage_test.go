package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
)

// agrees confirms the take of n messages by typing the word.
func (x *terminal) agrees(n int) {
	x.t.Helper()
	word := fmt.Sprintf("take %d", n)
	x.shows("type " + word + " to confirm")
	x.call("send-keys", "-l", word)
	x.press("Enter")
}

// TestTheBrokerIsCutAmidATake cuts the broker while a page is written. The receipt agrees with the ledger and the
// queue, and a second take gets the rest.
func TestTheBrokerIsCutAmidATake(t *testing.T) {
	const deadLetters, gated = 400, 225
	u := withoutHandler(t)
	for i := range deadLetters {
		u.publish(fmt.Sprint(i), int64(i+1))
	}
	u.holds(deadLetters)
	way, address := through(t, u.address)
	way.mend()
	x := u.openOver(address)
	x.plansTake(deadLetters)
	open := closeGate(t, u.store, u.database, "dead_letter", fmt.Sprintf("new.message_id = '%d'", gated))
	x.agrees(deadLetters)
	testkit.Eventually(t, func() bool { return u.count(waiting) >= gated-triage.TakePrefetch }, wait, "some are taken")
	way.cut()
	open()
	ended := x.reads(`(\d+) of 400 taken, (\d+) left\.`)
	taken, left := ended[0], ended[1]
	require.Equal(t, deadLetters, taken+left, "each message is taken or left")
	require.Positive(t, left)
	require.Equal(t, taken, u.count(waiting), "the ledger has the taken messages and no other")
	var there int
	testkit.Eventually(t, func() bool { // unacknowledged messages return with the end of their consumer
		q, err := u.channel.QueueDeclarePassive(message.QueueDeadLetter, true, false, false, false, nil)
		require.NoError(t, err)
		there = q.Messages
		return q.Consumers == 0
	}, wait, "the unacknowledged messages return to the queue")
	require.GreaterOrEqual(t, there, left)
	require.LessOrEqual(t, there, left+triage.TakePrefetch)

	way.mend()
	x.press("Escape")
	x.hides(" of 400 taken")
	x.plansTake(there)
	x.agrees(there)
	x.shows(fmt.Sprintf("%d of %d taken.", there, there))
	u.holds(0)
	require.Equal(t, deadLetters, u.count(waiting))
	require.Equal(t, deadLetters, u.count(`select count(distinct message_id) from dead_letter`))
}
