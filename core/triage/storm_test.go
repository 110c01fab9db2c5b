package triage_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/testkit"
	"github.com/attune-go/attune/core/triage"
)

// Operators and replicas at once: queues of groups below a limit of their pack
// are paused, resumed, limited, cleared and repaired while replicas admit,
// complete and make new groups. No act fails, and every execution ends once.
func TestOperatorsBesideReplicas(t *testing.T) {
	t.Parallel()
	b := setup(t)
	action := b.limited(t, "pk.busy", 2, byTenant)
	testkit.Policy(t, b.store, action, 9, testkit.OfPack(action))
	ctx, cancel := context.WithCancel(testkit.Context(t))
	defer cancel()
	wait := b.storm(ctx, t, action, 2)

	b.pause(t, action) // makes the queue that all acts need
	var acts sync.WaitGroup
	target := triage.Target{Action: action.Ref}
	for n := range 3 {
		acts.Go(func() {
			for round := range 12 {
				if err := b.actAtRandom(ctx, target, n, round); err != nil {
					panic(fmt.Sprintf("act %d of operator %d: %v", round, n, err))
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
	// The nudges of the acts were not delivered: what stands still is found as
	// the sweep of an engine finds it.
	testkit.Eventually(t, func() bool {
		queues := b.ids(t, `select coalesce(array_agg(id), '{}') from execution_admission_state where queued_count > 0`)
		_, err := b.rounds.Run(ctx, scheduler.FillStep{Queues: queues})
		require.NoError(t, err)
		return b.count(t, "completed")+b.count(t, "cancelled") == len(ids)
	}, testkit.TestTimeout)
	testkit.Eventually(t, func() bool { return len(b.holders(t, action)) == 0 }, testkit.TestTimeout)
	cancel()
	wait()
	require.Zero(t, testkit.Count(t, b.store, `select count(*) from late_write`))
	testkit.Invariants(t, b.store)
}

func (b *bundle) actAtRandom(ctx context.Context, target triage.Target, operator, round int) (err error) {
	switch (operator + round) % 5 {
	case 0:
		_, err = b.operator.Override(ctx, triage.Override{Target: target, Act: triage.Pause})
	case 1:
		_, err = b.operator.Override(ctx, triage.Override{Target: target, Act: triage.Resume})
	case 2:
		_, err = b.operator.Override(ctx, triage.Override{Target: target, Act: triage.Limit, Limit: 1 + round%4})
	case 3:
		var plan *triage.ClearPlan
		if plan, err = b.operator.PlanClear(ctx, triage.ClearRequest{Target: target}); err == nil {
			_, err = b.operator.Clear(ctx, plan)
		}
	case 4:
		var receipt *triage.RepairReceipt
		patient := triage.New(triage.Config{}, b.store, nil) // what has just ended is being reported
		if receipt, err = patient.Repair(ctx, "", ""); err == nil && len(receipt.Remains) > 0 {
			err = fmt.Errorf("drift: %v", receipt.Remains)
		}
	}
	return err
}

// Repairs and replicas share the notes of deleted executions: one of them releases each slot, once.
func TestRepairAndRecoveryShareTheNotes(t *testing.T) {
	t.Parallel()
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
	testkit.Invariants(t, b.store)
	b.dispatch(t, ids[75:]...)
	require.Len(t, b.holders(t, action), 40)
	testkit.Invariants(t, b.store)
}

// An execution that ends between the lock and the write of a page rolls the page back. The page is
// decided again, and the execution counts as gone.
func TestClearDecidesAnewWhenAWaiterIsEndedByOthers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	action := b.limited(t, "pk.foreign", 1)
	ids := b.request(t, action, 4)
	b.dispatch(t, ids...)
	plan := b.planClear(t, action)
	foreign, err := b.store.Pool().Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = foreign.Rollback(t.Context()) }() // after the commit it does nothing
	_, err = foreign.Exec(t.Context(), `update execution set status = 'cancelled' where id = $1`, ids[2])
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
	require.Equal(t, attune.StatusCancelled, testkit.StatusOf(t, b.store, ids[2]))
	require.Zero(t, testkit.Count(t, b.store, `select count(*) from late_write`))
	testkit.Invariants(t, b.store)
}
