package admission

import (
	"slices"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/attune-go/attune/core/attune"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is the simplest thing that can hold queues and executions: what the
// database holds between two batches, without SQL.
type world struct {
	queues     map[int64]*stored
	executions map[int64]*Fact
	loads      map[int64]int
	nextTicket int64
}

type stored struct {
	max, active int
	paused      bool
	head, next  int64
	entries     []Waiter // in order
}

// lock makes the ledger that Lock would make.
func (w *world) lock(headsRead int) *Ledger {
	l := &Ledger{queues: map[int64]*queue{}, loads: map[int64]*load{}, facts: map[int64]Fact{}}
	for id, s := range w.queues {
		q := &queue{
			id: id, actionID: id, max: s.max, active: s.active, queued: len(s.entries), head: s.head, next: s.next,
			paused: s.paused, activeBefore: s.active, queuedBefore: len(s.entries), maxBefore: s.max,
		}
		for _, e := range s.entries[:min(headsRead, len(s.entries))] {
			e.Status = w.executions[e.ExecutionID].Status
			q.heads = append(q.heads, e)
		}
		l.queues[id] = q
	}
	for id, n := range w.loads {
		l.loads[id] = &load{before: n, assigned: n, live: true}
	}
	for id, fact := range w.executions {
		l.facts[id] = *fact
	}
	return l
}

// store writes a ledger as Write would, failing where a count would not fit.
func (w *world) store(t require.TestingT, l *Ledger) {
	for _, r := range l.released {
		fact := w.executions[r.execution]
		require.NotNil(t, fact.Holds)
		require.Equal(t, r.queue, *fact.Holds)
		require.True(t, fact.Status.Terminal(), "only the ended are released")
		fact.Holds = nil
	}
	for _, id := range l.withdrawn {
		fact := w.executions[id]
		require.NotNil(t, fact.Waits, "an entry is deleted once")
		s := w.queues[*fact.Waits]
		for i, e := range s.entries {
			if e.ExecutionID == id {
				s.entries = append(s.entries[:i:i], s.entries[i+1:]...)
				break
			}
		}
		fact.Waits = nil
	}
	for _, g := range l.granted {
		fact := w.executions[g.ExecutionID]
		require.Equal(t, attune.StatusRequested, fact.Status)
		require.Nil(t, fact.Holds)
		fact.Status, fact.Holds, fact.Worker = attune.StatusScheduled, &g.Queue, &g.Worker
	}
	for _, e := range l.enqueued {
		w.nextTicket++
		s := w.queues[e.queue]
		s.entries = append(s.entries, Waiter{ExecutionID: e.execution, order: e.order, ticket: w.nextTicket})
		w.executions[e.execution].Waits = &e.queue
	}
	for id, q := range l.queues {
		s := w.queues[id]
		s.active, s.head, s.next, s.max = q.active, q.headOrder(), q.next, q.max
		require.Len(t, s.entries, q.queued, "queued_count is the number of entries")
	}
	for id, at := range l.loads {
		w.loads[id] = at.assigned
	}
}

// check is the invariant query of S3, S6 and the head.
func (w *world) check(t require.TestingT) {
	holders, assigned := map[int64]int{}, map[int64]int{}
	for _, fact := range w.executions {
		if fact.Holds != nil {
			holders[*fact.Holds]++
			assigned[*fact.Worker]++
		}
	}
	for id, s := range w.queues {
		require.Equal(t, holders[id], s.active, "S6: active_count is the number of holders")
		for _, e := range s.entries {
			require.GreaterOrEqual(t, e.order, s.head, "no entry waits below the head")
			require.Less(t, e.order, s.next)
		}
		require.True(t, sort.SliceIsSorted(s.entries, func(i, j int) bool { return s.entries[i].order < s.entries[j].order }))
	}
	for id, n := range w.loads {
		require.Equal(t, assigned[id], n, "assigned is the number of holders at the worker")
	}
}

// The admission of a few queues against the rules themselves: FIFO within a
// queue (S4), nobody overtakes a waiter (S5), no more holders than the limit
// when the last was admitted (S3), each holder released once (S7), a paused
// queue admits nothing (S21), and a free slot with a waiter is filled as long
// as a worker has room (L3).
func TestLedgerKeepsItsPromises(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := &world{queues: map[int64]*stored{}, executions: map[int64]*Fact{}, loads: map[int64]int{1: 0, 2: 0}}
		room := rapid.IntRange(1, 6).Draw(t, "room")
		for id := range int64(rapid.IntRange(1, 3).Draw(t, "queues")) {
			w.queues[id+1] = &stored{max: rapid.IntRange(1, 4).Draw(t, "max"), head: 1, next: 1}
		}
		admitted := map[int64][]int64{} // queue → executions in order of admission
		asked := map[int64][]int64{}    // queue → executions in order of asking
		var nextID int64
		for range rapid.IntRange(1, 30).Draw(t, "batches") {
			reported := finished(t, w)
			l := w.lock(rapid.IntRange(1, 8).Draw(t, "heads"))
			gate := func(Waiter) Answer {
				for _, id := range []int64{1, 2} {
					if n, _ := l.Load(id); n < room {
						return Grant(id)
					}
				}
				return Wait("all workers are busy")
			}
			for _, id := range reported {
				l.Release(id)
				require.False(t, l.Release(id), "S7: a holder is released once")
				l.Withdraw(id)
			}
			changeQueues(t, w, l)
			l.Promote(gate)
			for range rapid.IntRange(0, 4).Draw(t, "requests") {
				nextID++
				queueID := rapid.Int64Range(1, int64(len(w.queues))).Draw(t, "queue")
				w.executions[nextID] = &Fact{ID: nextID, Status: attune.StatusRequested}
				asked[queueID] = append(asked[queueID], nextID)
				l.Admit(Waiter{ExecutionID: nextID, Status: attune.StatusRequested}, Terms{Queue: queueID, MayWait: true}, gate)
			}
			perQueue := map[int64]int{}
			for _, g := range l.Granted() {
				require.False(t, w.queues[g.Queue].paused, "S21: a paused queue admits nothing")
				admitted[g.Queue] = append(admitted[g.Queue], g.ExecutionID)
				perQueue[g.Queue]++
			}
			for id, n := range perQueue {
				require.LessOrEqual(t, l.queues[id].active, l.queues[id].max, "S3: %d admitted over the limit", n)
			}
			requireFilled(t, l, room)
			w.store(t, l)
			w.check(t)
		}
		for id, order := range admitted {
			requireSubsequence(t, order, asked[id])
		}
	})
}

// finished ends some executions: holders and waiters alike, the latter as a
// cancel by another service would.
func finished(t *rapid.T, w *world) []int64 {
	var live []int64
	for id, fact := range w.executions {
		if !fact.Status.Terminal() {
			live = append(live, id)
		}
	}
	slices.Sort(live)
	var ended, reported []int64
	for _, id := range live {
		if rapid.IntRange(0, 2).Draw(t, "ends") == 0 {
			ended = append(ended, id)
		}
	}
	for _, id := range ended {
		w.executions[id].Status = attune.StatusCancelled
		if w.executions[id].Holds != nil || rapid.Bool().Draw(t, "reported") {
			reported = append(reported, id)
		}
	}
	return reported
}

func changeQueues(t *rapid.T, w *world, l *Ledger) {
	for id := int64(1); id <= int64(len(w.queues)); id++ {
		if rapid.IntRange(0, 9).Draw(t, "change limit") == 0 {
			l.SetLimit(id, false, rapid.IntRange(1, 4).Draw(t, "new max"))
		}
		if rapid.IntRange(0, 9).Draw(t, "change pause") == 0 {
			w.queues[id].paused = !w.queues[id].paused
			l.queues[id].paused = w.queues[id].paused
		}
	}
}

// requireFilled checks L3: a queue with a free slot and waiters is paused,
// kept by busy workers, or asks for another batch.
func requireFilled(t *rapid.T, l *Ledger, room int) {
	again := map[int64]bool{}
	for _, id := range l.Unfilled() {
		again[id] = true
	}
	for id, q := range l.queues {
		if q.queued == 0 || q.free() <= 0 || q.paused || again[id] {
			continue
		}
		require.NotEmpty(t, q.blocked)
		for worker := range l.loads {
			n, _ := l.Load(worker)
			require.GreaterOrEqual(t, n, room, "queue %d waits for a worker although one has room", id)
		}
	}
}

func requireSubsequence(t *rapid.T, got, order []int64) {
	at := map[int64]int{}
	for i, id := range order {
		at[id] = i
	}
	require.True(t, sort.SliceIsSorted(got, func(i, j int) bool { return at[got[i]] < at[got[j]] }),
		"S4: admitted %v, asked in order %v", got, order)
}

// Queues that wait for the same worker are served in the order in which their
// heads began to wait.
func TestPromoteServesHeadsByTicket(t *testing.T) {
	t.Parallel()
	l := &Ledger{queues: map[int64]*queue{}, facts: map[int64]Fact{}}
	for id, ticket := range map[int64]int64{1: 30, 2: 10, 3: 20} {
		l.queues[id] = &queue{id: id, max: 1, queued: 1, next: 2, head: 1, heads: []Waiter{
			{ExecutionID: id, Status: attune.StatusRequested, order: 1, ticket: ticket},
		}}
	}
	left := 2
	l.Promote(func(Waiter) Answer {
		if left == 0 {
			return Wait("busy")
		}
		left--
		return Grant(7)
	})
	require.Len(t, l.Granted(), 2)
	require.Equal(t, []int64{2, 3}, []int64{l.Granted()[0].Queue, l.Granted()[1].Queue})
	require.Equal(t, "busy", l.queues[1].blocked)
}

func TestAdmitRefusals(t *testing.T) {
	t.Parallel()
	grant := func(Waiter) Answer { return Grant(1) }
	newcomer := Waiter{ExecutionID: 9, Status: attune.StatusRequested}
	full := func() *Ledger {
		return &Ledger{queues: map[int64]*queue{1: {id: 1, max: 1, active: 1, queued: 2, head: 1, next: 3}}}
	}
	// The method cancel refuses what would have to wait.
	require.Equal(t, Refused, full().Admit(newcomer, Terms{Queue: 1}, grant))
	// S17: the line never grows beyond its maximum.
	require.Equal(t, Full, full().Admit(newcomer, Terms{Queue: 1, MayWait: true, MaxQueued: 2}, grant))
	require.Equal(t, Queued, full().Admit(newcomer, Terms{Queue: 1, MayWait: true, MaxQueued: 3}, grant))
	// What the gate ended takes neither slot nor place.
	empty := &Ledger{queues: map[int64]*queue{1: {id: 1, max: 1, maxBefore: 1, next: 1, head: 1}}}
	require.Equal(t, Ended, empty.Admit(newcomer, Terms{Queue: 1, MayWait: true}, func(Waiter) Answer { return End() }))
	require.False(t, empty.Changed())
}
