package recovery

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// sweeper returns a sweep that the test ticks itself, and its finds.
func sweeper(t *testing.T, st *store.Store, cfg Config) (*Sweep, *[]Found) {
	t.Helper()
	var submitted []Found
	return New(cfg, st, func(_ context.Context, found Found) error {
		submitted = append(submitted, found)
		return nil
	}, testkit.Logger(t), nil), &submitted
}

// tick runs one sweep and returns its finds.
func tick(t *testing.T, s *Sweep, submitted *[]Found) []Found {
	t.Helper()
	*submitted = nil
	require.NoError(t, s.tick(testkit.Context(t)))
	return *submitted
}

func ended(submitted []Found) (ids []int64) {
	for _, found := range submitted {
		ids = append(ids, found.Ended...)
	}
	return ids
}

// holder inserts an ended execution that still holds a slot, and a later open one.
func holder(t *testing.T, st *store.Store) int64 {
	t.Helper()
	action := testkit.Action(t, st, "pk.held")
	testkit.Exec(t, st,
		`INSERT INTO execution_admission_state (action_id, max_concurrent, active_count) VALUES ($1, 1, 1)`, action.ID)
	id := testkit.Execution(t, st, action).ID
	testkit.Exec(t, st, `UPDATE execution SET status = 'completed' WHERE id = $1`, id)
	testkit.Exec(t, st, `INSERT INTO execution_holder (execution, state_id, attempt, granted_at) SELECT $1, id, 1, now() FROM execution_admission_state`, id)
	testkit.Execution(t, st, action)
	return id
}

// A pass that meets a holder that ended a moment ago leaves it to its report;
// the next passes do not take it for settled.
func TestAHolderThatEndedDuringAPassIsFoundByTheNext(t *testing.T) {
	st := testkit.Store(t)
	id := holder(t, st)
	s, submitted := sweeper(t, st, Config{})
	require.Empty(t, tick(t, s, submitted), "its report may still come")
	require.Empty(t, tick(t, s, submitted))
	s.cfg.HolderAge = 1 // a nanosecond: the report is lost by now
	require.Equal(t, []int64{id}, ended(tick(t, s, submitted)))
}

// A holder that was found and not released is found again.
func TestAnUnreleasedHolderIsFoundAgain(t *testing.T) {
	st := testkit.Store(t)
	id := holder(t, st)
	s, submitted := sweeper(t, st, Config{HolderAge: 1})
	for range 3 {
		require.Equal(t, []int64{id}, ended(tick(t, s, submitted)))
	}
	testkit.Exec(t, st, `DELETE FROM execution_holder WHERE execution = $1`, id)
	require.Empty(t, tick(t, s, submitted))
}

// An execution that is deleted while triggers are off leaves its holder behind. Its slot is released
// as if the trigger had recorded the deletion.
func TestAHolderWithoutAnExecutionIsGivenBack(t *testing.T) {
	st := testkit.Store(t)
	id := holder(t, st)
	testkit.Exec(t, st, `WITH s AS (INSERT INTO admission_scope (kind, scope_key, max_concurrent, active_count) VALUES ('pack', 'pk', 9, 1) RETURNING id)
		INSERT INTO execution_slot (execution, scope_id) SELECT $1, id FROM s`, id)
	testkit.Exec(t, st, `ALTER TABLE execution DISABLE TRIGGER ALL`)
	testkit.Exec(t, st, `DELETE FROM execution WHERE id = $1`, id)
	testkit.Exec(t, st, `ALTER TABLE execution ENABLE TRIGGER ALL`)
	s, submitted := sweeper(t, st, Config{})
	found := tick(t, s, submitted)
	require.Len(t, found, 1)
	require.Len(t, found[0].Lost, 1)
	require.EqualValues(t, testkit.Count(t, st, `SELECT id FROM execution_admission_state`), found[0].Lost[0].Queue)
	require.Zero(t, testkit.Count(t, st, `SELECT count(*) FROM execution_holder`))
	require.Zero(t, testkit.Count(t, st, `SELECT count(*) FROM execution_slot`))
	require.Equal(t, 1, testkit.Count(t, st, `SELECT cardinality(scopes) FROM lost_holder`),
		"its room under the shared limit is given back with it")
}

// A policy that lets more run than the queue's row knows is noticed although
// nothing completes; one that is met is not.
func TestARaisedPolicyMakesItsQueueUnfilled(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "pk.raised")
	policy := testkit.Policy(t, st, action, 1)
	testkit.Exec(t, st, `INSERT INTO execution_admission_state (action_id, max_concurrent, active_count, queued_count) VALUES ($1, 1, 1, 3)`, action.ID)
	s, submitted := sweeper(t, st, Config{})
	require.Empty(t, tick(t, s, submitted))
	testkit.Exec(t, st, `UPDATE policy SET threshold = 2 WHERE id = $1`, policy.ID)
	require.Len(t, tick(t, s, submitted), 1)
	testkit.Exec(t, st, `UPDATE execution_admission_state SET paused = true`)
	require.Empty(t, tick(t, s, submitted))
}

// Of queues with one obstacle a pass tries the one that has waited longest; after a change of rules it tries all, since
// the obstacle may be gone.
func TestAChangeOfRulesMakesAllBlockedQueuesUnfilled(t *testing.T) {
	st := testkit.Store(t)
	for n := range 2 {
		testkit.Exec(t, st, `WITH s AS (
				INSERT INTO execution_admission_state (action_id, max_concurrent, queued_count) VALUES ($1, 1, 1) RETURNING id)
			INSERT INTO admission_blocked (state_id, ticket, reason, need) SELECT id, $2, 'none fits', 'a worker' FROM s`,
			testkit.Action(t, st, "pk.a"+string(rune('a'+n))).ID, n+1)
	}
	s, submitted := sweeper(t, st, Config{})
	queues := func() int {
		n := 0
		for _, found := range tick(t, s, submitted) {
			n += len(found.Queues)
		}
		return n
	}
	require.Equal(t, 2, queues(), "the first pass is thorough")
	require.Equal(t, 1, queues())
	testkit.Exec(t, st, `UPDATE admission_epoch SET epoch = epoch + 1`)
	require.Equal(t, 2, queues())
	require.Equal(t, 1, queues())
}

// After the queue of requests has lost its messages, requests count as lost within seconds.
func TestRequestsOfALostQueueAreFoundSoon(t *testing.T) {
	st := testkit.Store(t)
	id := testkit.Execution(t, st, testkit.Action(t, st, "pk.a"),
		func(e *testkit.ExecutionRow) { e.Age = 5 * time.Second }).ID
	s, submitted := sweeper(t, st, Config{RequestAge: time.Hour})
	require.Empty(t, tick(t, s, submitted))
	s.MessagesLost()
	found := tick(t, s, submitted)
	require.Len(t, found, 1)
	require.Equal(t, []int64{id}, found[0].Requested)
}

// Any number of finds reaches the batches, in parts that one batch can bear.
func TestFindsAreSubmittedInPages(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "pk.lost")
	testkit.Exec(t, st, `INSERT INTO execution (action, action_ref) SELECT $1, $2 FROM generate_series(1, 250)`,
		action.ID, action.Ref)
	testkit.Exec(t, st, `INSERT INTO execution_admission_state (action_id, group_key, max_concurrent, queued_count)
		SELECT $1, 'g' || n, 1, 1 FROM generate_series(1, 120) n`, action.ID)
	s, submitted := sweeper(t, st, Config{RequestAge: 1})
	var requested, queues []int64
	for _, found := range tick(t, s, submitted) {
		require.LessOrEqual(t, len(found.Requested), 100)
		require.LessOrEqual(t, len(found.Queues), 100)
		requested, queues = append(requested, found.Requested...), append(queues, found.Queues...)
	}
	require.Len(t, requested, 250)
	require.Len(t, queues, 120)
}
