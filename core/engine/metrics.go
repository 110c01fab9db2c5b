package engine

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/attune-go/attune/core/message"
)

// Metrics measures the hot loop.
type Metrics struct {
	duration prometheus.Histogram
	size     prometheus.Histogram
	failures prometheus.Counter
	tooEarly prometheus.Counter
	poisons  *prometheus.CounterVec
}

// NewMetrics registers the metrics of the hot loop.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	auto := promauto.With(reg)
	return &Metrics{
		duration: auto.NewHistogram(prometheus.HistogramOpts{
			Name: "attune_round_duration_seconds", Help: "Time from the start of a batch to its commit.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
		}),
		size: auto.NewHistogram(prometheus.HistogramOpts{
			Name: "attune_round_executions", Help: "Executions in one batch.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 10),
		}),
		failures: auto.NewCounter(prometheus.CounterOpts{
			Name: "attune_round_failures_total", Help: "Batches that failed and were tried again or halved.",
		}),
		tooEarly: auto.NewCounter(prometheus.CounterOpts{
			Name: "attune_completions_early_total", Help: "Completions of executions whose row had not ended.",
		}),
		poisons: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "attune_messages_dead_lettered_total", Help: "Messages that the engine dead-lettered.",
		}, []string{"type"}),
	}
}

func (m *Metrics) batch(size int, took time.Duration) {
	m.duration.Observe(took.Seconds())
	m.size.Observe(float64(size))
}

func (m *Metrics) poison(kind string) {
	if !slices.Contains(message.Types, kind) {
		kind = "unknown" // a publisher may write anything into the type of a message
	}
	m.poisons.WithLabelValues(kind).Inc()
}
