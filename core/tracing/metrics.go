package tracing

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics counts spans.
type Metrics struct{ spans *prometheus.CounterVec }

const (
	outcomeSent    = "sent"
	outcomeDropped = "dropped"
)

// NewMetrics registers the metrics of traces.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{spans: promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
		Name: "attune_trace_spans_total",
		Help: "Spans that the collector has, and spans dropped because it was away or refused them, or the queue was full.",
	}, []string{"outcome"})}
	for _, outcome := range []string{outcomeSent, outcomeDropped} {
		m.spans.WithLabelValues(outcome)
	}
	return m
}

func (m *Metrics) add(outcome string, n int) {
	m.spans.WithLabelValues(outcome).Add(float64(n))
}
