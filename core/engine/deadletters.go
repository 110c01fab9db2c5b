package engine

import (
	"context"
	"time"

	"github.com/attune-go/attune/core/batch"
	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/recovery"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/telemetry"
)

// addDeadLetters adds the handler of dead letters and the probe of their routes.
// Without message_queue.rabbitmq.dead_letter.enabled there are none: dead letters stay
// in their queue, where an operator handles them.
func (e *Engine) addDeadLetters(metrics *supervise.Metrics) {
	if !e.cfg.MessageQueue.RabbitMQ.DeadLetter.Enabled {
		return
	}
	measured := deadletter.NewMetrics(e.registry)
	consumer := e.consume(message.QueueDeadLetter, "executor.dlq", deadletter.Prefetch, deadletter.MaxBatch)
	handler := deadletter.NewHandler(deadletter.Deps{
		Store: e.query, Consumer: consumer, Decide: e.hot.SubmitDeadLetters,
		Ended: func(ctx context.Context, executions []int64) error {
			return e.hot.Submit(ctx, recovery.Found{Ended: executions})
		},
		Gate: e.gate, Logger: e.logger, Metrics: measured,
	})
	e.hot.handler = handler
	e.routes = deadletter.NewRoutes(deadletter.RoutesConfig{}, e.query, e.broker, e.logger, measured, metrics)
	e.services.Add("dead letter consumer", consumer)
	e.services.Add("dead letters", handler)
	e.addLoop("dead letter routes", e.routes)
}

// deadLetterHandler settles dead letters after their batches; *deadletter.Handler is one.
type deadLetterHandler interface {
	Settle(ctx context.Context, deadLetter *deadletter.Message)
	GiveUp(ctx context.Context, deadLetter *deadletter.Message, cause error) error
	Absent(ctx context.Context, deadLetters []*deadletter.Message) (exist []*deadletter.Message, err error)
}

// SubmitDeadLetters passes dead letters that a batch must decide to the loop. It blocks while the
// loop is busy.
func (h *hot) SubmitDeadLetters(ctx context.Context, deadLetters []*deadletter.Message) error {
	return pass(ctx, h.deadLetterBatches, deadLetters, "submit dead letters to the lanes")
}

// deadLetterItems are dead letters as items, each settled alone.
func deadLetterItems(deadLetters []*deadletter.Message) []item {
	items := make([]item, len(deadLetters))
	for i, l := range deadLetters {
		items[i] = item{execution: l.Execution, deadLetter: l, delivery: l.Delivery(), alone: true}
	}
	return items
}

// settleDeadLetter settles a dead letter after a committed batch, or postpones it because no worker
// had capacity for its execution.
func (l *lane) settleDeadLetter(ctx context.Context, it item) {
	if !it.deadLetter.Open() {
		l.handler.Settle(ctx, it.deadLetter)
		return
	}
	it.attempts = min(it.attempts, maxAttempts/2) // it did not fail
	l.later.add(it, time.Now())
}

// roomForDeadLetters is how many more dead letters may wait for capacity: they must not block
// decidable ones.
func (l *lane) roomForDeadLetters() int {
	room := deadletter.MaxOpen
	for i := range l.later.items {
		if it := &l.later.items[i]; it.deadLetter != nil && it.deadLetter.Open() {
			room--
		}
	}
	return max(room, 0)
}

// postponeDeadLetter handles a dead letter whose batch failed alone. In the end an operator
// decides: a dead letter must not be dead-lettered again.
func (l *lane) postponeDeadLetter(ctx context.Context, it item, f batch.Failure) {
	cause := f.Err
	if f.Verdict == batch.Suspect && it.attempts+1 >= maxAttempts {
		bounded, cancel := context.WithTimeout(ctx, sideTimeout)
		defer cancel()
		err := l.handler.GiveUp(bounded, it.deadLetter, cause)
		if err == nil {
			return
		}
		cause = err
	}
	l.logger.WarnContext(telemetry.Often(ctx), "Dead letter cannot be decided now and is tried again",
		"message_id", it.delivery.MessageID, "attempts", it.attempts+1, "error", cause)
	it.blocked = f.Verdict == batch.Blocked
	l.later.add(it, time.Now())
}
