package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/handover"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/recovery"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/telemetry"
)

// hot is the loop in which the engine does its work. It takes whatever has
// arrived of the two hot queues and of the sweeps, runs it as one round, and
// acknowledges it after the commit. While a round is in flight the next batch
// collects; there is no timer and no linger. One loop and one transaction,
// because separate loops would fight for the same queue rows.
type hot struct {
	supervise.Base

	completed *broker.Consumer
	requested *broker.Consumer
	found     chan recovery.Found
	rounds    *handover.HandOver
	logger    *slog.Logger
	metrics   *Metrics

	queueTimeout time.Duration // how long one may wait in a queue whose policies do not say

	unfilled []int64      // queues that the last round left with free slots and waiters
	wake     *time.Timer  // fires when somebody waits for a moment that has come
	inFlight atomic.Int64 // executions in the round that is running
	lastDone atomic.Int64 // unix nanoseconds of the last committed round
	begun    atomic.Int64 // unix nanoseconds at which what is in hand was taken, 0 while nothing is
}

func newHot(
	completed, requested *broker.Consumer, rounds *handover.HandOver, queueTimeout time.Duration, logger *slog.Logger, metrics *Metrics,
) *hot {
	wake := time.NewTimer(time.Hour)
	wake.Stop()
	return &hot{
		completed: completed, requested: requested, rounds: rounds, queueTimeout: queueTimeout, logger: logger, metrics: metrics,
		found: make(chan recovery.Found, 1), wake: wake,
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
	for {
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
	errands   errands
}

// next waits for the first thing to do and then takes what else is there.
func (h *hot) next(ctx context.Context) (in arrival, ok bool) {
	in.errands.queues, h.unfilled = h.unfilled, nil
	if len(in.errands.queues) == 0 {
		select {
		case <-ctx.Done():
			return in, false
		case in.completed = <-h.completed.Batches():
		case in.requested = <-h.requested.Batches():
		case in.found = <-h.found:
		case <-h.wake.C:
			in.errands.due = true
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
	return in, true
}

// handle runs an arrival to its end: every delivery is acknowledged, dead
// lettered with a reason, or returned because the engine stops.
func (h *hot) handle(ctx context.Context, in arrival) {
	h.begun.Store(time.Now().UnixNano())
	defer h.begun.Store(0)
	ended := h.read(ctx, in.completed, message.TypeExecutionCompleted, completedID)
	requested := h.read(ctx, in.requested, message.TypeExecutionRequested, requestedID)
	items := slices.Concat(ended, requested)
	for _, id := range in.found.Ended {
		items = append(items, item{execution: id, ended: true})
	}
	for _, id := range in.found.Requested {
		items = append(items, item{execution: id})
	}
	in.errands.queues = append(in.errands.queues, in.found.Queues...)
	in.errands.expired, in.errands.misplaced, in.errands.lost = in.found.Expired, in.found.Misplaced, in.found.Lost
	err := h.round(ctx, items, in.errands)
	if err != nil {
		// Only the end of the engine leaves work undone here: what is not
		// acknowledged is delivered again, to whoever consumes next.
		h.logger.DebugContext(ctx, "Round given up, deliveries return to their queues", "error", err)
		return
	}
	h.ack(ctx, in.completed)
	h.ack(ctx, in.requested)
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
	delivery  *broker.Delivery // nil for a find
}

// read decodes a batch. What cannot be read is dead-lettered at once, so that
// it never blocks its neighbours.
func (h *hot) read(ctx context.Context, batch *broker.Batch, kind string, idOf func([]byte) (int64, error)) []item {
	if batch == nil {
		return nil
	}
	items := make([]item, 0, len(batch.Deliveries))
	for i := range batch.Deliveries {
		delivery := &batch.Deliveries[i]
		id, err := idOf(delivery.Body)
		if err != nil {
			h.poison(ctx, delivery, kind, err)
			continue
		}
		items = append(items, item{execution: id, ended: kind == message.TypeExecutionCompleted, delivery: delivery})
	}
	return items
}

func (h *hot) poison(ctx context.Context, delivery *broker.Delivery, kind string, cause error) {
	h.metrics.poison(kind)
	h.logger.WarnContext(ctx, "Message dead-lettered",
		"message_id", delivery.MessageID, "message_type", kind, "bytes", len(delivery.Body), "reason", cause)
	if err := delivery.Nack(false); err != nil {
		h.logger.DebugContext(ctx, "Message could not be rejected and comes again", "message_id", delivery.MessageID, "error", err)
	}
}

func completedID(body []byte) (int64, error) {
	envelope, err := message.Decode[message.ExecutionCompleted](body)
	if err != nil {
		return 0, err
	}
	return envelope.Payload.ExecutionID, nil
}

func requestedID(body []byte) (int64, error) {
	envelope, err := message.Decode[message.ExecutionRequested](body)
	if err != nil {
		return 0, err
	}
	return envelope.Payload.ExecutionID, nil
}

// round runs the items as one round, waiting out a database that is away and
// halving the batch on an error that its content may have caused. It returns
// an error only when the engine stops.
func (h *hot) round(ctx context.Context, items []item, errands errands) error {
	todo := collect(items, errands)
	if todo.empty() {
		return nil
	}
	h.inFlight.Store(int64(len(items)))
	defer h.inFlight.Store(0)
	retry := backoff.NewExponentialBackOff()
	retry.InitialInterval, retry.MaxInterval = 100*time.Millisecond, 5*time.Second
	for tries := 1; ; tries++ {
		begun := time.Now()
		done, all := steps(todo, h.queueTimeout)
		result, err := h.runRound(ctx, all)
		if err == nil {
			h.metrics.round(len(items), time.Since(begun))
			h.lastDone.Store(time.Now().UnixNano())
			h.after(ctx, items, done.Early(), result)
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
		h.metrics.roundFailed()
		if !transient(err, tries) {
			return h.halve(ctx, items, errands, err)
		}
		pause := retry.NextBackOff()
		h.logger.WarnContext(ctx, "Round failed and is tried again", "executions", len(items), "pause", pause, "error", err)
		if !supervise.Sleep(ctx, pause) {
			return context.Cause(ctx)
		}
	}
}

// roundTimeout bounds one round, so that a stalled connection is given up and
// the round tried on another.
const roundTimeout = 30 * time.Second

// runRound runs one round to its end even when the engine begins to stop, because
// a finished round is less work for whoever takes over.
func (h *hot) runRound(ctx context.Context, all []handover.Step) (handover.Result, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), roundTimeout)
	defer cancel()
	return h.rounds.Run(ctx, all...)
}

// maxRefusals is how often the database may refuse a round because rows keep
// changing under it before its content is suspected.
const maxRefusals = 3

// maxMoves is the same for rules and rows that change while a round decides on
// them; with the pauses between, about a minute. No message is to blame for a
// load of packs.
const maxMoves = 20

// transient says whether waiting may help: the database is away, has run out
// of something, or said no to a transaction that may succeed the next time.
func transient(err error, tries int) bool {
	if unwell(err) {
		return true
	}
	if errors.Is(err, handover.ErrMoved) {
		return tries <= maxMoves
	}
	switch store.ClassOf(err) {
	case store.ClassUnreachable, store.ClassRetryable, store.ClassUnknown, store.ClassCanceled:
		return true
	case store.ClassRefused, store.ClassConflict:
		return tries <= maxRefusals
	default:
		return errors.Is(err, context.DeadlineExceeded)
	}
}

// unwell says whether the server cannot write at all at the moment, which is
// no message's fault: its disk is full (class 53), its files fail (58), or it
// is a standby or was made read only.
func unwell(err error) bool {
	var server interface{ SQLState() string }
	if !errors.As(err, &server) {
		return false
	}
	code := server.SQLState()
	return code == "25006" || strings.HasPrefix(code, "53") || strings.HasPrefix(code, "58")
}

// halve isolates what makes a round fail. A single delivery that still fails
// is dead-lettered with the reason; everything else goes through. Errands are
// parted from deliveries first, so that neither pays for the other.
func (h *hot) halve(ctx context.Context, items []item, errands errands, cause error) error {
	if len(items)+errands.size() <= 1 {
		for _, it := range items {
			ctx := telemetry.With(ctx, slog.Int64("execution_id", it.execution))
			if it.delivery == nil {
				h.logger.ErrorContext(ctx, "Stranded execution cannot be processed", "error", cause)
				continue
			}
			h.poison(ctx, it.delivery, it.delivery.Type, cause)
		}
		if len(items) == 0 {
			h.logger.ErrorContext(ctx, "Queue cannot be filled or cleaned", "queues", errands.queues, "expired", errands.expired,
				"misplaced", errands.misplaced, "lost", errands.lost, "error", cause)
		}
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

// collect turns items into the work of one round, each execution once.
func collect(items []item, errands errands) work {
	todo := work{errands: errands}
	seenEnded, seenRequested := map[int64]bool{}, map[int64]bool{}
	for _, it := range items {
		if it.ended {
			if !seenEnded[it.execution] {
				seenEnded[it.execution] = true
				todo.ended = append(todo.ended, it.execution)
			}
			continue
		}
		if !seenRequested[it.execution] {
			seenRequested[it.execution] = true
			todo.requested = append(todo.requested, it.execution)
		}
	}
	return todo
}

// after deals with what a committed round could not use.
func (h *hot) after(ctx context.Context, items []item, early []int64, result handover.Result) {
	h.unfilled = append(h.unfilled, result.Unfilled...)
	if result.Wake > 0 {
		h.wake.Reset(result.Wake)
	}
	for _, id := range early {
		h.metrics.early()
		h.logger.DebugContext(ctx, "Completion of an execution that has not ended", "execution_id", id)
	}
	if len(result.Missing) == 0 {
		return
	}
	missing := map[int64]bool{}
	for _, id := range result.Missing {
		missing[id] = true
	}
	for _, it := range items {
		if missing[it.execution] && it.delivery != nil {
			h.missing(ctx, it)
		}
	}
}

// missing returns a message whose row cannot be seen yet once; a second time
// it is dead-lettered.
func (h *hot) missing(ctx context.Context, it item) {
	if it.delivery.Redelivered {
		h.poison(ctx, it.delivery, it.delivery.Type, fmt.Errorf("execution %d does not exist", it.execution))
		return
	}
	h.logger.InfoContext(ctx, "Execution of a message does not exist yet", "execution_id", it.execution)
	if err := it.delivery.Nack(true); err != nil {
		h.logger.DebugContext(ctx, "Message could not be returned and comes again", "error", err)
	}
}
