package engine

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/completion"
	"github.com/attune-go/attune/core/crashpoint"
	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/gate"
	"github.com/attune-go/attune/core/handover"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/recovery"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/telemetry"
)

// hot is the loop in which the engine does its work. It takes whatever has
// arrived of the two hot queues and of the sweeps, runs it as one round, and
// acknowledges it after the commit. While a round is in flight the next batch
// collects; there is no timer and no linger. One loop and one transaction,
// because separate loops would fight for the same queue rows. Deliveries whose queue
// another replica's round holds stay in hand for the next round (held.go).
type hot struct {
	supervise.Base

	completed *broker.Consumer
	requested *broker.Consumer
	found     chan recovery.Found
	letters   chan []*deadletter.Letter
	rounds    *handover.HandOver
	logger    *slog.Logger
	metrics   *Metrics

	desk desk // takes back the letters that rounds have decided; nil when there are none

	course course
	later  *later
	gate   *gate.Gate
	soon   func(time.Duration) // is told when a repetition will be due; may be nil

	workflows orchestra // starts workflows and leads them on; nil in tests without any

	reclaim   func(context.Context, []int64) ([]int64, error) // puts stale claims back; may be nil
	reclaimed []int64                                         // executions that were put back, to be asked for by the next round

	// displaced are executions at workers that will not start them, for which no
	// other had room yet: every round tries them, before those who wait in line.
	displaced []recovery.Stranded

	// held are deliveries of executions whose queue another round held: the next round
	// takes them, before what has come since.
	held []item

	unfilled []int64      // queues that the last round left with free slots and waiters
	wake     *alarm       // rings when somebody waits for a moment that has come
	inFlight atomic.Int64 // executions in the round that is running
	lastDone atomic.Int64 // unix nanoseconds of the last committed round
	begun    atomic.Int64 // unix nanoseconds at which what is in hand was taken, 0 while nothing is
}

func newHot(
	completed, requested *broker.Consumer, rounds *handover.HandOver, course course, logger *slog.Logger, metrics *Metrics,
) *hot {
	return &hot{
		completed: completed, requested: requested, rounds: rounds, course: course, logger: logger, metrics: metrics,
		found: make(chan recovery.Found, 1), letters: make(chan []*deadletter.Letter), wake: newAlarm(), later: newLater(),
	}
}

// Start implements supervise.Service.
func (h *hot) Start(ctx context.Context) error { return h.Launch(ctx, nil, h.run) }

// Submit hands what a sweep found to the loop. It waits while the loop has
// not yet taken what was found before.
func (h *hot) Submit(ctx context.Context, found recovery.Found) error {
	select {
	case h.found <- found:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("hand stranded work to the rounds: %w", ctx.Err())
	}
}

func (h *hot) run(ctx context.Context) {
	for h.gate.Enter(ctx) {
		in, ok := h.next(ctx)
		if !ok {
			return
		}
		h.handle(ctx, in)
	}
}

// arrival is everything that one round takes.
type arrival struct {
	completed *broker.Batch
	requested *broker.Batch
	found     recovery.Found
	letters   []*deadletter.Letter
	later     []item // deliveries that were put off
	errands   errands
}

// next waits for the first thing to do and then takes what else is there.
func (h *hot) next(ctx context.Context) (in arrival, ok bool) {
	in.errands.queues, h.unfilled = h.unfilled, nil
	in.found.Requested, h.reclaimed = h.reclaimed, nil
	if len(in.errands.queues)+len(in.found.Requested)+len(h.held) == 0 {
		select {
		case <-ctx.Done():
			return in, false
		case in.completed = <-h.completed.Batches():
		case in.requested = <-h.requested.Batches():
		case in.found = <-h.found:
		case in.letters = <-h.letters:
		case <-h.wake.C:
			h.wake.rang(time.Now())
			in.errands.due = true
		case <-h.later.timer.C:
		}
	}
	if ctx.Err() != nil {
		return in, false // unacknowledged deliveries go back to their queue
	}
	if in.completed == nil {
		select {
		case in.completed = <-h.completed.Batches():
		default:
		}
	}
	if in.requested == nil {
		select {
		case in.requested = <-h.requested.Batches():
		default:
		}
	}
	if in.found.Empty() {
		select {
		case in.found = <-h.found:
		default:
		}
	}
	if in.letters == nil {
		select {
		case in.letters = <-h.letters:
		default:
		}
	}
	in.later = h.later.take(maxRequests, time.Now())
	return in, true
}

// handle runs an arrival to its end: every delivery is acknowledged, dead
// lettered with a reason, or returned because the engine stops.
func (h *hot) handle(ctx context.Context, in arrival) {
	h.begun.Store(time.Now().UnixNano())
	defer h.begun.Store(0)
	ended := h.read(ctx, in.completed, message.TypeExecutionCompleted)
	requested := h.read(ctx, in.requested, message.TypeExecutionRequested)
	items := append(h.takeHeld(), ended...)
	for _, id := range in.found.Ended {
		items = append(items, item{execution: id, ended: true})
	}
	for _, id := range in.found.Requested { // before the others, which were requested after them
		items = append(items, item{execution: id})
	}
	items = append(items, requested...)
	in.errands.queues = append(in.errands.queues, in.found.Queues...)
	in.errands.expired, in.errands.misplaced, in.errands.lost = in.found.Expired, in.found.Misplaced, in.found.Lost
	in.errands.stranded = h.withDisplaced(in.found.Stranded)
	err := h.round(ctx, items, in.errands)
	if err != nil {
		// Only the end of the engine leaves work undone here: what is not
		// acknowledged is delivered again, to whoever consumes next.
		h.logger.DebugContext(ctx, "Round given up, deliveries return to their queues", "error", err)
		return
	}
	crashpoint.Reach("hot:before-ack")
	h.ack(ctx, in.completed)
	h.ack(ctx, in.requested)
	crashpoint.Reach("hot:after-ack")
	h.retry(ctx, append(in.later, ofLetters(in.letters)...))
}

// retry tries what was put off, and dead letters, apart from what has just come,
// so that they hold up nobody. What somebody still holds is not waited for again
// one by one.
func (h *hot) retry(ctx context.Context, items []item) {
	var held, others []item
	for _, it := range items {
		if it.blocked {
			held = append(held, it)
		} else {
			others = append(others, it)
		}
	}
	for _, lot := range [][]item{held, others} {
		if err := h.round(handover.Impatient(ctx), lot, noErrands); err != nil {
			h.logger.DebugContext(ctx, "Round given up, deliveries return to their queues", "error", err)
			return
		}
	}
}

func (h *hot) ack(ctx context.Context, batch *broker.Batch) {
	if batch == nil {
		return
	}
	if err := batch.Ack(); err != nil {
		// The connection is gone; the deliveries come again and change nothing.
		h.logger.DebugContext(ctx, "Batch could not be acknowledged", "error", err)
	}
}

// item is one delivery, or one find of a sweep, in a round.
type item struct {
	execution int64
	ended     bool
	said      attune.Status    // the end that a report tells of
	delivery  *broker.Delivery // nil for a find
	letter    *deadletter.Letter
	alone     bool // the delivery is settled by itself, not with its batch
	attempts  int  // how often it could not be decided
	blocked   bool // somebody held what it is about when it stood alone
	left      int  // how often it was left because another round held its queue
	absent    bool // it waits for its row
}

// read decodes a batch. What cannot be read is dead-lettered at once, so that
// it never blocks its neighbours.
func (h *hot) read(ctx context.Context, batch *broker.Batch, kind string) []item {
	if batch == nil {
		return nil
	}
	items := make([]item, 0, len(batch.Deliveries))
	for i := range batch.Deliveries {
		it := item{delivery: &batch.Deliveries[i], ended: kind == message.TypeExecutionCompleted}
		if err := it.decode(); err != nil {
			poison(ctx, h.logger, h.metrics, it, kind, err)
			continue
		}
		items = append(items, it)
	}
	return items
}

func (it *item) decode() error {
	if !it.ended {
		envelope, err := message.Decode[message.ExecutionRequested](it.delivery.Body)
		it.execution = envelope.Payload.ExecutionID
		return err
	}
	envelope, err := message.Decode[message.ExecutionCompleted](it.delivery.Body)
	it.execution = envelope.Payload.ExecutionID
	if said, unknown := attune.ParseStatus(envelope.Payload.Status); unknown == nil {
		it.said = said
	}
	return err
}

// round runs the items as one round, waiting out a database that is away or not as
// it must be, and halving the batch on an error that its content may have caused. It returns
// an error only when the engine stops.
func (h *hot) round(ctx context.Context, items []item, errands errands) error {
	todo := collect(items, errands)
	if todo.empty() {
		return nil
	}
	todo.room = h.roomForLetters()
	h.inFlight.Store(int64(len(items)))
	defer h.inFlight.Store(0)
	retry := backoff.NewExponentialBackOff()
	retry.InitialInterval, retry.MaxInterval = 100*time.Millisecond, 5*time.Second
	for tries := 1; ; tries++ {
		begun := time.Now()
		its, all := h.course.steps(todo)
		result, err := h.runRound(ctx, insists(items), all)
		if h.gate.Retry(ctx, "rounds", err) {
			tries--
			continue
		}
		if err == nil {
			h.metrics.round(len(items), time.Since(begun))
			h.lastDone.Store(time.Now().UnixNano())
			h.after(ctx, items, its.done.Early(), result)
			h.putBack(ctx, its.asked.Stale())
			h.displaced = append(h.displaced, its.rehome.Left()...)
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
		h.metrics.roundFailed()
		if verdict := classify(err, tries); verdict != again {
			return h.halve(ctx, items, errands, err, verdict)
		}
		pause := retry.NextBackOff()
		h.logger.WarnContext(ctx, "Round failed and is tried again", "executions", len(items), "pause", pause, "error", err)
		if !supervise.Sleep(ctx, pause) {
			return context.Cause(ctx)
		}
	}
}

// recheckAfter is how soon a round follows one with which a queue began to wait for
// workers. It bounds how many such rounds a saturated engine runs.
const recheckAfter = 10 * time.Millisecond

// roundTimeout bounds one round, so that a stalled connection is given up and
// the round tried on another.
const roundTimeout = 30 * time.Second

// runRound runs one round to its end even when the engine begins to stop, because
// a finished round is less work for whoever takes over.
func (h *hot) runRound(ctx context.Context, insists map[int64]bool, all []handover.Step) (handover.Result, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), roundTimeout)
	defer cancel()
	return h.rounds.RunSparing(ctx, insists, all...)
}

// halve isolates what makes a round fail. A single delivery that still fails
// is put off, and dead-lettered with the reason if it never succeeds; everything
// else goes through. Errands are parted from deliveries first, so that neither
// pays for the other.
func (h *hot) halve(ctx context.Context, items []item, errands errands, cause error, verdict answer) error {
	known := !slices.ContainsFunc(items, func(it item) bool { return !it.blocked }) && errands.size() == 0
	if verdict == blocked {
		ctx = handover.Impatient(ctx)
	}
	if len(items)+errands.size() <= 1 || (verdict == blocked && known) {
		h.putOff(ctx, items, errands, cause, verdict)
		return nil
	}
	h.logger.WarnContext(ctx, "Round failed and is halved", "executions", len(items), "errands", errands.size(), "error", cause)
	if len(items) > 0 && errands.size() > 0 {
		if err := h.round(ctx, items, noErrands); err != nil {
			return err
		}
		return h.round(ctx, nil, errands)
	}
	middle := len(items) / 2
	first, second := errands.halve()
	if err := h.round(ctx, items[:middle], first); err != nil {
		return err
	}
	return h.round(ctx, items[middle:], second)
}

// putOff deals with what fails all by itself. What a sweep found is found again.
func (h *hot) putOff(ctx context.Context, items []item, errands errands, cause error, verdict answer) {
	for _, it := range items {
		ctx := telemetry.With(ctx, slog.Int64("execution_id", it.execution))
		switch {
		case it.letter != nil:
			h.putOffLetter(ctx, it, cause, verdict)
		case it.delivery == nil:
			h.logger.ErrorContext(ctx, "Stranded execution cannot be processed", "error", cause)
		case verdict == suspect && it.attempts+1 >= maxAttempts:
			poison(ctx, h.logger, h.metrics, it, it.delivery.Type, cause)
		default:
			h.logger.WarnContext(ctx, "Message cannot be processed now and is tried again",
				"message_id", it.delivery.MessageID, "attempts", it.attempts+1, "error", cause)
			it.blocked = verdict == blocked
			h.later.add(it, time.Now())
		}
	}
	if len(items) == 0 {
		h.logger.ErrorContext(ctx, "Queue cannot be filled or cleaned", "queues", errands.queues, "expired", errands.expired,
			"misplaced", errands.misplaced, "lost", errands.lost, "stranded", errands.stranded, "error", cause)
	}
}

// collect turns items into the work of one round, each request and each different
// report once.
func collect(items []item, errands errands) work {
	todo := work{errands: errands}
	seenEnded, seenRequested := map[completion.Report]bool{}, map[int64]bool{}
	for _, it := range items {
		if it.letter != nil {
			todo.letters = append(todo.letters, it.letter)
			continue
		}
		if it.ended {
			report := completion.Report{Execution: it.execution, Said: it.said, Unreported: it.delivery == nil}
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
			}
		}
	}
	return todo
}
