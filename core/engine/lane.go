package engine

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/attune-go/attune/core/batch"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/crashpoint"
	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/recovery"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/core/tracing"
)

// lane runs batches of its actions' messages. It takes everything that has arrived, runs it as one
// batch, and acknowledges it after the commit. While a batch is in flight the next batch collects;
// there is no timer and no linger. Deliveries whose queue another batch holds stay in hand for the
// next batch (held.go).
//
// The first lane also takes work without an action: findings of sweeps, dead letters, and fired
// times of queues. Its batches may then need queues of other lanes. Like batches of different
// replicas, one waits for the other or leaves the queue.
type lane struct {
	*shared

	ended     *Box[item]
	requested *Box[item]
	unfilled  *Box[int64] // queues that a batch left with free slots and waiting executions

	// Only the first lane has these.
	finds       <-chan recovery.Found
	deadLetters <-chan []*deadletter.Message
	alarms      <-chan time.Time

	later     *later
	reclaimed []int64 // executions whose claims were put back, for the next batch

	// held are deliveries of executions whose queue another batch held: the next batch takes them,
	// before later deliveries. heldQueues are queues to fill that another batch held, with the
	// number of times.
	held       []item
	heldQueues map[int64]int

	decided []*broker.Delivery // settled by committed batches, not yet acknowledged

	inFlight atomic.Int64 // executions in the running batch
	lastDone atomic.Int64 // unix nanoseconds of the last committed batch
	begun    atomic.Int64 // unix nanoseconds of the start of the running batch, 0 without one
}

func newLane(common *shared, first bool) *lane {
	l := &lane{
		shared: common, later: newLater(&common.absents), heldQueues: make(map[int64]int),
		ended: NewBox[item](), requested: NewBox[item](), unfilled: NewBox[int64](),
	}
	if first {
		l.finds, l.deadLetters, l.alarms = common.found, common.deadLetterBatches, common.wake.C
	}
	return l
}

func (l *lane) run(ctx context.Context) {
	for l.gate.Enter(ctx) {
		in, ok := l.next(ctx)
		if !ok {
			return
		}
		if !in.empty() {
			l.handle(ctx, in)
		}
	}
}

// arrival is the content of one batch.
type arrival struct {
	held        []item
	ended       []item
	requested   []item
	found       recovery.Found
	deadLetters []*deadletter.Message
	later       []item // postponed deliveries
	chores      chores
}

func (in *arrival) empty() bool {
	return len(in.held)+len(in.ended)+len(in.requested)+len(in.deadLetters)+len(in.later) == 0 &&
		in.found.Empty() && in.chores.empty()
}

// next waits for the first message, finding or chore, and then takes all that have arrived.
func (l *lane) next(ctx context.Context) (in arrival, ok bool) {
	if len(l.held)+len(l.heldQueues)+len(l.reclaimed) == 0 {
		select {
		case <-ctx.Done():
			return in, false
		case <-l.ended.Wake():
		case <-l.requested.Wake():
		case <-l.unfilled.Wake():
		case in.found = <-l.finds:
		case in.deadLetters = <-l.deadLetters:
		case <-l.alarms:
			l.wake.fired(time.Now())
			in.chores.due = true
		case <-l.later.timer.C:
		}
	}
	if ctx.Err() != nil {
		return in, false // unacknowledged deliveries return to their queue
	}
	if in.found.Empty() {
		select {
		case in.found = <-l.finds:
		default:
		}
	}
	if in.deadLetters == nil {
		select {
		case in.deadLetters = <-l.deadLetters:
		default:
		}
	}
	in.held = fresh(l.held)
	in.ended, in.requested = fresh(l.ended.Take(maxCompletions)), fresh(l.requested.Take(maxRequests))
	in.chores.queues, in.chores.waited = append(l.unfilled.Take(math.MaxInt), in.found.Queues...), l.heldQueues
	for queue := range l.heldQueues {
		in.chores.queues = append(in.chores.queues, queue)
	}
	l.held, l.heldQueues = nil, make(map[int64]int)
	slices.Sort(in.chores.queues)
	in.chores.queues = slices.Compact(in.chores.queues)
	in.found.Requested = append(l.reclaimed, in.found.Requested...)
	l.reclaimed = nil
	in.later = l.later.take(maxRequests, time.Now())
	return in, true
}

// fresh drops deliveries whose connection is lost: the broker delivers their messages again, in
// order.
func fresh(items []item) []item {
	return slices.DeleteFunc(items, func(it item) bool { return it.delivery != nil && it.delivery.Stale() })
}

// handle finishes an arrival: every delivery is acknowledged, dead-lettered with a reason, or
// returned because the engine stops.
func (l *lane) handle(ctx context.Context, in arrival) {
	l.begun.Store(time.Now().UnixNano())
	defer l.begun.Store(0)
	items := slices.Concat(in.held, in.ended)
	for _, id := range in.found.Ended {
		items = append(items, item{execution: id, ended: true})
	}
	for _, id := range in.found.Requested { // before the others, which were requested later
		items = append(items, item{execution: id})
	}
	items = append(items, in.requested...)
	in.chores.expired, in.chores.misplaced, in.chores.lost = in.found.Expired, in.found.Misplaced, in.found.Lost
	in.chores.unstarted = l.unstarted.take(in.found.Unstarted)
	err := l.runBatch(ctx, items, in.chores)
	crashpoint.Reach("hot:before-ack")
	l.acknowledge(ctx)
	crashpoint.Reach("hot:after-ack")
	if err != nil {
		// Only a stop leaves work undone here: the broker delivers unacknowledged messages again,
		// to any replica.
		l.logger.DebugContext(ctx, "Batch given up, deliveries return to their queues", "error", err)
		return
	}
	l.retry(ctx, append(in.later, deadLetterItems(in.deadLetters)...))
	l.acknowledge(ctx)
}

// retry tries postponed items and dead letters apart from new deliveries, so that they delay none.
// It tries items whose rows another transaction holds together, and does not wait for them one by
// one.
func (l *lane) retry(ctx context.Context, items []item) {
	var held, others []item
	for _, it := range items {
		if it.blocked {
			held = append(held, it)
		} else {
			others = append(others, it)
		}
	}
	for _, lot := range [][]item{held, others} {
		if err := l.runBatch(scheduler.BriefLocks(ctx), lot, noChores); err != nil {
			l.logger.DebugContext(ctx, "Batch given up, deliveries return to their queues", "error", err)
			return
		}
	}
}

// acknowledge acknowledges the deliveries that committed batches have settled. Deliveries of other
// lanes lie between them and are left alone.
func (l *lane) acknowledge(ctx context.Context) {
	if err := broker.Acknowledge(l.decided); err != nil {
		// The connection is lost; the redelivered messages change nothing.
		l.logger.DebugContext(ctx, "Batch could not be acknowledged", "error", err)
	}
	l.decided = nil
}

// load is the content of one batch run.
type load struct {
	items  []item
	chores chores
	// briefly is set for parts of a batch that waited for another transaction's locks: they must
	// find out quickly which of them it holds.
	briefly bool

	// Set by the last try.
	begun  time.Time
	todo   work
	steps  parts
	result scheduler.Result
}

// runBatch runs the items as one transaction of the scheduler. It returns an error only when the
// engine stops.
func (l *lane) runBatch(ctx context.Context, items []item, chores chores) error {
	if len(items) == 0 && chores.empty() {
		return nil
	}
	defer l.inFlight.Store(0)
	return batch.Run(ctx, l.gate, "rounds", l, &load{items: items, chores: chores})
}

// recheckAfter is the delay of the next batch after one in which a queue began to wait for workers.
// It bounds how many such batches a saturated engine runs.
const recheckAfter = 10 * time.Millisecond

// batchTimeout bounds one batch, so that a stalled connection is closed and the batch runs on
// another.
const batchTimeout = 30 * time.Second

// Try finishes one run of a batch even if the engine stops, because that leaves less work to
// another replica, and processes its result.
func (l *lane) Try(ctx context.Context, b *load) (err error) {
	b.items = l.behindHeld(b.items)
	if b.todo = collect(b.items, b.chores); b.todo.empty() {
		return nil
	}
	b.todo.room = l.roomForDeadLetters()
	l.inFlight.Store(int64(len(b.items)))
	if b.briefly {
		ctx = scheduler.BriefLocks(ctx)
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), batchTimeout)
	defer cancel()
	var all []scheduler.Step
	b.begun = time.Now()
	b.steps, all = l.config.steps(b.todo)
	if b.result, err = l.scheduler.RunSparing(bounded, insists(b.items), all...); err != nil {
		return err
	}
	l.metrics.batch(len(b.items), time.Since(b.begun))
	l.trace(b)
	l.lastDone.Store(time.Now().UnixNano())
	l.keepQueues(b.todo, b.result)
	l.after(ctx, b.items, b.steps.completion.Early(), b.result)
	l.reclaimStale(ctx, b.steps.request.Stale())
	l.unstarted.add(b.steps.reassign.Left())
	return nil
}

// trace offers the span of a batch, linked to the executions of its messages.
func (l *lane) trace(b *load) {
	if l.spans == nil || len(b.items) == 0 {
		return
	}
	ids := make([]int64, len(b.items))
	for i, it := range b.items {
		ids[i] = it.execution
	}
	l.spans.OfferBatch(tracing.Batch{Name: "batch", Start: b.begun, End: time.Now(), Executions: ids})
}

// Failed logs a failure that does not leave one item or chore alone.
func (l *lane) Failed(ctx context.Context, b *load, f batch.Failure) batch.Verdict {
	f.Verdict = classify(f.Err, f.Tries)
	l.metrics.failures.Inc()
	switch {
	case f.Verdict == batch.Again:
		l.logger.WarnContext(ctx, "Batch failed and is tried again",
			"executions", len(b.items), "pause", f.Pause, "error", f.Err)
	case !b.whole(f):
		l.logger.WarnContext(ctx, "Batch failed and is halved",
			"executions", len(b.items), "chores", b.chores.size(), "error", f.Err)
	}
	return f.Verdict
}

// whole reports that a batch cannot be split: it has one item or chore, or another transaction
// holds the rows that its items are known to wait for.
func (b *load) whole(f batch.Failure) bool {
	known := b.chores.size() == 0 && !slices.ContainsFunc(b.items, func(it item) bool { return !it.blocked })
	return len(b.items)+b.chores.size() <= 1 || (f.Verdict == batch.Blocked && known)
}

// Split separates chores from deliveries first, so that neither delays the other.
func (*lane) Split(b *load, f batch.Failure) []*load {
	if b.whole(f) {
		return nil
	}
	part := func(items []item, chores chores) *load {
		return &load{items: items, chores: chores, briefly: b.briefly || f.Verdict == batch.Blocked}
	}
	if len(b.items) > 0 && b.chores.size() > 0 {
		return []*load{part(b.items, noChores), part(nil, b.chores)}
	}
	first, second := b.chores.bisect()
	middle := len(b.items) / 2
	return []*load{part(b.items[:middle], first), part(b.items[middle:], second)}
}

// Alone handles an item that failed alone. A sweep finds its findings again.
func (l *lane) Alone(ctx context.Context, b *load, f batch.Failure) bool {
	for _, it := range b.items {
		ctx := telemetry.With(ctx, slog.Int64("execution_id", it.execution))
		switch {
		case it.deadLetter != nil:
			l.postponeDeadLetter(ctx, it, f)
		case it.delivery == nil:
			l.logger.ErrorContext(ctx, "Lost request cannot be processed", "error", f.Err)
		default:
			l.postpone(ctx, l.later, it, it.delivery.Type, f)
		}
	}
	if len(b.items) == 0 {
		l.logger.ErrorContext(ctx, "Queue cannot be filled or cleaned", "queues", b.chores.queues,
			"expired", b.chores.expired, "misplaced", b.chores.misplaced, "lost", b.chores.lost,
			"unstarted", b.chores.unstarted, "error", f.Err)
	}
	return false
}

// collect turns items into the work of one batch, each request and each different report once.
func collect(items []item, chores chores) work {
	todo := work{chores: chores, said: map[int64]scheduler.Hint{}}
	seenEnded, seenRequested := map[scheduler.Report]bool{}, map[int64]bool{}
	for _, it := range items {
		if it.deadLetter != nil {
			todo.deadLetters = append(todo.deadLetters, it.deadLetter)
			continue
		}
		if it.ended {
			report := scheduler.Report{
				Execution: it.execution, Said: it.said, Unreported: it.delivery == nil,
				ActionID: it.hint.ActionID, ActionRef: it.hint.ActionRef,
			}
			if !seenEnded[report] {
				seenEnded[report] = true
				todo.ended = append(todo.ended, report)
			}
			continue
		}
		if !seenRequested[it.execution] {
			seenRequested[it.execution] = true
			todo.requested = append(todo.requested, it.execution)
			if it.delivery == nil {
				todo.late = append(todo.late, it.execution)
			} else {
				todo.said[it.execution] = it.hint
			}
		}
	}
	return todo
}
