package retention

import "github.com/prometheus/client_golang/prometheus"

// Metrics measures all loops of this package; nil measures nothing.
type Metrics struct {
	removed *prometheus.CounterVec
	ahead   *prometheus.GaugeVec
	missing *prometheus.GaugeVec
	rest    *prometheus.GaugeVec
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		removed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "attune_retention_removed_total",
			Help: "Rows and partitions deleted after their retention.",
		}, []string{"what"}),
		ahead: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "attune_partitions_ahead_days", Help: "Days until the first gap in the partitions of a table.",
		}, []string{"table"}),
		missing: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "attune_partitions_missing",
			Help: "Missing partitions of a table from today on.",
		}, []string{"table"}),
		rest: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "attune_partitions_default_rows",
			Help: "Rows in the default partition of a table, counted up to 100,000.",
		}, []string{"table"}),
	}
	registry.MustRegister(m.removed, m.ahead, m.missing, m.rest)
	return m
}

func (m *Metrics) removedOne(what string, n int64) {
	if m != nil && n > 0 {
		m.removed.WithLabelValues(what).Add(float64(n))
	}
}

// cover records the partitions of a table and the rows of its default partition.
func (m *Metrics) cover(c Coverage, rest int64) {
	if m == nil || !c.Partitioned {
		return
	}
	m.ahead.WithLabelValues(c.Table).Set(c.Ahead.Hours() / 24)
	m.missing.WithLabelValues(c.Table).Set(float64(c.Missing))
	m.rest.WithLabelValues(c.Table).Set(float64(rest))
}
