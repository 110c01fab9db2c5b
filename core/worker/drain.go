package worker

import (
	"context"
	"fmt"
	"sync"

	"github.com/attune-go/attune/core/broker"
)

// tap is the consuming of dispatches: a drain shuts it, the end of the drain
// opens it again.
type tap struct {
	broker *broker.Broker
	cfg    broker.ConsumerConfig

	mu       sync.Mutex
	consumer *broker.Consumer // nil while it is shut; guarded by mu
}

// open begins to consume. The consumer subscribes by itself, also later, when
// the broker is away.
func (t *tap) open(ctx context.Context) (*broker.Consumer, error) {
	consumer := t.broker.Consume(t.cfg)
	if err := consumer.Start(ctx); err != nil {
		return nil, fmt.Errorf("consume %s: %w", t.cfg.Queue, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.consumer = consumer
	return consumer, nil
}

// shut ends it. What was delivered and is not settled returns to the queue.
func (t *tap) shut() {
	t.mu.Lock()
	consumer := t.consumer
	t.consumer = nil
	t.mu.Unlock()
	if consumer != nil {
		consumer.Stop()
	}
}

// batches are the deliveries of the consumer that is open.
func (t *tap) batches() <-chan *broker.Batch {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.consumer == nil {
		return nil
	}
	return t.consumer.Batches()
}

// hears reports whether nothing is wrong with the consuming: a tap that is shut
// need not hear.
func (t *tap) hears() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.consumer == nil || t.consumer.Subscribed()
}

// take starts what is dispatched until the worker drains (nil) or ends (why).
// Whichever it is, what was not started is back in the queue when it returns,
// and a worker that ends has left placement before it gives anything back.
func (w *Worker) take(ctx context.Context, l *life) (why error) {
	taking, stopTaking := context.WithCancel(ctx)
	defer stopTaking()
	var intake sync.WaitGroup
	intake.Go(func() { l.intake.run(taking, l.tap.batches()) })
	why = l.member.await(ctx, true)
	stopTaking()
	w.leaveFor(ctx, l, why)
	intake.Wait()
	l.tap.shut()
	return why
}

// rest is a drain: nothing is taken while what runs goes on, until the row says
// that it is over (nil) or the worker ends (why). Heartbeats, cancels and ends go
// on all the time.
func (w *Worker) rest(ctx context.Context, l *life) (why error) {
	logger := w.deps.Logger.With("worker_id", l.member.id, "worker", w.cfg.Name)
	logger.InfoContext(ctx, "Worker drains: it takes nothing more, and what it had not started goes back", "running", l.roster.size())
	resting, stopResting := context.WithCancel(ctx)
	defer stopResting()
	var empty sync.WaitGroup
	empty.Go(func() {
		if l.roster.wait(resting) {
			logger.InfoContext(ctx, "Worker has drained: nothing runs here any more")
		}
	})
	why = l.member.await(ctx, false)
	stopResting()
	empty.Wait()
	if why != nil {
		w.leaveFor(ctx, l, why)
		return why
	}
	if _, err := l.tap.open(ctx); err != nil { // the start of a consumer fails only when the worker ends
		logger.WarnContext(ctx, "Dispatches are not consumed again", "error", err)
		return nil
	}
	logger.InfoContext(ctx, "Worker takes work again")
	return nil
}

// leaveFor takes a worker that ends out of placement.
func (w *Worker) leaveFor(ctx context.Context, l *life, why error) {
	if why == nil {
		return
	}
	w.bounded(context.WithoutCancel(ctx), func(ctx context.Context) { l.member.leave(ctx, true) })
}
