package retention_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/retention"
	"github.com/attune-go/attune/lab/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// upstream 28: queues of groups do not accumulate, and no used queue and no queue with an operator's state is
// deleted.
func TestIdleQueuesOfGroupsAndSharedLimitsAreRemoved(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "pk.a")
	group := func(key string, change func(*testkit.StateRow)) {
		testkit.State(t, st, action, 1, func(s *testkit.StateRow) {
			s.GroupKey = &key
			if change != nil {
				change(s)
			}
		})
	}
	group("idle", nil)
	group("held", func(s *testkit.StateRow) { s.Active = 1 })
	group("waited for", func(s *testkit.StateRow) { s.Queued = 1 })
	group("paused", func(s *testkit.StateRow) { s.Paused = true })
	group("limited", nil)
	testkit.State(t, st, action, 1) // the action's own queue
	testkit.Exec(t, st, `UPDATE execution_admission_state SET limit_override = 3 WHERE group_key = 'limited'`)
	testkit.Exec(t, st, `INSERT INTO admission_scope (kind, scope_key, max_concurrent, active_count, window_seconds) VALUES
		('pack', 'idle', 1, 0, NULL), ('pack', 'held', 1, 1, NULL), ('quota', 'long window', 1, 0, 864000),
		('pack', 'waited for', 1, 0, NULL)`)
	testkit.Exec(t, st, `INSERT INTO admission_blocked (state_id, ticket, scope_id)
		SELECT s.id, 1, c.id FROM execution_admission_state s, admission_scope c
		WHERE s.group_key = 'waited for' AND c.scope_key = 'waited for'`)
	for _, table := range []string{"execution_admission_state", "admission_scope"} {
		testkit.Exec(t, st, `ALTER TABLE `+table+` DISABLE TRIGGER USER`)
		testkit.Exec(t, st, `UPDATE `+table+` SET updated = now() - interval '2 days'`)
		testkit.Exec(t, st, `ALTER TABLE `+table+` ENABLE TRIGGER USER`)
	}
	group("young", nil)

	q := retention.NewQueues(retention.QueuesConfig{
		Interval: 10 * time.Millisecond, Groups: 24 * time.Hour,
		Scopes: 24 * time.Hour,
	},
		st, testkit.Logger(t), nil, nil)
	require.NoError(t, q.Start(testkit.Context(t)))
	t.Cleanup(q.Stop)
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, st, `SELECT count(*) FROM execution_admission_state`) == 6 &&
			testkit.Count(t, st, `SELECT count(*) FROM admission_scope`) == 3
	}, 20*time.Second)
	require.Zero(t, testkit.Count(t, st, `SELECT count(*) FROM execution_admission_state WHERE group_key = 'idle'`))
	require.Zero(t, testkit.Count(t, st, `SELECT count(*) FROM admission_scope WHERE scope_key = 'idle'`))
}
