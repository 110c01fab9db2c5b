package triage_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
)

func (b *bundle) move(t *testing.T, request triage.MoveRequest) *triage.MoveReceipt {
	t.Helper()
	receipt, err := b.operator.Move(testkit.Context(t), request)
	require.NoError(t, err)
	return receipt
}

// line lists the waiting executions of an action in the order in which they are served.
func (b *bundle) line(t *testing.T, action testkit.ActionRow) []int64 {
	t.Helper()
	return b.ids(t, `select coalesce(array_agg(q.execution_id order by q.lane desc, q.queue_order), '{}')
		from execution_admission_entry q join execution e on e.id = q.execution_id where e.action = $1`, action.ID)
}

// served ends executions one after the other and lists the ones that start.
func (b *bundle) served(t *testing.T, action testkit.ActionRow, n int) (started []int64) {
	t.Helper()
	for range n {
		b.finish(t, b.holders(t, action)[0])
		started = append(started, b.holders(t, action)...)
	}
	return started
}

// Chosen executions go before the others, in their order; the others keep theirs, and an undo puts back what waits.
func TestFrontAndItsUndo(t *testing.T) {
	b := setup(t)
	action := b.limited(t, "pk.front", 1)
	ids := b.request(t, action, 7)
	b.dispatch(t, ids...)
	ended := b.request(t, action, 1)
	testkit.Exec(t, b.store, `update execution set status = 'cancelled' where id = any($1)`, ended)

	first := b.move(t, triage.MoveRequest{
		Act: triage.MoveFront, IDs: []int64{ids[5], ids[3], ids[0], ended[0], 1 << 40, ids[3]}, Reason: "acme waits",
	})
	require.Equal(t, []int{2, 0, 3, 1}, []int{first.Moved, first.Already, first.Gone, first.Queues})
	require.Equal(t, []int64{ids[3], ids[5], ids[1], ids[2], ids[4], ids[6]}, b.line(t, action))
	require.Equal(t, []int64{ids[0]}, b.holders(t, action), "a running execution is not touched")
	written := b.audit(t, first.Audit)
	require.Equal(t, []string{"ann@desk", "execution.front", "acme waits", "done"},
		[]string{written.Actor, written.Action, written.Reason, written.Outcome})
	second := b.move(t, triage.MoveRequest{Act: triage.MoveFront, IDs: ids[6:]})
	require.Equal(t, []int64{ids[6], ids[3], ids[5], ids[1], ids[2], ids[4]}, b.line(t, action))
	late := b.request(t, action, 1)
	b.dispatch(t, late...)
	require.Equal(t, []int64{ids[6], ids[3]}, b.served(t, action, 2))

	undone := b.move(t, triage.MoveRequest{Act: triage.MoveBack, Undoes: first.Audit})
	require.Equal(t, []int{1, 0, 1}, []int{undone.Moved, undone.Already, undone.Gone})
	require.Equal(t, []int64{ids[1], ids[2], ids[4], ids[5], late[0]}, b.line(t, action))
	require.Equal(t, "execution.put-back", b.audit(t, undone.Audit).Action)
	again := b.move(t, triage.MoveRequest{Act: triage.MoveBack, Undoes: first.Audit})
	require.Equal(t, []int{0, 1, 1}, []int{again.Moved, again.Already, again.Gone})
	require.Equal(t, "unchanged", b.audit(t, again.Audit).Outcome)
	gone := b.move(t, triage.MoveRequest{Act: triage.MoveBack, Undoes: second.Audit})
	require.Equal(t, []int{0, 0, 1}, []int{gone.Moved, gone.Already, gone.Gone})
	_, err := b.operator.Move(testkit.Context(t), triage.MoveRequest{Act: triage.MoveBack, Undoes: undone.Audit})
	require.ErrorIs(t, err, triage.ErrNoMove)
	require.True(t, triage.Refused(err))
	b.invariants(t)
	require.Equal(t, []int64{ids[1], ids[2], ids[4], ids[5], late[0]}, b.served(t, action, 5))
	b.invariants(t)
}

// An execution in another lane keeps its place by arrival there, and its lane in other queues.
func TestLaneAndItsUndo(t *testing.T) {
	b := setup(t)
	action := b.limited(t, "pk.lane", 1)
	ids := b.request(t, action, 6)
	b.dispatch(t, ids...)
	high := b.move(t, triage.MoveRequest{Act: triage.MoveLane, Lane: 1, IDs: []int64{ids[4], ids[2], ids[0]}})
	require.Equal(t, []int{2, 0, 1}, []int{high.Moved, high.Already, high.Gone})
	b.move(t, triage.MoveRequest{Act: triage.MoveLane, Lane: -1, IDs: ids[1:2]})
	require.Equal(t, []int64{ids[2], ids[4], ids[3], ids[5], ids[1]}, b.line(t, action))
	b.invariants(t)
	require.Equal(t, 3, testkit.Count(t, b.store, `select count(*) from execution e
		join execution_admission_entry q on q.execution_id = e.id where q.lane <> 0 and e.priority = q.lane`))
	b.move(t, triage.MoveRequest{Act: triage.MoveFront, IDs: []int64{ids[4], ids[5]}})
	require.Equal(t, []int64{ids[4], ids[2], ids[5], ids[3], ids[1]}, b.line(t, action), "each in its lane")
	same := b.move(t, triage.MoveRequest{Act: triage.MoveLane, Lane: 1, IDs: ids[4:5]})
	require.Equal(t, 1, same.Already)
	undone := b.move(t, triage.MoveRequest{Act: triage.MoveBack, Undoes: high.Audit})
	require.Equal(t, []int{1, 1, 0}, []int{undone.Moved, undone.Already, undone.Gone}, "one was moved again since")
	require.Equal(t, []int64{ids[4], ids[5], ids[2], ids[3], ids[1]}, b.line(t, action))
	b.invariants(t)
	require.Equal(t, []int64{ids[4], ids[5], ids[2], ids[3], ids[1]}, b.served(t, action, 5))
	b.invariants(t)
}

// A queue keeps its turns at a shared limit: what goes to the front starts when the first one would have started, and
// the other queue does not wait longer.
func TestFrontAtASharedLimit(t *testing.T) {
	b := setup(t)
	one, two := b.limited(t, "pk.one", 5), testkit.Action(t, b.store, "pk.two")
	testkit.Policy(t, b.store, two, 5)
	testkit.Policy(t, b.store, one, 1, testkit.OfPack(one))
	var ids, others []int64
	for range 4 { // by turns
		ids, others = append(ids, b.request(t, one, 1)...), append(others, b.request(t, two, 1)...)
		b.dispatch(t, ids[len(ids)-1], others[len(others)-1])
	}
	turns := func() (started []int64) {
		for range 3 {
			running := append(b.holders(t, one), b.holders(t, two)...)
			require.Len(t, running, 1)
			b.finish(t, running[0])
			started = append(started, append(b.holders(t, one), b.holders(t, two)...)...)
		}
		return started
	}
	receipt := b.move(t, triage.MoveRequest{Act: triage.MoveFront, IDs: ids[3:]})
	require.Equal(t, []int64{ids[3], ids[1], ids[2]}, b.line(t, one))
	require.Equal(t, ids[3:], b.nudged(t), "the head of the queue, which another worker may take")
	require.Equal(t, []int64{others[0], ids[3], others[1]}, turns())
	require.Equal(t, 1, b.move(t, triage.MoveRequest{Act: triage.MoveBack, Undoes: receipt.Audit}).Gone)
	require.Equal(t, []int64{ids[1], others[2], ids[2]}, turns())
	b.invariants(t)
}

// Replicas admit and requests arrive while executions are moved: each starts once, and no queue stops.
func TestFrontAgainstConcurrentAdmissionAndArrivals(t *testing.T) {
	b := setup(t)
	action := b.limited(t, "pk.race", 3)
	ids := b.request(t, action, 60)
	b.dispatch(t, ids...)
	later := b.request(t, action, 40)
	var all sync.WaitGroup
	for _, replica := range []*scheduler.Scheduler{b.scheduler, b.replica(t)} {
		all.Go(func() {
			for range 15 {
				running := b.holders(t, action)
				if len(running) == 0 {
					return
				}
				testkit.Exec(t, b.store, `update execution set status = 'completed' where id = $1`, running[0])
				_, err := replica.Run(t.Context(), scheduler.NewReleaseStep(running[:1]), scheduler.FillStep{})
				require.NoError(t, err)
			}
		})
	}
	all.Go(func() {
		for part := range slices.Chunk(later, 4) {
			_, err := b.scheduler.Run(t.Context(), scheduler.FillStep{}, scheduler.NewRequestStep(part))
			require.NoError(t, err)
		}
	})
	var audits []int64
	for i := range 10 {
		receipt := b.move(t, triage.MoveRequest{Act: triage.MoveFront, IDs: []int64{ids[50+i], ids[40+i]}})
		audits = append(audits, receipt.Audit)
		b.move(t, triage.MoveRequest{Act: triage.MoveLane, Lane: int16(i%3) - 1, IDs: ids[20+i : 22+i]})
	}
	b.move(t, triage.MoveRequest{Act: triage.MoveBack, Undoes: audits[4]})
	all.Wait()
	b.invariants(t)
	chosen := b.request(t, action, 4)
	b.dispatch(t, chosen...)
	b.move(t, triage.MoveRequest{Act: triage.MoveLane, Lane: 1, IDs: chosen})
	b.move(t, triage.MoveRequest{Act: triage.MoveFront, IDs: chosen[2:]})
	require.Equal(t, []int64{chosen[2], chosen[3]}, slices.DeleteFunc(b.line(t, action), func(id int64) bool {
		return !slices.Contains(chosen[2:], id)
	}))
	for len(b.holders(t, action)) > 0 {
		b.finish(t, b.holders(t, action)...)
	}
	require.Empty(t, b.line(t, action))
	b.invariants(t)
}
