package engine

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/crashpoint"
	"github.com/attune-go/attune/core/gate"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/supervise"
)

// inbox is the loop of one queue besides the hot ones. It takes whatever has
// arrived, and what a sweep has found, deals with it as one batch, and acknowledges
// it after the commit. Its answers to failures are those of the hot loop: a database
// that is away is waited for, a batch that fails is bisected, a message that fails all
// by itself is put off and in the end dead-lettered with the reason.
type inbox struct {
	supervise.Base

	consumer *broker.Consumer
	queue    string
	kind     string // the message type
	what     string // what a message is about, for people
	most     int    // how many make one batch
	// read finds out what a message is about.
	read func(body []byte) (int64, error)
	// work deals with a batch, whose ids may repeat; missing are those without a row.
	work func(ctx context.Context, ids []int64) (missing []int64, err error)

	// absent gives up messages whose rows do not come.
	absent func(ctx context.Context, items []item, kind, what string)

	logger  *slog.Logger
	metrics *Metrics

	found chan []int64
	later *later
	gate  *gate.Gate
}

// newInbox fills in what all inboxes have alike.
func (e *Engine) newInbox(b *inbox) *inbox {
	b.logger, b.metrics, b.absent = e.logger, e.hot.metrics, e.hot.absent
	b.consumer = e.consume(b.queue, "executor."+b.what, max(e.cfg.MessageQueue.RabbitMQ.PrefetchCount, 2*b.most), b.most)
	b.found, b.later, b.gate = make(chan []int64), newLater(new(atomic.Int64)), e.gate
	return b
}

// Submit has what a sweep has found dealt with. It returns when the loop has taken
// it.
func (b *inbox) Submit(ctx context.Context, ids []int64) error {
	select {
	case b.found <- ids:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("hand over what was forgotten of queue %s: %w", b.queue, ctx.Err())
	}
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
			b.all(scheduler.Impatient(ctx), b.later.take(b.most, time.Now()))
		}
	}
}

// take deals with a batch of deliveries. What cannot be read is dead-lettered at
// once, so that it never blocks its neighbours.
func (b *inbox) take(ctx context.Context, batch *broker.Batch) {
	items := make([]item, 0, len(batch.Deliveries))
	for i := range batch.Deliveries {
		it := item{delivery: &batch.Deliveries[i]}
		id, err := b.read(it.delivery.Body)
		if err != nil {
			b.poison(ctx, it, err)
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
		// The connection is gone; the deliveries come again and change nothing.
		b.logger.DebugContext(ctx, "Batch could not be acknowledged", "error", err)
	}
}

// all deals with items, as many at a time as make a batch. It returns false when
// the engine stops; what is not acknowledged comes again.
func (b *inbox) all(ctx context.Context, items []item) bool {
	for len(items) > 0 {
		n := min(len(items), b.most)
		if err := b.batch(ctx, items[:n]); err != nil {
			b.logger.DebugContext(ctx, "Batch given up, deliveries return to their queue", "queue", b.queue, "error", err)
			return false
		}
		items = items[n:]
	}
	return true
}

// batch deals with items together, and parts them when that fails for a reason that
// may be one of them. It returns an error only when the engine stops.
func (b *inbox) batch(ctx context.Context, items []item) error {
	ids := make([]int64, len(items))
	for i, it := range items {
		ids[i] = it.execution
	}
	retry := backoff.NewExponentialBackOff()
	retry.InitialInterval, retry.MaxInterval = 100*time.Millisecond, 5*time.Second
	for tries := 1; ; tries++ {
		missing, err := b.once(ctx, ids)
		if b.gate.Retry(ctx, b.what+"s", err) {
			tries--
			continue
		}
		if err == nil {
			b.settle(ctx, items, missing)
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
		if verdict := classify(err, tries); verdict != again {
			return b.part(ctx, items, err, verdict)
		}
		pause := retry.NextBackOff()
		b.logger.WarnContext(ctx, "Batch failed and is tried again", "queue", b.queue, "messages", len(items), "pause", pause, "error", err)
		if !supervise.Sleep(ctx, pause) {
			return context.Cause(ctx)
		}
	}
}

// once runs a batch to its end even when the engine begins to stop, because a
// finished batch is less work for whoever takes over.
func (b *inbox) once(ctx context.Context, ids []int64) ([]int64, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), batchTimeout)
	defer cancel()
	return b.work(ctx, ids)
}

// part isolates what makes a batch fail.
func (b *inbox) part(ctx context.Context, items []item, cause error, verdict answer) error {
	if len(items) == 1 {
		b.postpone(ctx, items[0], cause, verdict)
		return nil
	}
	b.logger.WarnContext(ctx, "Batch failed and is halved", "queue", b.queue, "messages", len(items), "error", cause)
	if verdict == blocked {
		ctx = scheduler.Impatient(ctx)
	}
	middle := len(items) / 2
	if err := b.batch(ctx, items[:middle]); err != nil {
		return err
	}
	return b.batch(ctx, items[middle:])
}

// postpone deals with what fails all by itself. What a sweep found is found again.
func (b *inbox) postpone(ctx context.Context, it item, cause error, verdict answer) {
	switch {
	case it.delivery == nil:
		b.logger.ErrorContext(ctx, "What was forgotten cannot be dealt with", "what", b.what, "id", it.execution, "error", cause)
	case verdict == suspect && it.attempts+1 >= maxAttempts:
		b.poison(ctx, it, cause)
	default:
		b.logger.WarnContext(ctx, "Message cannot be processed now and is tried again",
			"what", b.what, "id", it.execution, "message_id", it.delivery.MessageID, "attempts", it.attempts+1, "error", cause)
		b.later.add(it, time.Now())
	}
}

// settle acknowledges what was put off before, and puts off what has no row yet.
func (b *inbox) settle(ctx context.Context, items []item, missing []int64) {
	gone := make(map[int64]bool, len(missing))
	for _, id := range missing {
		gone[id] = true
	}
	var absent []item
	for _, it := range items {
		switch {
		case it.delivery == nil:
		case gone[it.execution]:
			full := it.attempts+1 >= maxAttempts
			if !full {
				it, full = b.later.await(it, time.Now())
			}
			if full {
				absent = append(absent, it)
			}
		case it.alone:
			if err := it.delivery.Ack(); err != nil {
				b.logger.DebugContext(ctx, "Message could not be acknowledged and comes again", "error", err)
			}
		}
	}
	b.absent(ctx, absent, b.kind, b.what)
}

func (b *inbox) poison(ctx context.Context, it item, cause error) {
	poison(ctx, b.logger, b.metrics, it, b.kind, cause)
}
