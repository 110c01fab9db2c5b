package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/lab/testkit"
)

// TestTwoDashboardsActOnOneQueue confirms two plans that were made before either ran. Both limits are applied, in
// turn, and the second pause reports that the queue was paused already.
func TestTwoDashboardsActOnOneQueue(t *testing.T) {
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
		x.shows(buttons)
	}
	for _, x := range two {
		x.press("y")
	}
	for _, x := range two {
		x.reports("Limit to ")
	}
	require.Equal(t, 2,
		testkit.Count(t, st, `select count(*) from operator_audit where action = 'queue.limit' and outcome = 'done'`))
	require.Equal(t, testkit.Count(t, st,
		`select (request ->> 'limit')::int from operator_audit where action = 'queue.limit' order by id desc limit 1`),
		testkit.Count(t, st, `select max_concurrent from execution_admission_state`), "the later limit holds")

	for _, x := range two {
		x.plans(act.PauseQueue, "Pause demo.sleep")
		x.shows(buttons)
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
	require.Equal(t, 1, changed, "one of them paused it, the other reports that")
	require.Equal(t, 1,
		testkit.Count(t, st, `select count(*) from operator_audit where action = 'queue.pause' and outcome = 'done'`))
}

// TestTwoDashboardsTakeOneQueue takes the same messages from both at once: each message becomes one row, and the other
// operator sees the name of the first.
func TestTwoDashboardsTakeOneQueue(t *testing.T) {
	u := withoutHandler(t)
	u.addDeadLetters(40)
	two := []*terminal{u.open(), u.open()}
	rival, err := u.store.LockSession(t.Context(), deadletter.LockName(message.QueueDeadLetter), "attune-tui bob@ops")
	require.NoError(t, err)
	two[0].shows("an operation is running: attune-tui bob@ops")
	two[0].plansTake(40)
	two[0].shows(buttons)
	two[0].press("y")
	two[0].shows("is in use by attune-tui bob@ops")
	two[0].press("Escape")
	two[0].hides("is in use by")
	rival.Release(t.Context())
	for _, x := range two {
		x.plansTake(40)
		x.shows(buttons)
	}
	for _, x := range two {
		x.press("y")
	}
	done := 0
	for _, x := range two {
		// The second one may come while the first holds the queue, or after it.
		if strings.Contains(x.showsOne("of 40 taken", "is in use by "), "40 of 40 taken") {
			done++
		}
	}
	require.Equal(t, 1, done, "the other finds the queue in use or empty")
	u.holds(0)
	require.Equal(t, 40, u.count(waiting))
}
