package engine

import (
	"context"

	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/recovery"
	"github.com/attune-go/attune/core/supervise"
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
	routes := deadletter.NewRoutes(deadletter.RoutesConfig{}, e.query, e.broker, e.logger, measured, metrics)
	e.loops["dead letter routes"] = routes.Loop
	e.services.Add("dead letter consumer", consumer)
	e.services.Add("dead letters", handler)
	e.services.Add("dead letter routes", routes)
}
