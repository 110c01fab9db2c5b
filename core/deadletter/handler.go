package deadletter

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/attune-go/attune/core/batch"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/crashpoint"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/telemetry"
)

// Limits of the messages in memory: dead letters may be large.
const (
	MaxBatch = 20
	Prefetch = 60
)

// Limits of the dead letters of one transaction: one message may hold many, and a large one is in memory
// once more for the database.
const (
	maxDeadLetters     = 100
	maxDeadLetterBytes = 4 << 20
)

// chunks splits dead letters at these limits.
func chunks(deadLetters []*Message) (parts [][]*Message) {
	begin, size := 0, 0
	for i, l := range deadLetters {
		more := min(len(l.delivery.Body), MaxBody)
		if i-begin == maxDeadLetters || i > begin && size+more > maxDeadLetterBytes {
			parts = append(parts, deadLetters[begin:i])
			begin, size = i, 0
		}
		size += more
	}
	if begin < len(deadLetters) {
		parts = append(parts, deadLetters[begin:])
	}
	return parts
}

// Consumer delivers dead letters; *broker.Consumer implements it.
type Consumer interface {
	Batches() <-chan *broker.Batch
}

// Deps are the dependencies of a Handler.
type Deps struct {
	Store    *store.Store
	Consumer Consumer
	// Decide passes dead letters to the scheduler, whose batches decide about them by a Step. It
	// blocks while the scheduler is busy. The receiver settles each dead letter: by Settle after a
	// batch that did not leave it open, or by GiveUp if no batch can decide it.
	Decide func(ctx context.Context, deadLetters []*Message) error
	// Ended submits ended executions to the batches, because their reports were lost.
	Ended func(ctx context.Context, executions []int64) error
	// Gate holds the handler during a fault of the installation. May be nil.
	Gate    *batch.Gate
	Logger  *slog.Logger
	Metrics *Metrics
}

// Handler consumes dead letters, stores each with its decision, and only then acknowledges it.
type Handler struct {
	supervise.Base

	deps   Deps
	parked []parked    // dead letters that the database refuses in any form; only the loop uses it
	timer  *time.Timer // fires when the first of them is due
}

// parked is a dead letter that is stored again later.
type parked struct {
	deadLetter *Message
	due        time.Time
}

// NewHandler makes the handler.
func NewHandler(deps Deps) *Handler {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	deps.Metrics = cmp.Or(deps.Metrics, NewMetrics(nil))
	return &Handler{deps: deps, timer: timer}
}

// Start implements supervise.Service.
func (h *Handler) Start(ctx context.Context) error { return h.Launch(ctx, nil, h.run) }

func (h *Handler) run(ctx context.Context) {
	defer h.timer.Stop()
	for h.deps.Gate.Enter(ctx) {
		select {
		case <-ctx.Done():
			return
		case batch := <-h.deps.Consumer.Batches():
			if err := h.handle(ctx, batch); err != nil {
				// Only a shutdown leaves dead letters undecided here: unacknowledged messages are
				// delivered again.
				h.deps.Logger.DebugContext(ctx, "Dead letters return to their queue", "error", err)
				return
			}
		case <-h.timer.C:
			if err := h.again(ctx, time.Now()); err != nil {
				return
			}
		}
	}
}

// handle stores the deliveries and acknowledges the stored ones. Dead letters that the scheduler
// decides are acknowledged after its batch.
func (h *Handler) handle(ctx context.Context, batch *broker.Batch) error {
	deadLetters := make([]*Message, 0, len(batch.Deliveries))
	for i := range batch.Deliveries {
		for _, l := range readAll(&batch.Deliveries[i], message.QueueDeadLetter) {
			if l.kind != kindProbe { // probes are acknowledged with the batch
				deadLetters = append(deadLetters, l)
			}
		}
	}
	var out outcome
	for _, part := range chunks(deadLetters) {
		of, err := h.settle(ctx, part, 1)
		if err != nil {
			return err
		}
		out.add(of)
	}
	crashpoint.Reach("dead-letter:committed")
	for _, l := range append(out.undecided, out.refused...) {
		l.delivery = l.delivery.Detach()
	}
	for _, l := range out.refused {
		h.park(ctx, l)
	}
	if err := h.handOn(ctx, out); err != nil {
		return err
	}
	if err := batch.Ack(); err != nil {
		// The connection is lost; redelivered dead letters find their rows.
		h.deps.Logger.DebugContext(ctx, "Dead letters could not be acknowledged and come again", "error", err)
	}
	for part := range slices.Chunk(out.undecided, maxDeadLetters) {
		if err := h.decide(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// endedAtOnce bounds the executions that one batch releases.
const endedAtOnce = 500

// handOn submits ended executions whose report was dead-lettered. A sweep finds any that are not
// submitted.
func (h *Handler) handOn(ctx context.Context, out outcome) error {
	for part := range slices.Chunk(out.ended, endedAtOnce) {
		if err := h.deps.Ended(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

func (h *Handler) decide(ctx context.Context, deadLetters []*Message) error {
	if len(deadLetters) == 0 {
		return nil
	}
	return h.deps.Decide(ctx, deadLetters)
}

// outcome is the result of a batch.
type outcome struct {
	undecided []*Message // the scheduler has to decide
	refused   []*Message // the database refuses them in any form
	ended     []int64    // executions to release
}

func (o *outcome) add(other outcome) {
	o.undecided = append(o.undecided, other.undecided...)
	o.refused = append(o.refused, other.refused...)
	o.ended = append(o.ended, other.ended...)
}

// storing is a batch of dead letters that are stored together.
type storing struct {
	deadLetters []*Message
	before      int // tries of a larger batch that contained them
}

// settle stores dead letters. tries counts this try and the previous ones. It returns an error only
// on shutdown.
func (h *Handler) settle(ctx context.Context, deadLetters []*Message, tries int) (total outcome, err error) {
	if len(deadLetters) == 0 {
		return total, nil
	}
	err = batch.Run(ctx, h.deps.Gate, "dead letters", settling{h, &total},
		&storing{deadLetters: deadLetters, before: tries - 1})
	return total, err
}

// settling is the work of storing batches of dead letters.
type settling struct {
	*Handler

	total *outcome
}

// Try stores a batch.
func (h settling) Try(ctx context.Context, b *storing) error {
	stored, err := h.store(ctx, b.deadLetters)
	if err == nil {
		h.total.add(stored)
	}
	return err
}

// Failed logs a failure that passes with time.
func (h settling) Failed(ctx context.Context, b *storing, f batch.Failure) batch.Verdict {
	if contentFails(f.Err, b.before+f.Tries) {
		return batch.Suspect
	}
	h.deps.Logger.WarnContext(ctx, "Dead letters could not be stored and are kept",
		"dead_letters", len(b.deadLetters), "pause", f.Pause, "error", f.Err)
	return batch.Again
}

// Split halves a batch.
func (settling) Split(b *storing, f batch.Failure) (parts []*storing) {
	for _, half := range batch.Halves(b.deadLetters) {
		parts = append(parts, &storing{deadLetters: half, before: b.before + f.Tries - 1})
	}
	return parts
}

// Alone reduces a dead letter that failed alone, and gives up a reduced one.
func (h settling) Alone(ctx context.Context, b *storing, f batch.Failure) bool {
	l := b.deadLetters[0]
	if !l.reduced {
		h.deps.Logger.WarnContext(telemetry.Often(ctx), "Dead letter is stored in a reduced form",
			"message_id", l.delivery.MessageID, "error", f.Err)
		l.reduced = true
		return true
	}
	l.failure = f.Err.Error()
	h.total.refused = append(h.total.refused, l)
	return false
}

// maxStores is how often the database may fail without a reason before the content is suspected;
// with the pauses between, about a minute.
const maxStores = 20

// contentFails reports whether the content caused an error, or may have, because the error came too
// often. All other errors pass with time.
func contentFails(err error, tries int) bool {
	return store.Divisible(err) && (!store.Answered(err) || store.IsByValues(err) || tries >= maxStores)
}

// Pauses before a dead letter that the database refuses is stored again.
const (
	firstPark   = 2 * time.Second
	longestPark = 5 * time.Minute
)

// park keeps a dead letter unacknowledged until it is stored again.
func (h *Handler) park(ctx context.Context, l *Message) {
	pause := min(firstPark<<min(l.tries, 10), longestPark)
	l.tries++
	h.deps.Logger.ErrorContext(telemetry.Often(ctx), "Dead letter cannot be stored and stays with the broker",
		"message_id", l.delivery.MessageID, "routing_key", l.delivery.RoutingKey, "tries", l.tries, "pause", pause,
		"error", l.failure)
	l.failure, l.reduced = "", false
	h.parked = append(h.parked, parked{l, time.Now().Add(pause)})
	h.arm(time.Now())
}

func (h *Handler) arm(now time.Time) {
	h.timer.Stop()
	next := time.Duration(-1)
	for _, p := range h.parked {
		if wait := max(p.due.Sub(now), 0); next < 0 || wait < next {
			next = wait
		}
	}
	if next >= 0 {
		h.timer.Reset(next)
	}
}

// again stores the parked dead letters that are due. If their connection was lost, the broker
// delivers them again.
func (h *Handler) again(ctx context.Context, now time.Time) error {
	waiting := h.parked
	h.parked = nil
	var due []*Message
	for _, p := range waiting {
		switch {
		case p.deadLetter.delivery.Stale():
		case p.due.After(now):
			h.parked = append(h.parked, p)
		default:
			due = append(due, p.deadLetter)
		}
	}
	h.arm(now)
	for _, l := range due {
		out, err := h.settle(ctx, []*Message{l}, maxStores)
		if err != nil {
			return err
		}
		if err := h.handOn(ctx, out); err != nil {
			return err
		}
		if len(out.refused) > 0 {
			h.park(ctx, l)
			continue
		}
		if len(out.undecided) == 0 {
			h.ack(ctx, l)
		}
		if err := h.decide(ctx, out.undecided); err != nil {
			return err
		}
	}
	return nil
}

func (h *Handler) ack(ctx context.Context, l *Message) {
	if err := l.delivery.Ack(); err != nil {
		h.deps.Logger.DebugContext(ctx, "Dead letter could not be acknowledged and comes again", "error", err)
	}
}

// Settle records a dead letter that a committed batch decided, and acknowledges it.
func (h *Handler) Settle(ctx context.Context, l *Message) {
	crashpoint.Reach("dead-letter:decided")
	h.report(ctx, l)
	h.ack(ctx, l)
}

// GiveUp stores a dead letter that no batch can decide, for an operator, and acknowledges it. After
// an error the dead letter is not settled.
func (h *Handler) GiveUp(ctx context.Context, l *Message, cause error) error {
	l.failure = cause.Error()
	_, err := h.store(ctx, []*Message{l})
	if err != nil && contentFails(err, maxStores) {
		l.reduced = true
		_, err = h.store(ctx, []*Message{l})
	}
	if err != nil {
		return fmt.Errorf("store dead letter %s, which no batch could decide: %w", l.delivery.MessageID, err)
	}
	h.ack(ctx, l)
	return nil
}

// report counts and logs a decided dead letter.
func (h *Handler) report(ctx context.Context, l *Message) {
	h.deps.Metrics.decided(l, time.Now())
	line, level, decision := "Received dead letter", slog.LevelInfo, l.decision
	if l.Execution != 0 {
		line = fmt.Sprintf("Received dead letter for execution %d", l.Execution) // the published line
		ctx = telemetry.With(ctx, slog.Int64("execution_id", l.Execution))
	}
	if decision == "" {
		level, decision = slog.LevelWarn, "waits for a person"
	}
	if l.seen.execution == nil { // forged ones come at any rate
		line, ctx = "Received dead letter", telemetry.Often(ctx)
	}
	h.deps.Logger.Log(ctx, level, line, //nolint:sloglint // users look for this line
		"decision", decision, "reason", l.reason, "routing_key", clean(l.key),
		"message_id", l.delivery.MessageID, "detail", bounded(l.detail))
}

// Delivery is the dead letter as it was delivered.
func (l *Message) Delivery() *broker.Delivery { return l.delivery }
