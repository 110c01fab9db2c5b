package inquiry

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/attune-go/attune/core/batch"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/telemetry"
)

// Bounds of the consumer of answers.
const (
	MaxBatch = 100
	Prefetch = 200
)

// Consumer delivers answers; *broker.Consumer is one.
type Consumer interface {
	Batches() <-chan *broker.Batch
}

// Deps are the dependencies of Responses.
type Deps struct {
	Store    *store.Store
	Consumer Consumer
	Relay    Relay // may be nil
	Logger   *slog.Logger
	Metrics  *Metrics // may be nil
	// Source is the source_service of messages. Default "attune-executor".
	Source string
	// Gate pauses the service during a fault of the installation. May be nil.
	Gate *batch.Gate
	// Keys seal the secrets of the answers. Without a key the answers stay as they are.
	Keys secret.Keyring
}

// Responses consumes InquiryResponded and settles the inquiries. Other services send it after they have stored the
// answer. The row decides, not the message: settled inquiries and rows without an answer stay as they are. A message
// that is malformed or names an unknown inquiry is dead-lettered. It is a supervise.Service.
type Responses struct {
	supervise.Base

	deps Deps
}

// NewResponses makes the service.
func NewResponses(deps Deps) *Responses {
	deps.Source, deps.Metrics = cmp.Or(deps.Source, "attune-executor"), cmp.Or(deps.Metrics, NewMetrics(nil))
	return &Responses{deps: deps}
}

// Start implements supervise.Service.
func (r *Responses) Start(ctx context.Context) error { return r.Launch(ctx, nil, r.run) }

func (r *Responses) run(ctx context.Context) {
	for r.deps.Gate.Enter(ctx) {
		select {
		case <-ctx.Done():
			return
		case batch := <-r.deps.Consumer.Batches():
			if err := r.handle(ctx, batch); err != nil {
				// Only the stop of the engine ends here: the broker delivers unacknowledged messages again.
				r.deps.Logger.DebugContext(ctx, "Answers return to their queue", "error", err)
				return
			}
		}
	}
}

// announced is the answer of one message.
type announced struct {
	delivery *broker.Delivery
	inquiry  int64
	by       *int64
}

// handle settles the answers of a batch and acknowledges it.
func (r *Responses) handle(ctx context.Context, batch *broker.Batch) error {
	var all []announced
	for i := range batch.Deliveries {
		d := &batch.Deliveries[i]
		envelope, err := message.Decode[message.InquiryResponded](d.Body)
		if err != nil {
			r.deadLetter(ctx, d, err)
			continue
		}
		all = append(all,
			announced{delivery: d, inquiry: envelope.Payload.InquiryID, by: envelope.Payload.RespondedBy})
	}
	if err := r.settle(ctx, all); err != nil {
		return err
	}
	if err := batch.Ack(); err != nil {
		// The connection is gone; the broker delivers the messages again, and their inquiries are settled.
		r.deps.Logger.DebugContext(ctx, "Answers not acknowledged, the broker delivers them again", "error", err)
	}
	return nil
}

// maxFailures is how often the database may refuse a batch before its messages are tried one by one, and one of them
// before it is dead-lettered.
const maxFailures = 7

// settle settles the inquiries of messages and waits while the database is unreachable. A refused batch is tried
// message by message, and a refused message is dead-lettered. It returns an error only when the engine stops.
func (r *Responses) settle(ctx context.Context, all []announced) error {
	if len(all) == 0 {
		return nil
	}
	return batch.Run(ctx, r.deps.Gate, "answers", settling{r}, all)
}

// settling is the work of settling batches of answers.
type settling struct{ *Responses }

// Failed logs a failure.
func (r settling) Failed(ctx context.Context, all []announced, f batch.Failure) batch.Verdict {
	if store.Divisible(f.Err) && f.Tries >= maxFailures {
		return batch.Suspect
	}
	r.deps.Logger.WarnContext(ctx, "Answers not processed, retrying", "answers", len(all), "pause", f.Pause,
		"error", f.Err)
	return batch.Again
}

// Split separates all answers.
func (settling) Split(all []announced, _ batch.Failure) [][]announced { return batch.Singles(all) }

// Alone dead-letters a refused answer.
func (r settling) Alone(ctx context.Context, all []announced, f batch.Failure) bool {
	r.deadLetter(ctx, all[0].delivery, f.Err)
	return false
}

// Try settles all in one transaction and dead-letters messages of unknown inquiries.
func (r settling) Try(ctx context.Context, all []announced) error {
	ids := make([]int64, 0, len(all))
	var named, identities []int64
	for _, h := range all {
		ids = append(ids, h.inquiry)
		if h.by != nil {
			named, identities = append(named, h.inquiry), append(identities, *h.by)
		}
	}
	known := map[int64]bool{}
	bounded, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	err := r.deps.Store.Once(bounded, "settle answered inquiries", func(ctx context.Context, tx *store.Tx) error {
		clear(known)
		rows, err := tx.InquiryExecutions(ctx, ids)
		if err != nil {
			return fmt.Errorf("find the executions of %d inquiries: %w", len(ids), err)
		}
		executions := make([]int64, len(rows))
		for i, row := range rows {
			executions[i], known[row.ID] = row.Execution, true
		}
		if err := lockExecutions(ctx, tx, executions); err != nil {
			return err
		}
		if len(named) > 0 {
			if err := tx.NoteResponders(ctx, named, identities); err != nil {
				return fmt.Errorf("record the responders of %d inquiries: %w", len(named), err)
			}
		}
		done, err := settle(ctx, tx, ids, r.deps.Source, r.deps.Keys)
		if err != nil {
			return err
		}
		return publish(ctx, tx, r.deps.Relay, done.messages)
	})
	if err != nil {
		return err
	}
	for _, h := range all {
		switch {
		case !known[h.inquiry]:
			r.deadLetter(ctx, h.delivery, fmt.Errorf("%w: %d", ErrNotFound, h.inquiry))
		case !h.delivery.Redelivered:
			r.deps.Metrics.responses.Inc()
		}
	}
	return nil
}

const settleTimeout = 30 * time.Second

func (r *Responses) deadLetter(ctx context.Context, d *broker.Delivery, reason error) {
	r.deps.Logger.WarnContext(telemetry.Often(ctx), "Answer dead-lettered", "message_id", d.MessageID, "reason", reason)
	d.GiveUp(ctx, reason, 1)
}
