package engine

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics measures the hot loop. A nil *Metrics measures nothing.
type Metrics struct {
	duration prometheus.Histogram
	size     prometheus.Histogram
	failures prometheus.Counter
	tooEarly prometheus.Counter
	poisons  *prometheus.CounterVec
}

// NewMetrics registers the metrics of the hot loop.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "attune_round_duration_seconds", Help: "Time from the start of a round to its commit.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
		}),
		size: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "attune_round_executions", Help: "Executions in one round.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 10),
		}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "attune_round_failures_total", Help: "Rounds that failed and were tried again or halved.",
		}),
		tooEarly: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "attune_completions_early_total", Help: "Completions of executions whose row had not ended.",
		}),
		poisons: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "attune_messages_dead_lettered_total", Help: "Messages the engine rejected to the dead-letter queue.",
		}, []string{"type"}),
	}
	reg.MustRegister(m.duration, m.size, m.failures, m.tooEarly, m.poisons)
	return m
}

func (m *Metrics) batch(size int, took time.Duration) {
	if m != nil {
		m.duration.Observe(took.Seconds())
		m.size.Observe(float64(size))
	}
}

func (m *Metrics) batchFailed() {
	if m != nil {
		m.failures.Inc()
	}
}

func (m *Metrics) early() {
	if m != nil {
		m.tooEarly.Inc()
	}
}

func (m *Metrics) poison(kind string) {
	if m != nil {
		m.poisons.WithLabelValues(kind).Inc()
	}
}
