package engine

import (
	"github.com/attune-go/attune/core/inquiry"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/supervise"
)

// addInquiries adds the consumer of answers that other services received, and the watch over open
// inquiries.
func (e *Engine) addInquiries(metrics *supervise.Metrics) {
	measured := inquiry.NewMetrics(e.registry)
	consumer := e.consume(message.QueueInquiryResponses, "executor.inquiry", inquiry.Prefetch, inquiry.MaxBatch)
	responses := inquiry.NewResponses(inquiry.Deps{
		Store: e.query, Consumer: consumer, Relay: e.relay, Logger: e.logger, Metrics: measured, Keys: e.keys,
		Gate: e.gate,
	})
	watch := inquiry.NewWatch(inquiry.WatchConfig{Keys: e.keys}, e.query, e.relay, e.logger, measured, metrics)
	e.loops["inquiries"] = watch.Loop
	e.services.Add("answer consumer", consumer)
	e.services.Add("answers", responses)
	e.services.Add("inquiries", watch)
}
