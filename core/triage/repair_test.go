package triage_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
)

// Every kind of drift is found, repaired under the locks, and audited. Later batches work as without it.
func TestRepairOfEveryKindOfDrift(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		drift string // $1: a holder, $2: a queued execution
		kinds []string
		gone  int // holders that the drift removes
	}{
		"ActiveCountTooHigh": {
			`update execution_admission_state set active_count = active_count + 1`,
			[]string{"queue", "statistics"},
			0,
		},
		"ActiveCountTooLow": {
			`update execution_admission_state set active_count = 0`,
			[]string{"queue", "statistics"},
			0,
		},
		"QueuedCountTooHigh": {
			`update execution_admission_state set queued_count = queued_count + 5`,
			[]string{"queue", "statistics"},
			0,
		},
		"QueuedCountTooLow": {
			`update execution_admission_state set queued_count = 0`,
			[]string{"queue", "statistics"},
			0,
		},
		"LaneCounts": {
			`update execution_admission_state set queued_high = 2, queued_low = 1`,
			[]string{"queue", "queue"},
			0,
		},
		"HeadBehindAWaiter": {
			`update execution_admission_state set head_order = head_order + 2`,
			[]string{"queue"},
			0,
		},
		"OrderGivenTwice":  {`update execution_admission_state set next_queue_order = 1`, []string{"queue"}, 0},
		"WorkerLoad":       {`update worker_load set assigned = assigned + 3`, []string{"worker"}, 0},
		"WorkerLoadTooLow": {`update worker_load set assigned = 0`, []string{"worker"}, 0},
		"Scope": {
			`update admission_scope set active_count = 17 where kind = 'pack'`,
			[]string{"scope"},
			0,
		},
		"Statistics": {
			`update queue_stats set queue_length = 40, active_count = 41`,
			[]string{"statistics", "statistics"},
			0,
		},
		"EndedHolder":   {`update execution set status = 'completed' where id = $1`, []string{"ended"}, 1},
		"EndedWaiter":   {`update execution set status = 'cancelled' where id = $2`, []string{"ended"}, 0},
		"DeletedHolder": {`delete from execution where id = $1`, []string{"deleted"}, 1},
		"DeletedWaiter": {`delete from execution where id = $2`, []string{"queue", "deleted"}, 0},
		"DeletedWithoutANote": {
			`with d as (delete from execution where id = $1) select 1`,
			[]string{"queue", "worker", "scope"},
			1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			action := b.limited(t, "pk.drift", 3)
			testkit.Policy(t, b.store, action, 50, testkit.OfPack(action))
			ids := b.request(t, action, 8)
			require.Equal(t, 3, b.dispatch(t, ids...).Granted)
			b.drift(t, tc.drift, ids[0], ids[4])
			if name == "DeletedWithoutANote" {
				testkit.Exec(t, b.store, `delete from lost_holder`)
			}

			plan, err := b.operator.PlanRepair(testkit.Context(t), "")
			require.NoError(t, err)
			kinds := make([]string, len(plan.Found))
			for i, d := range plan.Found {
				kinds[i] = d.Kind
			}
			require.Equal(t, tc.kinds, kinds, plan.Found)
			require.Zero(t, testkit.Count(t, b.store, `select count(*) from operator_audit`), "a plan writes nothing")

			receipt, err := b.operator.Repair(testkit.Context(t), "", "it was restored")
			require.NoError(t, err)
			require.Equal(t, plan.Found, receipt.Found)
			require.Empty(t, receipt.Remains)
			require.NotEmpty(t, receipt.Audits)
			for _, id := range receipt.Audits {
				row := b.audit(t, id)
				require.Equal(t, "queue.repair", row.Action)
				require.Equal(t, "it was restored", row.Reason)
			}
			b.invariants(t)
			require.Zero(t, testkit.Count(t, b.store, `select count(*) from lost_holder`))
			again, err := b.operator.Repair(testkit.Context(t), action.Ref, "")
			require.NoError(t, err)
			require.Empty(t, again.Found, "there is nothing left to repair")
			require.Empty(t, again.Audits)

			require.Len(t, b.holders(t, action), 3-tc.gone)
			b.dispatch(t, b.nudged(t)...)
			require.Len(t, b.holders(t, action), 3, "the nudge fills the released slots")
			for holders := b.holders(t, action); len(holders) > 0; holders = b.holders(t, action) {
				b.finish(t, holders...)
			}
			require.Empty(t, b.waiting(t, action), "all are admitted")
			require.Zero(t, testkit.Count(t, b.store, `select count(*) from execution where status = 'requested'`))
			b.invariants(t)
		})
	}
}

// drift runs a statement with the executions as $1 and $2.
func (b *bundle) drift(t *testing.T, sql string, holder, waiter int64) {
	t.Helper()
	conn, err := b.store.Pool().Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	_, err = conn.Exec(t.Context(), `prepare drift (bigint, bigint) as `+sql)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(),
		`execute drift (`+strconv.FormatInt(holder, 10)+`, `+strconv.FormatInt(waiter, 10)+`)`)
	require.NoError(t, err)
}

// Executions in other queues that wait for a repaired slot start without waiting for a sweep.
func TestARepairNudgesExecutionsThatWaitForItsSlots(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		shared bool   // the queues share a limit, else a worker
		drift  string // $1: the execution that holds
	}{
		"EndedHolderOfASharedLimit":   {true, `update execution set status = 'completed' where id = $1`},
		"DeletedHolderOfASharedLimit": {true, `delete from execution where id = $1`},
		"EndedHolderOfAWorker":        {false, `update execution set status = 'completed' where id = $1`},
		"DeletedHolderOfAWorker":      {false, `delete from execution where id = $1`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			capacity := 1
			if tc.shared {
				capacity = 1000
			}
			testkit.Worker(t, b.store, "w1",
				func(w *testkit.WorkerRow) { w.Capabilities = testkit.DefaultCapabilities(capacity) })
			holding, waiting := testkit.Action(t, b.store, "pk.holding"), testkit.Action(t, b.store, "pk.waiting")
			if tc.shared {
				testkit.Policy(t, b.store, holding, 3, testkit.OfPack(holding))
			}
			held := b.request(t, holding, 3) // as many as the worker takes: one to run and two at hand
			require.Equal(t, 3, b.dispatch(t, held...).Granted)
			ids := b.request(t, waiting, 2)
			require.Zero(t, b.dispatch(t, ids...).Granted)
			require.Equal(t, 1, testkit.Count(t, b.store, `select count(*) from admission_blocked`))

			b.drift(t, tc.drift, held[0], ids[0])
			receipt, err := b.operator.Repair(testkit.Context(t), "", "")
			require.NoError(t, err)
			require.NotEmpty(t, receipt.Found)
			require.Empty(t, receipt.Remains)
			nudged := b.nudged(t)
			require.Equal(t, ids[:1], nudged, "one head of a queue that waits for the slot")
			require.Equal(t, 1, b.dispatch(t, nudged...).Granted)
			require.Equal(t, ids[:1], b.holders(t, waiting))
			b.invariants(t)
		})
	}
}

// A repair of one action leaves the drift of others.
func TestRepairOfOneAction(t *testing.T) {
	b := setup(t)
	one, two := b.limited(t, "pk.one", 1), b.limited(t, "pk.two", 1)
	b.dispatch(t, append(b.request(t, one, 2), b.request(t, two, 2)...)...)
	testkit.Exec(t, b.store, `update execution_admission_state set active_count = 5`)
	receipt, err := b.operator.Repair(testkit.Context(t), one.Ref, "")
	require.NoError(t, err)
	require.Len(t, receipt.Found, 2, "the queue and its statistics")
	require.Empty(t, receipt.Remains)
	audited := b.audit(t, receipt.Audits[0])
	require.Equal(t, one.Ref, audited.Target)
	plan, err := b.operator.PlanRepair(testkit.Context(t), "")
	require.NoError(t, err)
	require.Len(t, plan.Remains, 2)
	require.Equal(t, two.Ref, plan.Remains[0].Name)
	_, err = b.operator.Repair(testkit.Context(t), "pk.nothing", "")
	require.ErrorIs(t, err, triage.ErrNoAction)
}

// Repairs beside running replicas break nothing, and report no slot in use as drift.
func TestRepairBesideRunningReplicas(t *testing.T) {
	b := setup(t)
	// An execution that has just ended is no drift, however long its replica needs to release the slot.
	operator := triage.New(triage.Config{Actor: "ann", ReportGrace: time.Hour}, b.store, nil)
	action := b.limited(t, "pk.live", 3)
	b.dispatch(t, b.request(t, action, 600)...)
	ctx, cancel := context.WithCancel(testkit.Context(t))
	defer cancel()
	wait := b.storm(ctx, t, action, 2)
	for n := range 6 {
		if n%2 == 1 {
			testkit.Exec(t, b.store,
				`update execution_admission_state set active_count = active_count + 1, queued_count = queued_count + 2`)
		}
		receipt, err := operator.Repair(ctx, "", "")
		require.NoError(t, err)
		if n == 0 {
			require.Empty(t, receipt.Found)
		}
		require.Empty(t, receipt.Remains)
	}
	testkit.Eventually(t, func() bool { return b.count(t, "completed") == 600 }, testkit.TestTimeout)
	cancel()
	wait()
	b.invariants(t)
}
