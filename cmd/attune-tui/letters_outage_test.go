package main

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/testkit"
)

// depth is how many messages are ready in a queue.
func (s *stranger) depth(queue string) int {
	s.t.Helper()
	q, err := s.channel.QueueDeclarePassive(queue, true, false, false, false, nil)
	require.NoError(s.t, err)
	return q.Messages
}

// counted reads a count of the receipt that stands on the screen.
func (x *terminal) counted(what string) int {
	x.t.Helper()
	found := regexp.MustCompile(what + ` (\d+)`).FindStringSubmatch(x.call("capture-pane", "-p"))
	if found == nil {
		return 0
	}
	n, err := strconv.Atoi(found[1])
	require.NoError(x.t, err)
	return n
}

// agrees confirms the requeue of so many letters, by the word where they are many.
func (x *terminal) agrees(letters int) {
	x.t.Helper()
	x.shows(fmt.Sprintf("Requeue %d letters", letters))
	if letters <= 50 {
		x.press("y")
		return
	}
	word := fmt.Sprintf("requeue %d", letters)
	x.shows("type " + word + " to confirm")
	x.call("send-keys", "-l", word)
	x.press("Enter")
}

// TestTheBrokerGoesAwayAmidAPlan: the plan stops with what was done, what is unknown and
// what was left, as the queues and the rows have it, and the rest is done when it is back.
func TestTheBrokerGoesAwayAmidAPlan(t *testing.T) {
	t.Parallel()
	const letters = 160 // which is eight seconds at the pace of a plan, so that it is cut amid them
	s := estrange(t)
	for i := range letters {
		s.dies(fmt.Sprintf("demo.a%d", i))
	}
	s.holds(message.QueueDeadLetter, letters)
	way, address := through(t, s.address)
	way.mend()
	x := s.openOver(address)
	x.shows("no ledger is kept here")
	x.shows(" RW ")
	x.press("S")
	x.shows(fmt.Sprintf("[broker %d]", letters))
	s.holds(message.QueueDeadLetter, letters)
	x.press("*", "R")
	x.shows("of the blocked")
	x.press("Enter")
	x.agrees(letters)
	testkit.Eventually(t, func() bool { return s.depth(message.QueueExecutionRequests) >= 5 }, wait, "some are requested")
	way.cut()
	x.shows("Stopped: ") // the reason follows; where its lines break depends on the width

	done, unknown, left := x.counted("done"), x.counted("unknown"), x.counted("left")
	require.Equal(t, letters, done+unknown+left, "each is one of the three")
	require.Zero(t, x.counted("failed"))
	require.GreaterOrEqual(t, done+unknown, 5)
	require.Positive(t, left)
	requested := func() int {
		return testkit.Count(t, s.store, `select count(*) from execution where status = 'requested' and retry_reason = 'manual_retry'`)
	}
	require.Equal(t, done+unknown, requested())
	s.holds(message.QueueDeadLetter, letters-done)
	sent := s.depth(message.QueueExecutionRequests)
	require.GreaterOrEqual(t, sent, done)
	require.LessOrEqual(t, sent, done+unknown)

	way.mend()
	x.press("Escape")
	x.hides("Stopped: ")
	x.press("S")
	x.shows(fmt.Sprintf("[broker %d]", letters-done))
	s.holds(message.QueueDeadLetter, letters-done)
	x.press("*", "R")
	x.shows("of the blocked")
	x.press("Enter")
	x.agrees(letters - done)
	x.shows(fmt.Sprintf("planned %d, done %d", letters-done, letters-done))
	s.holds(message.QueueDeadLetter, 0)
	require.Equal(t, letters, requested())
	require.Equal(t, letters, testkit.Count(t, s.store, `select count(distinct resource_id) from audit_event where event_type = 'dlq.requeue'`))
	require.Equal(t, letters, testkit.Count(t, s.store, `select count(*) from audit_event where event_type = 'dlq.requeue'`), "each was reset once")
}
