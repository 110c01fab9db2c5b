package admission

import (
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world holds queues, shared limits and executions between two batches, as the database does, without SQL.
type world struct {
	queues     map[int64]*stored
	scopes     map[int64]*sharedLimit
	executions map[int64]*Fact
	priority   map[int64]int16
	loads      map[int64]int
	nextTicket int64
}

type stored struct {
	columns
	paused  bool
	needs   []int64 // the shared limits of its executions
	entries [laneCount][]Candidate
}

type sharedLimit struct{ max, active int }

// lock makes the ledger that Lock would make.
func (w *world) lock(t require.TestingT, headsRead int) *Ledger {
	l := &Ledger{
		queues: map[int64]*queue{}, scopes: map[int64]*scope{}, facts: map[int64]Fact{},
		assigned: map[int64]int{}, standings: map[int64]standing{},
	}
	for id, s := range w.queues {
		q := &queue{id: id, actionID: id, paused: s.paused, columns: s.columns}
		q.enqueuedEver, q.completed = 0, 0
		q.before = q.columns
		for lane, entries := range s.entries {
			require.Len(t, entries, s.queued[lane])
			for _, e := range entries[:min(headsRead, len(entries))] {
				e.Status = w.executions[e.ExecutionID].Status
				q.heads[lane] = append(q.heads[lane], e)
			}
		}
		l.queues[id] = q
	}
	for id, s := range w.scopes {
		sc := &scope{
			id: id, kind: policy.SharedPack,
			rule: &policy.SharedLimit{Kind: policy.SharedPack, Method: policy.MethodEnqueue},
		}
		sc.max, sc.active = s.max, s.active
		sc.before = sc.scopeColumns
		l.scopes[id] = sc
	}
	for id, n := range w.loads {
		l.assigned[id], l.standings[id] = n, standing{live: true}
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
		require.Len(t, fact.Scopes, r.slots)
		require.True(t, fact.Status.Terminal(), "only the ended are released")
		fact.Holds, fact.Scopes = nil, nil
	}
	for _, id := range l.withdrawn {
		fact := w.executions[id]
		require.NotNil(t, fact.Waits, "an entry is deleted once")
		s := w.queues[*fact.Waits]
		for lane := range s.entries {
			s.entries[lane] = slices.DeleteFunc(s.entries[lane], func(e Candidate) bool { return e.ExecutionID == id })
		}
		fact.Waits = nil
	}
	for _, g := range l.granted {
		fact := w.executions[g.ExecutionID]
		require.Equal(t, lifecycle.StatusRequested, fact.Status)
		require.Nil(t, fact.Holds)
		fact.Status, fact.Holds, fact.HeldAt, fact.Scopes = lifecycle.StatusScheduled, &g.Queue, &g.Worker, g.Scopes
	}
	for _, e := range l.enqueued {
		w.nextTicket++
		s := w.queues[e.queue]
		s.entries[e.lane] = append(s.entries[e.lane],
			Candidate{ExecutionID: e.execution, order: e.order, ticket: w.nextTicket})
		sort.Slice(s.entries[e.lane],
			func(i, j int) bool { return s.entries[e.lane][i].order < s.entries[e.lane][j].order })
		fact := w.executions[e.execution]
		fact.Waits, fact.lane = &e.queue, e.lane
	}
	for id, q := range l.queues {
		w.queues[id].columns = q.columns
	}
	for id, s := range l.scopes {
		w.scopes[id].active = s.active
	}
	for id, c := range l.changes {
		require.True(t, !c.takes || c.by <= 0 || w.loads[id]+c.by <= c.most, "no worker has more than it may have")
		w.loads[id] += c.by
		require.Equal(t, l.Assigned(id), w.loads[id])
	}
}

// check is the invariant queries of S3, S6 and the heads.
func (w *world) check(t require.TestingT) {
	holders, assigned, shared := map[int64]int{}, map[int64]int{}, map[int64]int{}
	for _, fact := range w.executions {
		if fact.Holds == nil {
			require.Empty(t, fact.Scopes, "all or none")
			continue
		}
		holders[*fact.Holds]++
		assigned[*fact.HeldAt]++
		require.Equal(t, w.queues[*fact.Holds].needs, fact.Scopes, "all or none")
		for _, id := range fact.Scopes {
			shared[id]++
		}
	}
	for id, s := range w.queues {
		require.Equal(t, holders[id], s.active, "S6: active_count is the number of holders")
		for lane, entries := range s.entries {
			require.Len(t, entries, s.queued[lane], "queued_count is the number of entries")
			for _, e := range entries {
				require.GreaterOrEqual(t, e.order, s.head[lane], "no entry waits below the head")
				require.Less(t, e.order, s.next)
			}
		}
	}
	for id, s := range w.scopes {
		require.Equal(t, shared[id], s.active, "S6: a shared limit's counter is the number of slots taken of it")
	}
	for id, n := range w.loads {
		require.Equal(t, assigned[id], n, "assigned is the number of holders at the worker")
	}
}

func drawWorld(t *rapid.T) *world {
	w := &world{
		queues: map[int64]*stored{}, scopes: map[int64]*sharedLimit{}, executions: map[int64]*Fact{},
		priority: map[int64]int16{}, loads: map[int64]int{1: 0, 2: 0},
	}
	for id := range int64(rapid.IntRange(0, 2).Draw(t, "shared limits")) {
		w.scopes[id+100] = &sharedLimit{max: rapid.IntRange(1, 4).Draw(t, "shared max")}
	}
	for id := range int64(rapid.IntRange(1, 3).Draw(t, "queues")) {
		s := &stored{columns: columns{next: 1, head: [laneCount]int64{1, 1, 1}}}
		s.limits.max = rapid.IntRange(1, 4).Draw(t, "max")
		for scope := range int64(len(w.scopes)) {
			if rapid.Bool().Draw(t, "needs") {
				s.needs = append(s.needs, scope+100)
			}
		}
		w.queues[id+1] = s
	}
	return w
}

func (w *world) gate(l *Ledger, queueOf map[int64]int64, room int) Gate {
	return Gate{
		Scopes: func(c Candidate) ([]int64, bool) { return w.queues[queueOf[c.ExecutionID]].needs, true },
		Place: func(Candidate) Answer {
			for _, id := range []int64{1, 2} {
				if l.Assigned(id) < room {
					return Grant(id, room)
				}
			}
			return Wait("all workers are busy")
		},
	}
}

// The admission of a few queues that share limits and workers against the rules
// themselves: FIFO within a lane (S4), nothing overtakes a queued execution (S5), no more
// holders than the limit when the last was admitted, of the queue and of every
// shared limit (S3), each holder released once (S7), a paused queue admits
// nothing (S21), a lower lane has its turn (S23), and a free slot with a queued execution
// is filled as long as everything wider has room (L3).
func TestLedgerKeepsItsPromises(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		room := rapid.IntRange(1, 6).Draw(t, "room")
		queueOf := map[int64]int64{}
		type line struct {
			queue int64
			lane  int
		}
		admitted := map[line][]int64{} // in order of admission
		asked := map[line][]int64{}    // in order of asking
		var nextID int64
		for range rapid.IntRange(1, 30).Draw(t, "batches") {
			reported := finished(t, w)
			l := w.lock(t, rapid.IntRange(1, 8).Draw(t, "heads"))
			gate := w.gate(l, queueOf, room)
			for _, id := range reported {
				l.Release(id)
				require.False(t, l.Release(id), "S7: a holder is released once")
				l.Withdraw(id)
			}
			changeQueues(t, w, l)
			waiting, counted := w.waiting(l), map[int64][laneCount]int{}
			for id, q := range l.queues {
				counted[id] = q.queued
			}
			l.Promote(gate)
			requireLowerLanesServed(t, w, l, waiting, counted)
			for range rapid.IntRange(0, 4).Draw(t, "requests") {
				nextID++
				queueID := rapid.Int64Range(1, int64(len(w.queues))).Draw(t, "queue")
				priority := int16(rapid.IntRange(-1, 1).Draw(t, "priority"))
				w.executions[nextID] = &Fact{ID: nextID, Status: lifecycle.StatusRequested}
				w.priority[nextID], queueOf[nextID] = priority, queueID
				of := line{queueID, laneOf(priority)}
				asked[of] = append(asked[of], nextID)
				result, _ := l.Admit(Candidate{ExecutionID: nextID, Status: lifecycle.StatusRequested},
					AdmitOptions{Queue: queueID, MayWait: true, Priority: priority}, gate)
				if result == Admitted {
					require.Zero(t, l.queues[queueID].waiting(), "S5: directly only if no execution waits")
				}
			}
			for _, g := range l.Granted() {
				require.False(t, w.queues[g.Queue].paused, "S21: a paused queue admits nothing")
				of := line{g.Queue, laneOf(w.priority[g.ExecutionID])}
				admitted[of] = append(admitted[of], g.ExecutionID)
				q := l.queues[g.Queue]
				require.LessOrEqual(t, q.active, q.limits.max, "S3")
				for _, id := range g.Scopes {
					require.LessOrEqual(t, l.scopes[id].active, l.scopes[id].max, "S3 of a shared limit")
				}
			}
			requireFilled(t, w, l, room)
			w.store(t, l)
			w.check(t)
		}
		for of, order := range admitted {
			requireSubsequence(t, order, asked[of])
		}
	})
}

// finished ends some executions: holders and queued executions alike, the latter as a
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
		w.executions[id].Status = lifecycle.StatusCancelled
		if w.executions[id].Holds != nil || rapid.Bool().Draw(t, "reported") {
			reported = append(reported, id)
		}
	}
	return reported
}

func changeQueues(t *rapid.T, w *world, l *Ledger) {
	for id := int64(1); id <= int64(len(w.queues)); id++ {
		if rapid.IntRange(0, 9).Draw(t, "change limit") == 0 {
			l.Configure(id, QueueConfig{Limit: policy.Limit{Max: rapid.IntRange(1, 4).Draw(t, "new max")}})
		}
		if rapid.IntRange(0, 9).Draw(t, "change pause") == 0 {
			w.queues[id].paused = !w.queues[id].paused
			l.queues[id].paused = w.queues[id].paused
		}
	}
}

// waiting counts, by queue and lane, the executions that could be admitted. A cancelled one that was
// not reported leaves a hole in its queue.
func (w *world) waiting(l *Ledger) map[int64][laneCount]int {
	waiting := map[int64][laneCount]int{}
	for _, fact := range l.facts {
		if fact.Waits == nil || w.executions[fact.ID].Status != lifecycle.StatusRequested {
			continue
		}
		lanes := waiting[*fact.Waits]
		lanes[fact.lane]++
		waiting[*fact.Waits] = lanes
	}
	return waiting
}

// requireLowerLanesServed checks S23 batch by batch: no more than MaxStreak
// admissions in a row pass a lower lane with waiting executions. A higher lane with only holes may
// count as waiting.
func requireLowerLanesServed(t *rapid.T, w *world, l *Ledger, waiting, counted map[int64][laneCount]int) {
	row := map[int64]int{}
	for id, s := range w.queues {
		row[id] = s.streak
	}
	for _, g := range l.Granted() {
		lane, left, lines := laneOf(w.priority[g.ExecutionID]), waiting[g.Queue], counted[g.Queue]
		highest, below := true, false
		for other := range laneCount {
			highest = highest && (other >= lane || lines[other] == 0)
			below = below || (other > lane && left[other] > 0)
		}
		if highest && below {
			row[g.Queue]++
		} else {
			row[g.Queue] = 0
		}
		require.LessOrEqual(t, row[g.Queue], MaxStreak, "S23")
		left[lane]--
		lines[lane]--
		waiting[g.Queue], counted[g.Queue] = left, lines
	}
}

// requireFilled checks L3: a queue with a free slot and queued executions is paused,
// kept by a full shared limit or busy workers, or asks for another batch.
func requireFilled(t *rapid.T, w *world, l *Ledger, room int) {
	again := l.Unfilled()
	for id, q := range l.queues {
		if q.waiting() == 0 || q.free() <= 0 || q.paused || slices.Contains(again, id) {
			continue
		}
		require.NotNil(t, q.blocked)
		if q.blocked.scope != 0 {
			s := l.scopes[q.blocked.scope]
			require.True(t, s.awaited || s.active+s.reserved >= s.max,
				"queue %d waits for a shared limit that has room", id)
			require.True(t, !s.awaited || len(again) > 0, "an unread queue is checked by another batch")
			require.Contains(t, w.queues[id].needs, q.blocked.scope)
			continue
		}
		for worker := range w.loads {
			require.GreaterOrEqual(t, l.Assigned(worker), room, "queue %d waits for a worker although one has room", id)
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

// waitingQueue makes a queue in which executions with these tickets stand, in this order.
func waitingQueue(id int64, limit int, tickets ...int64) *queue {
	q := &queue{id: id, columns: columns{next: 100, head: [laneCount]int64{1, 1, 1}}}
	q.limits.max = limit
	for i, ticket := range tickets {
		q.heads[laneNormal] = append(q.heads[laneNormal], Candidate{
			ExecutionID: id*1000 + int64(i), ActionID: id, Status: lifecycle.StatusRequested, order: int64(i + 1),
			ticket: ticket,
		})
		q.queued[laneNormal]++
	}
	q.before = q.columns
	return q
}

func order(l *Ledger) []int64 {
	var ids []int64
	for _, g := range l.Granted() {
		ids = append(ids, g.ExecutionID)
	}
	return ids
}

func always(Candidate) Answer { return Grant(7, 100) }

// Queues that wait for the same worker are served in the order in which their
// heads began to wait.
func TestPromoteServesHeadsByTicket(t *testing.T) {
	t.Parallel()
	l := &Ledger{facts: map[int64]Fact{}, queues: map[int64]*queue{
		1: waitingQueue(1, 1, 30), 2: waitingQueue(2, 1, 10), 3: waitingQueue(3, 1, 20),
	}}
	left := 2
	l.Promote(Gate{Place: func(Candidate) Answer {
		if left == 0 {
			return Wait("busy")
		}
		left--
		return Grant(7, 100)
	}})
	require.Equal(t, []int64{2000, 3000}, order(l))
	require.Equal(t, "busy", l.queues[1].blocked.reason)
}

func shared(kind policy.SharedKind, limit int, change ...func(*scope)) *scope {
	s := &scope{
		id: 5, kind: kind,
		rule: &policy.SharedLimit{Kind: kind, Max: limit, PolicyRef: "p.shared", Method: policy.MethodEnqueue},
	}
	s.max = limit
	for _, c := range change {
		c(s)
	}
	return s
}

func needs(ids ...int64) func(Candidate) ([]int64, bool) {
	return func(Candidate) ([]int64, bool) { return ids, true }
}

// S4 for a shared limit: its slots go to the heads of all its queues in the order in which they began
// to wait. A later execution does not take a slot that an earlier one cannot use for want of a worker
// only.
func TestS4SharedLimitsServeByTicketAndReserveForEarlierExecutions(t *testing.T) {
	t.Parallel()
	l := &Ledger{
		facts: map[int64]Fact{}, scopes: map[int64]*scope{5: shared(policy.SharedPack, 3)},
		queues: map[int64]*queue{
			1: waitingQueue(1, 9, 10, 40), 2: waitingQueue(2, 9, 20, 30),
			3: waitingQueue(3, 9, 15),
		},
	}
	l.Promote(Gate{Scopes: needs(5), Place: func(w Candidate) Answer {
		if w.ActionID == 3 {
			return Wait("its kind of worker is busy")
		}
		return Grant(7, 100)
	}})
	require.Equal(t, []int64{1000, 2000}, order(l), "the third slot is kept for the one that waits for its worker")
	require.Equal(t, 2, l.scopes[5].active)
	require.Equal(t, int64(5), l.queues[1].blocked.scope)
	require.Zero(t, l.queues[3].blocked.scope, "the workers keep it")

	// A newcomer does not get it either.
	l.queues[4] = waitingQueue(4, 9)
	result, _ := l.Admit(Candidate{ExecutionID: 9, Status: lifecycle.StatusRequested},
		AdmitOptions{Queue: 4, MayWait: true},
		Gate{Scopes: needs(5), Place: always})
	require.Equal(t, Queued, result)
}

// S23: of eight admissions at least one goes to a lower lane that waits, and
// among the lower lanes to the one that has waited longest.
func TestS23LowerLanesArePromotedToo(t *testing.T) {
	t.Parallel()
	q := waitingQueue(1, 1000)
	for i := range 40 {
		q.heads[laneHigh] = append(q.heads[laneHigh], Candidate{
			ExecutionID: int64(100 + i),
			Status:      lifecycle.StatusRequested, order: int64(i + 1), ticket: int64(1000 + i),
		})
	}
	q.heads[laneNormal] = []Candidate{{ExecutionID: 1, Status: lifecycle.StatusRequested, order: 60, ticket: 2}}
	q.heads[laneLow] = []Candidate{
		{ExecutionID: 2, Status: lifecycle.StatusRequested, order: 50, ticket: 1},
		{ExecutionID: 3, Status: lifecycle.StatusRequested, order: 70, ticket: 3},
	}
	q.queued = [laneCount]int{40, 1, 2}
	l := &Ledger{facts: map[int64]Fact{}, queues: map[int64]*queue{1: q}}
	l.Promote(Gate{Place: always})
	got := order(l)
	require.Len(t, got, 43)
	require.Equal(t, []int{7, 15, 23}, []int{slices.Index(got, 2), slices.Index(got, 1), slices.Index(got, 3)})
}

// A rate and a quota keep a head until their moment comes, and say when.
func TestS22RatesAndQuotasSayWhenToTryAgain(t *testing.T) {
	t.Parallel()
	clock := time.Date(2026, 5, 1, 10, 0, 30, 0, time.UTC)
	for name, tc := range map[string]struct {
		limit *scope
		want  int
		after time.Duration
	}{
		"rate": {
			shared(policy.SharedRate, 6, func(s *scope) { s.rule.Window, s.rule.Burst = time.Minute, 2 }), 2,
			10 * time.Second,
		},
		"quota": {shared(policy.SharedQuota, 3, func(s *scope) {
			s.rule.Window, s.period, s.used = time.Minute, clock.Truncate(time.Minute), 1
		}), 2, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &Ledger{
				Now: clock, Clock: clock, facts: map[int64]Fact{}, scopes: map[int64]*scope{5: tc.limit},
				queues: map[int64]*queue{1: waitingQueue(1, 9, 1, 2, 3, 4)},
			}
			l.Promote(Gate{Scopes: needs(5), Place: always})
			require.Len(t, l.Granted(), tc.want)
			require.Empty(t, l.Granted()[0].Scopes, "a start is counted, no slot is held")
			after, ok := l.Wake()
			require.True(t, ok)
			require.Equal(t, tc.after, after)
		})
	}
}

func TestAdmitRefusals(t *testing.T) {
	t.Parallel()
	grant := Gate{Place: always}
	newcomer := Candidate{ExecutionID: 9, Status: lifecycle.StatusRequested}
	admit := func(l *Ledger, how AdmitOptions, gate Gate) Result {
		how.Queue = 1
		result, _ := l.Admit(newcomer, how, gate)
		return result
	}
	full := func() *Ledger {
		q := waitingQueue(1, 1, 1, 2)
		q.active = 1
		return &Ledger{queues: map[int64]*queue{1: q}}
	}
	// The method cancel refuses only executions that would have to wait for a slot.
	require.Equal(t, Refused, admit(full(), AdmitOptions{}, grant))
	busy := &Ledger{queues: map[int64]*queue{1: waitingQueue(1, 3, 1)}}
	require.Equal(t, Queued, admit(busy, AdmitOptions{}, grant),
		"a slot is left; the queued execution waits for a worker")
	require.Equal(t, Queued, admit(busy, AdmitOptions{}, grant))
	require.Equal(t, Refused, admit(busy, AdmitOptions{}, grant), "no slot is left")
	paused := &Ledger{queues: map[int64]*queue{1: waitingQueue(1, 1)}}
	paused.queues[1].paused = true
	require.Equal(t, Queued, admit(paused, AdmitOptions{}, grant), "a pause is not the policy's refusal")
	// So does the method cancel of a limit that queues share.
	closed := &Ledger{
		queues: map[int64]*queue{1: waitingQueue(1, 3)},
		scopes: map[int64]*scope{5: shared(policy.SharedGlobal, 2,
			func(s *scope) { s.active, s.rule.Method = 2, policy.MethodCancel })},
	}
	result, why := closed.Admit(newcomer, AdmitOptions{Queue: 1, MayWait: true}, Gate{Scopes: needs(5), Place: always})
	require.Equal(t, Refused, result)
	require.Equal(t, "all 2 slots of policy p.shared are taken", why)
	// S17: a queue never grows beyond its maximum.
	require.Equal(t, Full, admit(full(), AdmitOptions{MayWait: true, MaxQueued: 2}, grant))
	require.Equal(t, Queued, admit(full(), AdmitOptions{MayWait: true, MaxQueued: 3}, grant))
	// An execution that the gate ended takes neither slot nor place.
	empty := &Ledger{queues: map[int64]*queue{1: waitingQueue(1, 1)}}
	require.Equal(t, Ended,
		admit(empty, AdmitOptions{MayWait: true}, Gate{Place: func(Candidate) Answer { return End() }}))
	require.Empty(t, empty.touched())
	require.Empty(t, empty.granted)
	require.Empty(t, empty.enqueued)
	// A limit that was not locked sends the batch back to planning.
	require.Equal(t, Queued, admit(empty, AdmitOptions{MayWait: true}, Gate{Scopes: needs(77), Place: always}))
	require.True(t, empty.Unplanned())
}

// A setting decides where a retry joins its lane: before the waiting executions, each before the
// retry before it, or behind them.
func TestRetriesJoinTheQueueWhereTheSettingSays(t *testing.T) {
	t.Parallel()
	q := waitingQueue(1, 1, 1, 2)
	q.active = 1
	l := &Ledger{queues: map[int64]*queue{1: q}}
	for id, front := range map[int64]bool{8: true, 9: false} {
		result, _ := l.Admit(Candidate{ExecutionID: id}, AdmitOptions{Queue: 1, MayWait: true, Front: front},
			Gate{Place: always})
		require.Equal(t, Queued, result)
	}
	orders := map[int64]int64{}
	for _, e := range l.enqueued {
		orders[e.execution] = e.order
	}
	require.Equal(t, map[int64]int64{8: 0, 9: 100}, orders)
	require.Equal(t, int64(0), q.head[laneNormal], "the head is lowered to where an entry waits")
	require.Equal(t, int64(-1), q.front)
}

// An adaptive limit follows failures and latency, never above the threshold,
// and an operator's limit replaces the threshold.
func TestAdaptiveLimitsFollowHowTheActionDoes(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	q := waitingQueue(1, 8)
	l := &Ledger{Now: now, queues: map[int64]*queue{1: q}, facts: map[int64]Fact{}}
	cfg := QueueConfig{Limit: policy.Limit{Max: 8, Adaptive: &policy.Adaptive{Min: 2, Latency: time.Second}}}
	end := func(status lifecycle.Status, took time.Duration) {
		began, queueID := now.Add(-took), int64(1)
		q.active++
		l.facts[1] = Fact{ID: 1, Status: status, Holds: &queueID, Started: &began, Ended: &now}
		require.True(t, l.Release(1))
	}
	l.Configure(1, cfg)
	require.Equal(t, 8, q.limits.max)
	end(lifecycle.StatusCompleted, 2*time.Second)
	require.Equal(t, 4, q.limits.max, "too slow")
	end(lifecycle.StatusFailed, 0)
	require.Equal(t, 4, q.limits.max, "the decrease is given time")
	end(lifecycle.StatusCancelled, 0)
	for range 5 {
		end(lifecycle.StatusCompleted, 0)
	}
	require.Equal(t, 5, q.limits.max, "one more after as many good ends as there are slots")
	q.override = 3
	l.Configure(1, cfg)
	require.Equal(t, 3, q.limits.max, "never above an operator's limit")
	l.Configure(1, QueueConfig{Limit: policy.None})
	require.Equal(t, 3, q.limits.max)
	q.override = 0
	l.Configure(1, QueueConfig{Limit: policy.None})
	require.True(t, q.limits.unlimited)
}

// More queues than a batch tries may be due at once: the next one follows at
// once.
func TestAMomentThatCameForManyIsServedWithoutWaiting(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	l := &Ledger{Now: now, Clock: now, due: now.Add(time.Minute), moreDue: true}
	after, ok := l.Wake()
	require.True(t, ok)
	require.Zero(t, after)
	l.moreDue = false
	after, _ = l.Wake()
	require.Equal(t, time.Minute, after)
}

// S4 for a shared limit also holds where more executions of one queue could start than were read:
// later executions of other queues wait until the rest was read.
func TestS4NoExecutionPassesHeadsThatWereNotRead(t *testing.T) {
	t.Parallel()
	long := waitingQueue(1, 99, 1, 2)
	long.queued[laneNormal] = 5 // three more than were read
	l := &Ledger{
		facts: map[int64]Fact{}, scopes: map[int64]*scope{5: shared(policy.SharedPack, 4)},
		queues: map[int64]*queue{1: long, 2: waitingQueue(2, 99, 50)},
	}
	l.Promote(Gate{Scopes: needs(5), Place: always})
	require.Equal(t, []int64{1000, 1001}, order(l))
	require.Equal(t, []int64{1}, l.Unfilled())
	require.Equal(t, int64(5), l.queues[2].blocked.scope, "it is tried again when the limit has room")
}

// S7: only the slot of an ended execution is released, and once.
func TestS7OnlyEndedExecutionsReleaseTheirSlot(t *testing.T) {
	t.Parallel()
	id := int64(1)
	l := &Ledger{
		queues: map[int64]*queue{id: {id: id, columns: columns{active: 1}}},
		facts:  map[int64]Fact{7: {ID: 7, Status: lifecycle.StatusRunning, Holds: &id}},
	}
	require.False(t, l.Release(7))
	l.End(7, lifecycle.StatusCompleted)
	require.True(t, l.Release(7))
	require.False(t, l.Release(7))
	require.Zero(t, l.queues[id].active)
}
