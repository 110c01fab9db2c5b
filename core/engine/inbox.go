package engine

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/attune-go/attune/core/batch"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/crashpoint"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/telemetry"
)

// inbox is the loop of one queue besides the hot ones. It takes all waiting deliveries and findings
// of sweeps, processes them as one batch, and acknowledges them after the commit. It handles
// failures like the hot loop: it waits for an unreachable database, bisects a failing batch,
// postpones a message that fails alone, and finally dead-letters it with the reason.
type inbox struct {
	supervise.Base

	consumer *broker.Consumer
	queue    string
	kind     string // the message type
	what     string // the subject of a message, for users
	source   string // what the gate calls it
	most     int    // maximum size of a batch
	// read decodes the subject of a message.
	read func(body []byte) (int64, error)
	// work processes a batch, whose ids may repeat; missing are ids without a row.
	work func(ctx context.Context, items []item) (missing []int64, err error)
	// deleted returns those of the missing ids whose rows were deleted.
	deleted func(ctx context.Context, missing []int64) ([]int64, error)

	*shared // logger, metrics, gate, and the handling of failed messages

	found chan []int64
	later *later
}

// newInbox fills in the common parts of all inboxes.
func (e *Engine) newInbox(b *inbox) *inbox {
	b.shared = e.hot.shared
	b.consumer = e.consume(b.queue, "executor."+b.what, max(e.cfg.MessageQueue.RabbitMQ.PrefetchCount, 2*b.most),
		b.most)
	b.found, b.later = make(chan []int64), newLater(new(atomic.Int64))
	return b
}

// Submit passes findings of a sweep to the loop. It returns when the loop has taken them.
func (b *inbox) Submit(ctx context.Context, ids []int64) error {
	return pass(ctx, b.found, ids, "submit lost messages of queue "+b.queue)
}

// Start implements supervise.Service.
func (b *inbox) Start(ctx context.Context) error { return b.Launch(ctx, nil, b.run) }

func (b *inbox) run(ctx context.Context) {
	for b.gate.Enter(ctx) {
		select {
		case <-ctx.Done():
			return
		case batch, ok := <-b.consumer.Batches():
			if !ok {
				return
			}
			b.take(ctx, batch)
		case ids := <-b.found:
			items := make([]item, len(ids))
			for i, id := range ids {
				items[i] = item{execution: id}
			}
			b.all(ctx, items)
		case <-b.later.timer.C:
			b.all(scheduler.BriefLocks(ctx), b.later.take(b.most, time.Now()))
		}
	}
}

// take processes a batch of deliveries. It dead-letters unreadable ones at once, so that they never
// block others.
func (b *inbox) take(ctx context.Context, batch *broker.Batch) {
	items := make([]item, 0, len(batch.Deliveries))
	for i := range batch.Deliveries {
		it := item{delivery: &batch.Deliveries[i]}
		id, err := b.read(it.delivery.Body)
		if err != nil {
			b.unreadable(ctx, it.delivery, b.kind, err)
			continue
		}
		it.execution = id
		items = append(items, it)
	}
	if !b.all(ctx, items) {
		return
	}
	crashpoint.Reach("inbox:before-ack")
	if err := batch.Ack(); err != nil {
		// The connection is lost; the redelivered messages change nothing.
		b.logger.DebugContext(ctx, "Batch could not be acknowledged", "error", err)
	}
}

// all processes items in batches. It returns false when the engine stops; unacknowledged messages
// are delivered again.
func (b *inbox) all(ctx context.Context, items []item) bool {
	for len(items) > 0 {
		n := min(len(items), b.most)
		if err := b.batch(ctx, items[:n]); err != nil {
			b.logger.DebugContext(ctx, "Batch given up, deliveries return to their queue", "queue", b.queue, "error",
				err)
			return false
		}
		items = items[n:]
	}
	return true
}

type inboxBatch struct {
	items   []item
	briefly bool // like load.briefly
}

// batch processes items together. It returns an error only when the engine stops.
func (b *inbox) batch(ctx context.Context, items []item) error {
	return batch.Run(ctx, b.gate, b.source, b, &inboxBatch{items: items})
}

// Try finishes a batch even if the engine stops, because that leaves less work to another replica.
func (b *inbox) Try(ctx context.Context, m *inboxBatch) error {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), batchTimeout)
	defer cancel()
	if m.briefly {
		bounded = scheduler.BriefLocks(bounded)
	}
	missing, err := b.work(bounded, m.items)
	if err != nil {
		return err
	}
	b.settle(ctx, m.items, missing)
	return nil
}

// Failed logs a failure that does not leave one message alone.
func (b *inbox) Failed(ctx context.Context, m *inboxBatch, f batch.Failure) batch.Verdict {
	f.Verdict = classify(f.Err, f.Tries)
	switch {
	case f.Verdict == batch.Again:
		b.logger.WarnContext(ctx, "Batch failed and is tried again",
			"queue", b.queue, "messages", len(m.items), "pause", f.Pause, "error", f.Err)
	case len(m.items) > 1:
		b.logger.WarnContext(ctx, "Batch failed and is halved", "queue", b.queue, "messages", len(m.items), "error",
			f.Err)
	}
	return f.Verdict
}

// Split halves a batch.
func (*inbox) Split(m *inboxBatch, f batch.Failure) (parts []*inboxBatch) {
	for _, half := range batch.Halves(m.items) {
		parts = append(parts, &inboxBatch{items: half, briefly: m.briefly || f.Verdict == batch.Blocked})
	}
	return parts
}

// Alone handles an item that failed alone. A sweep finds its findings again.
func (b *inbox) Alone(ctx context.Context, m *inboxBatch, f batch.Failure) bool {
	it := m.items[0]
	if it.delivery == nil {
		b.logger.ErrorContext(ctx, "Lost message cannot be processed", b.what+"_id", it.execution, "error", f.Err)
		return false
	}
	ctx = telemetry.With(ctx, slog.Int64(b.what+"_id", it.execution))
	b.postpone(ctx, b.later, it, b.kind, f)
	return false
}

// idsOf are the subjects of items.
func idsOf(items []item) []int64 {
	ids := make([]int64, len(items))
	for i, it := range items {
		ids[i] = it.execution
	}
	return ids
}

// settle acknowledges postponed items, and postpones items without a row.
func (b *inbox) settle(ctx context.Context, items []item, missing []int64) {
	gone := setOf(missing)
	var absent []item
	for _, it := range items {
		switch {
		case it.delivery == nil:
		case gone[it.execution]:
			full := it.lastAwait()
			if !full {
				it, full = b.later.await(it, time.Now())
			}
			if full {
				absent = append(absent, it)
			}
		case it.alone:
			if err := it.delivery.Ack(); err != nil {
				b.logger.DebugContext(ctx, "Message could not be acknowledged and will be delivered again", "error", err)
			}
		}
	}
	b.absent(ctx, b.acknowledgeDeleted(ctx, absent), b.kind, b.what)
}

// acknowledgeDeleted acknowledges messages about rows that were deleted meanwhile, since nothing is left to do, and
// returns the others.
func (b *inbox) acknowledgeDeleted(ctx context.Context, items []item) []item {
	if len(items) == 0 {
		return nil
	}
	deleted, err := b.deleted(ctx, idsOf(items))
	if err != nil {
		b.logger.WarnContext(telemetry.Often(ctx), "Deleted rows not looked for",
			"queue", b.queue, "messages", len(items), "error", err)
		return items
	}
	gone := setOf(deleted)
	return slices.DeleteFunc(items, func(it item) bool {
		if !gone[it.execution] {
			return false
		}
		b.logger.WarnContext(telemetry.Often(ctx), "Message about a deleted row acknowledged",
			"message_id", it.delivery.MessageID, "message_type", b.kind, b.what+"_id", it.execution)
		if err := it.delivery.Ack(); err != nil {
			b.logger.DebugContext(ctx, "Message could not be acknowledged and will be delivered again", "error", err)
		}
		return true
	})
}
