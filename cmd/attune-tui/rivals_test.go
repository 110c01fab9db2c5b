package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/redrive"
	"github.com/attune-go/attune/core/testkit"
	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/keymap"
)

// TestTwoDashboardsLeadOneQueue has two people confirm at the same moment, each with a
// plan that was made before the other's. Both words count, one after the other, and
// what was so already by then is said to be.
func TestTwoDashboardsLeadOneQueue(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t)
	st := testkit.OpenStore(t, url)
	testkit.State(t, st, testkit.Action(t, st, "demo.sleep"), 1, func(r *testkit.StateRow) { r.Active = 1 })
	two := []*terminal{openTerminal(t, url, "--view", "queues"), openTerminal(t, url, "--view", "queues")}
	for at, x := range two {
		x.shows("demo.sleep")
		x.shows(" RW ")
		x.plans(act.LimitQueue, "limit queue demo.sleep")
		x.press("BSpace", []string{"3", "5"}[at], "Enter")
		x.shows("limit 1 → ")
		x.shows(runButton)
	}
	for _, x := range two {
		x.press("y")
	}
	for _, x := range two {
		x.reports("Limit to ")
	}
	require.Equal(t, 2, testkit.Count(t, st, `select count(*) from operator_audit where action = 'queue.limit' and outcome = 'done'`))
	require.Equal(t, testkit.Count(t, st, `select (request ->> 'limit')::int from operator_audit where action = 'queue.limit' order by id desc limit 1`),
		testkit.Count(t, st, `select max_concurrent from execution_admission_state`), "the later word holds")

	for _, x := range two {
		x.plans(act.PauseQueue, "Pause demo.sleep")
		x.shows(runButton)
	}
	for _, x := range two {
		x.press("y")
	}
	changed := 0
	for _, x := range two {
		if x.either("1 queue is paused", "it was so already") {
			changed++
		}
	}
	require.Equal(t, 1, changed, "one of them has paused it, and the other is told so")
	require.Equal(t, 1, testkit.Count(t, st, `select count(*) from operator_audit where action = 'queue.pause' and outcome = 'done'`))
}

// TestTwoDashboardsTakeOneLetter has both requeue the same letter of the broker at the
// same moment: it is requested once, and nothing else is touched.
func TestTwoDashboardsTakeOneLetter(t *testing.T) {
	t.Parallel()
	s := estrange(t)
	s.dies("demo.a")
	s.dies("demo.b")
	two := []*terminal{s.open(), s.open()}
	for _, x := range two { // the second when the first has put back what it looked at
		x.shows("no ledger is kept here")
		x.shows(" RW ")
		x.press("S")
		x.shows("[broker 2]")
		s.holds(message.QueueDeadLetter, 2)
	}
	rival, err := s.store.LockSession(t.Context(), redrive.LockName(message.QueueDeadLetter), "attune-tui bob@ops op 01J9ZKAA since 02:18:58Z")
	require.NoError(t, err)
	two[0].shows("a plan runs on them: attune-tui bob@ops op 01J9ZKAA since 02:18:58Z")
	two[0].asks(keymap.Requeue, "requeue ")
	two[0].shows("of the blocked")
	two[0].press("Enter")
	two[0].shows("Another plan runs on this queue: attune-tui bob@ops")
	two[0].press("Escape")
	two[0].shows("of the blocked")
	two[0].press("Escape", "Escape")
	two[0].hides("of the blocked")
	rival.Release(t.Context())
	for _, x := range two {
		x.asks(keymap.Requeue, "requeue ")
		x.shows("of the blocked")
		x.press("Enter")
		x.shows("─ Requeue 1 letter")
		x.shows(runButton)
	}
	for _, x := range two {
		x.press("y")
	}
	done := 0
	for _, x := range two {
		if x.either("planned 1, done 1", "is in use by attune-tui "+actor()) {
			done++
		}
	}
	require.Equal(t, 1, done, "the other is told who has the letters in hand")
	s.holds(message.QueueExecutionRequests, 1)
	s.holds(message.QueueDeadLetter, 1)
	require.Equal(t, 1, testkit.Count(t, s.store, `select count(*) from execution where status = 'requested'`))
	require.Equal(t, 1, testkit.Count(t, s.store, `select count(*) from audit_event where event_type = 'dlq.requeue'`))
}
