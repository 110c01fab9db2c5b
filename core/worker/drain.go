package worker

import (
	"context"
	"fmt"
	"sync"

	"github.com/attune-go/attune/core/broker"
)

// tap is the consumer of dispatches. A drain shuts it, the end of the drain opens it again.
type tap struct {
	broker *broker.Broker
	cfg    broker.ConsumerConfig

	mu       sync.Mutex
	consumer *broker.Consumer // nil while it is shut; guarded by mu
}

// open starts to consume. If the broker is away, the consumer subscribes later by itself.
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

// shut stops the consumer. Unsettled deliveries return to the queue.
func (t *tap) shut() {
	t.mu.Lock()
	consumer := t.consumer
	t.consumer = nil
	t.mu.Unlock()
	if consumer != nil {
		consumer.Stop()
	}
}

// batches are the deliveries of the open consumer.
func (t *tap) batches() <-chan *broker.Batch {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.consumer == nil {
		return nil
	}
	return t.consumer.Batches()
}

// hears reports whether the consumer works, or the tap is shut.
func (t *tap) hears() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.consumer == nil || t.consumer.Subscribed()
}

// take starts dispatched executions until the worker drains (nil) or ends (why). In both cases
// unstarted dispatches are back in the queue when it returns. A worker that ends leaves placement
// before it returns dispatches.
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

// rest is a drain: the worker takes nothing while running executions continue, until its row ends
// the drain (nil) or the worker ends (why). Heartbeats, cancels and ends continue.
func (w *Worker) rest(ctx context.Context, l *life) (why error) {
	logger := w.deps.Logger.With("worker_id", l.member.id, "worker", w.cfg.Name)
	logger.InfoContext(ctx, "Worker drains: it takes nothing more, and what it had not started goes back", "running",
		l.roster.size())
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
	if _, err := l.tap.open(ctx); err != nil { // starting a consumer fails only when the worker ends
		logger.WarnContext(ctx, "Dispatches are not consumed again", "error", err)
		return nil
	}
	logger.InfoContext(ctx, "Worker takes work again")
	return nil
}

// leaveFor removes a worker that ends from placement.
func (w *Worker) leaveFor(ctx context.Context, l *life, why error) {
	if why == nil {
		return
	}
	w.bounded(context.WithoutCancel(ctx), func(ctx context.Context) { l.member.leave(ctx, true) })
}
