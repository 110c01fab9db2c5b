package enforcement

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts what becomes of enforcements. A nil *Metrics counts nothing.
type Metrics struct{ resolved *prometheus.CounterVec }

// NewMetrics registers the metrics of enforcements.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{resolved: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "attune_enforcements_total", Help: "Enforcements that were taken up, by what became of them.",
	}, []string{"outcome"})}
	for _, outcome := range []string{"processed", "disabled"} {
		m.resolved.WithLabelValues(outcome)
	}
	reg.MustRegister(m.resolved)
	return m
}

// Observe counts a batch that was committed.
func (m *Metrics) Observe(outcome Outcome) {
	if m != nil {
		m.resolved.WithLabelValues("processed").Add(float64(outcome.Processed))
		m.resolved.WithLabelValues("disabled").Add(float64(len(outcome.Disabled)))
	}
}
