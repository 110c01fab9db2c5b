package triage_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
)

// Operators pause, resume, limit, clear and repair queues of groups below a limit of their pack, while replicas admit,
// complete and create new groups. No action fails, and every execution ends once.
func TestOperatorsBesideReplicas(t *testing.T) {
	b := setup(t)
	action := b.limited(t, "pk.busy", 2, byTenant)
	testkit.Policy(t, b.store, action, 9, testkit.OfPack(action))
	ctx, cancel := context.WithCancel(testkit.Context(t))
	defer cancel()
	wait := b.storm(ctx, t, action, 2)

	b.pause(t, action) // creates the queue that all actions need
	var acts sync.WaitGroup
	target := triage.Target{Action: action.Ref}
	for n := range 3 {
		acts.Go(func() {
			for step := range 12 {
				if err := b.step(ctx, target, n+step); err != nil {
					panic(fmt.Sprintf("action %d of operator %d: %v", step, n, err))
				}
			}
		})
	}
	var ids []int64
	for n := range 40 {
		var batch []int64
		for range 10 {
			batch = append(batch, b.requestIn(t, action, fmt.Sprint(rand.N(10)+n/4)))
		}
		b.dispatch(t, batch...)
		ids = append(ids, batch...)
	}
	acts.Wait()
	b.resume(t, action)
	b.dispatch(t, ids...)
	// The nudges of the actions reach no engine here: queues with free slots are found like in the sweep of one.
	testkit.Eventually(t, func() bool {
		queues := b.ids(t, `select coalesce(array_agg(id), '{}') from execution_admission_state where queued_count > 0`)
		_, err := b.scheduler.Run(ctx, scheduler.FillStep{Queues: queues})
		require.NoError(t, err)
		return b.count(t, "completed")+b.count(t, "cancelled") == len(ids)
	}, testkit.TestTimeout)
	testkit.Eventually(t, func() bool { return len(b.holders(t, action)) == 0 }, testkit.TestTimeout)
	cancel()
	wait()
	require.Zero(t, testkit.Count(t, b.store, `select count(*) from late_write`))
	b.invariants(t)
}

// step runs one of five actions on the queues of a target.
func (b *bundle) step(ctx context.Context, target triage.Target, n int) (err error) {
	switch n % 5 {
	case 0:
		_, err = b.operator.Override(ctx, triage.Override{Target: target, Act: triage.Pause})
	case 1:
		_, err = b.operator.Override(ctx, triage.Override{Target: target, Act: triage.Resume})
	case 2:
		_, err = b.operator.Override(ctx, triage.Override{Target: target, Act: triage.Limit, Limit: 1 + n%4})
	case 3:
		var plan *triage.ClearPlan
		if plan, err = b.operator.PlanClear(ctx, triage.ClearRequest{Target: target}); err == nil {
			_, err = b.operator.Clear(ctx, plan)
		}
	case 4:
		var receipt *triage.RepairReceipt
		// A replica may need any time to release the slot of an ended execution: that is no drift.
		operator := triage.New(triage.Config{ReportGrace: time.Hour}, b.store, nil)
		if receipt, err = operator.Repair(ctx, "", ""); err == nil && len(receipt.Remains) > 0 {
			err = fmt.Errorf("drift: %v", receipt.Remains)
		}
	}
	return err
}

// Repairs and replicas share the rows of deleted holders: one of them releases each slot, once.
func TestRepairAndRecoveryShareDeletedHolders(t *testing.T) {
	b := setup(t)
	action := b.limited(t, "pk.notes", 40)
	testkit.Policy(t, b.store, action, 60, testkit.OfPack(action))
	ids := b.request(t, action, 80)
	b.dispatch(t, ids...)
	var group sync.WaitGroup
	for _, share := range [][]int64{ids[:10], ids[10:20], ids[60:70]} {
		group.Go(func() {
			for _, id := range share {
				if _, err := b.store.Pool().Exec(t.Context(), `delete from execution where id = $1`, id); err != nil {
					panic(err)
				}
			}
		})
	}
	group.Go(func() {
		for range 10 {
			if _, err := b.operator.Repair(t.Context(), "", ""); err != nil {
				panic(err)
			}
		}
	})
	engine := b.replica(t)
	group.Go(func() {
		for range 20 {
			rows, err := b.store.FindLostHolders(t.Context(), 3)
			if err != nil {
				panic(err)
			}
			var lost []scheduler.LostHolder
			for _, row := range rows {
				lost = append(lost, scheduler.LostHolder{
					Note: row.ID, Queue: row.StateID, WaitedIn: row.WaitedIn, Worker: row.Worker, Scopes: row.Scopes,
				})
			}
			if _, err := engine.Run(t.Context(), scheduler.NewReturnStep(lost), scheduler.FillStep{},
				scheduler.NewRequestStep(ids[75:])); err != nil {
				panic(err)
			}
		}
	})
	group.Wait()
	receipt, err := b.operator.Repair(t.Context(), "", "")
	require.NoError(t, err)
	require.Empty(t, receipt.Remains)
	require.Zero(t, testkit.Count(t, b.store, `select count(*) from lost_holder`))
	b.invariants(t)
	b.dispatch(t, ids[75:]...)
	require.Len(t, b.holders(t, action), 40)
	b.invariants(t)
}

// An execution that ends between the lock and the write of a page rolls the page back. The page is decided again, and
// the execution counts as gone.
func TestClearDecidesAgainWhenAQueuedExecutionEnds(t *testing.T) {
	b := setup(t)
	action := b.limited(t, "pk.foreign", 1)
	ids := b.request(t, action, 4)
	b.dispatch(t, ids...)
	plan := b.planClear(t, action)
	foreign := testkit.Begin(t, b.store)
	_, err := foreign.Exec(t.Context(), `update execution set status = 'cancelled' where id = $1`, ids[2])
	require.NoError(t, err)
	var receipt *triage.ClearReceipt
	done := make(chan error, 1)
	go func() {
		var err error
		receipt, err = b.operator.Clear(t.Context(), plan)
		done <- err
	}()
	testkit.Eventually(t, func() bool { // it has decided, and waits to write
		return testkit.Count(t, b.store, `select count(*) from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock' and query like '%CancelWaiting%'`) == 1
	}, testkit.TestTimeout)
	require.NoError(t, foreign.Commit(t.Context()))
	require.NoError(t, <-done)
	require.Equal(t, []int{3, 2, 1}, []int{receipt.Planned, receipt.Cancelled, receipt.AlreadyGone})
	require.Len(t, b.ends(t), 2)
	require.Equal(t, lifecycle.StatusCancelled, testkit.StatusOf(t, b.store, ids[2]))
	require.Zero(t, testkit.Count(t, b.store, `select count(*) from late_write`))
	b.invariants(t)
}
