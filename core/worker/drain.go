package worker

import (
	"context"
	"fmt"
	"sync"

	"github.com/attune-go/attune/core/broker"
)

// dispatchConsumer consumes dispatches. It is closed while the worker drains or is unable.
type dispatchConsumer struct {
	broker *broker.Broker
	cfg    broker.ConsumerConfig

	mu       sync.Mutex
	consumer *broker.Consumer // nil while it is closed; guarded by mu
}

// open starts to consume. Without a broker the consumer subscribes later by itself.
func (t *dispatchConsumer) open(ctx context.Context) (*broker.Consumer, error) {
	consumer := t.broker.Consume(t.cfg)
	if err := consumer.Start(ctx); err != nil {
		return nil, fmt.Errorf("consume %s: %w", t.cfg.Queue, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.consumer = consumer
	return consumer, nil
}

// close stops the consumer. Unacknowledged deliveries return to the queue.
func (t *dispatchConsumer) close() {
	t.mu.Lock()
	consumer := t.consumer
	t.consumer = nil
	t.mu.Unlock()
	if consumer != nil {
		consumer.Stop()
	}
}

func (t *dispatchConsumer) batches() <-chan *broker.Batch {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.consumer == nil {
		return nil
	}
	return t.consumer.Batches()
}

// consumes reports whether the consumer works, or is closed on purpose.
func (t *dispatchConsumer) consumes() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.consumer == nil || t.consumer.Subscribed()
}

// work starts dispatched executions until the worker rests (nil) or ends (why). In both cases unstarted dispatches are
// back in the queue when it returns. A worker that ends leaves placement before it returns dispatches.
func (w *Worker) work(ctx context.Context, l *life) (why error) {
	taking, stopTaking := context.WithCancel(ctx)
	defer stopTaking()
	var intake sync.WaitGroup
	intake.Go(func() { consume(taking, l.dispatches.batches(), l.intake.handle) })
	why = l.member.await(ctx, true)
	stopTaking()
	w.leaveFor(ctx, l, why)
	intake.Wait()
	l.intake.settling.Wait()
	l.dispatches.close()
	return why
}

// consume handles batches until the context ends or the consumer stops. Other deliveries stay unacknowledged and return
// to the queue.
func consume(ctx context.Context, batches <-chan *broker.Batch, handle func(context.Context, *broker.Batch)) {
	for {
		select {
		case <-ctx.Done():
			return
		case batch, ok := <-batches:
			if !ok {
				return
			}
			handle(ctx, batch)
		}
	}
}

// rest starts nothing while running executions continue, until the worker neither drains nor is unable (nil) or ends
// (why). Heartbeats, cancels and ends continue.
func (w *Worker) rest(ctx context.Context, l *life) (why error) {
	logger := w.deps.Logger.With("worker_id", l.member.id, "worker", w.cfg.Name)
	if l.member.inability() == "" {
		logger.InfoContext(ctx, "Worker drains, unstarted executions return to the engine", "running", l.roster.size())
		defer func() {
			if why == nil {
				logger.InfoContext(ctx, "Drain ended, worker runs executions again")
			}
		}()
	}
	resting, stopResting := context.WithCancel(ctx)
	defer stopResting()
	var empty sync.WaitGroup
	empty.Go(func() {
		if l.roster.wait(resting) && l.member.inability() == "" {
			logger.InfoContext(ctx, "Worker drained, nothing runs any more")
		}
	})
	why = l.member.await(ctx, false)
	stopResting()
	empty.Wait()
	if why != nil {
		w.leaveFor(ctx, l, why)
		return why
	}
	consumer, err := l.dispatches.open(ctx)
	if err == nil {
		err = awaitSubscribed(ctx, consumer)
	}
	if err != nil { // it subscribes later by itself, unless the worker ends
		logger.WarnContext(ctx, "Dispatches are not consumed again yet", "error", err)
	}
	l.heartbeat.Wake()
	return nil
}

// leaveFor removes a worker that ends from placement.
func (w *Worker) leaveFor(ctx context.Context, l *life, why error) {
	if why == nil {
		return
	}
	w.bounded(context.WithoutCancel(ctx), func(ctx context.Context) { l.member.leave(ctx, true) })
}
