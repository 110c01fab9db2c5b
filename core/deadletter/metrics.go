package deadletter

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics measures dead letters and their routes.
type Metrics struct {
	deadLetters *prometheus.CounterVec
	took        prometheus.Histogram
	waiting     prometheus.Gauge
	routes      *prometheus.GaugeVec
}

// NewMetrics registers the metrics of dead letters.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	auto := promauto.With(reg)
	m := &Metrics{
		deadLetters: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "attune_dead_letters_total",
			Help: "Dead letters stored in the ledger, by how they died and what was decided.",
		}, []string{"reason", "decision"}),
		took: auto.NewHistogram(prometheus.HistogramOpts{
			Name:    "attune_dead_letter_processing_seconds",
			Help:    "Time from the death of a message to the decision about it.",
			Buckets: []float64{0.1, 0.5, 1, 2, 5, 10, 30, 60, 300, 1800, 7200, 86400},
		}),
		waiting: auto.NewGauge(prometheus.GaugeOpts{
			Name: "attune_dead_letter_waiting", Help: "Dead letters that wait for a person, counted up to 10,000.",
		}),
		routes: auto.NewGaugeVec(prometheus.GaugeOpts{
			Name: "attune_dead_letter_routes",
			Help: "Routes of dead letters by what the newest probe found: they keep letters, lose them, " +
				"or could not be probed.",
		}, []string{"state"}),
	}
	// The expected series exist from the start: a rate misses the first value of a new series.
	for _, reason := range []string{ReasonExpired, ReasonRejected, ReasonPoison} {
		for _, decision := range []string{Retried, Failed, Stale, Released, waitingDecision} {
			m.deadLetters.WithLabelValues(reason, decision)
		}
	}
	return m
}

// waitingDecision is the label of a dead letter that waits for an operator.
const waitingDecision = "waiting"

// reasons have a label of their own; other reasons share one, because the header can be forged.
var reasons = []string{ReasonExpired, ReasonRejected, "maxlen", "delivery_limit", ReasonPoison, ReasonUnknown}

func (m *Metrics) decided(l *Message, now time.Time) {
	reason, decision := l.reason, l.decision
	if !slices.Contains(reasons, reason) {
		reason = ReasonUnknown
	}
	if decision == "" {
		decision = waitingDecision
	}
	m.deadLetters.WithLabelValues(reason, decision).Inc()
	if sane(l.died) {
		m.took.Observe(max(now.Sub(l.died).Seconds(), 0))
	}
}

func (m *Metrics) routed(routed, lost, unknown int) {
	m.routes.WithLabelValues("routed").Set(float64(routed))
	m.routes.WithLabelValues("lost").Set(float64(lost))
	m.routes.WithLabelValues("unknown").Set(float64(unknown))
}
