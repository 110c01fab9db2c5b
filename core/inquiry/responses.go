package inquiry

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/gate"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

// Bounds of what the consumer of answers has in hand.
const (
	MaxBatch = 100
	Prefetch = 200
)

// Consumer is where answers come from; *broker.Consumer is one.
type Consumer interface {
	Batches() <-chan *broker.Batch
}

// Deps is what Responses is given.
type Deps struct {
	Store    *store.Store
	Consumer Consumer
	Relay    Relay // may be nil
	Logger   *slog.Logger
	Metrics  *Metrics // may be nil
	// Source is the source_service of messages. Default "attune-executor".
	Source string
	// Gate holds the service while the installation is at fault. Nil holds it alone.
	Gate *gate.Gate
	// Keys seal the secrets of the answers. Without a key these stay in the clear.
	Keys secret.Keyring
}

// Responses takes InquiryResponded, which whoever took an answer sends after the row
// says so, and draws what follows. The row decides: an answer that it does not have is
// not taken from the message, and one that was drawn from already is left. A message
// that cannot be read, or names an inquiry that does not exist, is dead-lettered. It is
// a supervise.Service.
type Responses struct {
	supervise.Base

	deps Deps
}

// NewResponses makes the service.
func NewResponses(deps Deps) *Responses {
	if deps.Source == "" {
		deps.Source = "attune-executor"
	}
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
				// Only the end of the engine leaves answers undecided here: what is not
				// acknowledged is delivered again.
				r.deps.Logger.DebugContext(ctx, "Answers return to their queue", "error", err)
				return
			}
		}
	}
}

// heard is an answer that a message tells of.
type heard struct {
	delivery *broker.Delivery
	inquiry  int64
	by       *int64
}

// handle settles what a batch tells of and acknowledges it.
func (r *Responses) handle(ctx context.Context, batch *broker.Batch) error {
	var all []heard
	for i := range batch.Deliveries {
		d := &batch.Deliveries[i]
		envelope, err := message.Decode[message.InquiryResponded](d.Body)
		if err != nil {
			r.deadLetter(ctx, d, err)
			continue
		}
		all = append(all, heard{d, envelope.Payload.InquiryID, envelope.Payload.RespondedBy})
	}
	if err := r.settle(ctx, all); err != nil {
		return err
	}
	if err := batch.Ack(); err != nil {
		// The connection is gone; the messages come again and find nothing to do.
		r.deps.Logger.DebugContext(ctx, "Answers could not be acknowledged and come again", "error", err)
	}
	return nil
}

// maxFailures is how often the database may refuse a batch before its messages are
// suspected.
const maxFailures = 5

// settle settles what messages tell of, waiting out a database that is away. What it
// refuses is tried message by message, and dead-lettered in the end. It returns an
// error only when the engine stops.
func (r *Responses) settle(ctx context.Context, all []heard) error {
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval = 200*time.Millisecond, 15*time.Second
	for failures := 0; len(all) > 0; {
		err := r.once(ctx, all)
		if r.deps.Gate.Retry(ctx, "answers", err) {
			continue
		}
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if class := store.ClassOf(err); class == store.ClassFatal || class == store.ClassRefused ||
			class == store.ClassConflict {
			failures++
		}
		if failures >= maxFailures && len(all) == 1 {
			r.deadLetter(ctx, all[0].delivery, err)
			return nil
		}
		if failures >= maxFailures {
			for i := range all {
				if err := r.settle(ctx, all[i:i+1]); err != nil {
					return err
				}
			}
			return nil
		}
		pause := pauses.NextBackOff()
		r.deps.Logger.WarnContext(ctx, "Answers could not be taken and are kept", "answers", len(all), "pause", pause,
			"error", err)
		if !supervise.Sleep(ctx, pause) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// once settles everything in one transaction and dead-letters what there is no
// inquiry for.
func (r *Responses) once(ctx context.Context, all []heard) error {
	ids := make([]int64, 0, len(all))
	var told, identities []int64
	for _, h := range all {
		ids = append(ids, h.inquiry)
		if h.by != nil {
			told, identities = append(told, h.inquiry), append(identities, *h.by)
		}
	}
	known := map[int64]bool{}
	bounded, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	err := r.deps.Store.Tx(bounded, "settle answered inquiries", func(ctx context.Context, tx *store.Tx) error {
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
		if len(told) > 0 {
			if err := tx.NoteResponders(ctx, told, identities); err != nil {
				return fmt.Errorf("note who answered %d inquiries: %w", len(told), err)
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
			r.deps.Metrics.responded()
		}
	}
	return nil
}

const settleTimeout = 30 * time.Second

// deadLetter gives a message up.
func (r *Responses) deadLetter(ctx context.Context, d *broker.Delivery, reason error) {
	r.deps.Logger.WarnContext(ctx, "Answer dead-lettered", "message_id", d.MessageID, "reason", reason)
	d.GiveUp(ctx, reason, 1)
}
