package retention

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics measures all loops of this package.
type Metrics struct {
	removed *prometheus.CounterVec
	ahead   *prometheus.GaugeVec
	missing *prometheus.GaugeVec
	rest    *prometheus.GaugeVec
}

// NewMetrics registers the metrics; with a nil registerer they are not exported.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	auto := promauto.With(registerer)
	gauge := func(name, help string) *prometheus.GaugeVec {
		return auto.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"table"})
	}
	return &Metrics{
		removed: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "attune_retention_removed_total",
			Help: "Rows and partitions deleted after their retention.",
		}, []string{"what"}),
		ahead:   gauge("attune_partitions_ahead_days", "Days until the first gap in the partitions of a table."),
		missing: gauge("attune_partitions_missing", "Missing partitions of a table from today on."),
		rest: gauge("attune_partitions_default_rows",
			"Rows in the default partition of a table, counted up to 100,000."),
	}
}

func (m *Metrics) removedOne(what string, n int64) {
	if n > 0 {
		m.removed.WithLabelValues(what).Add(float64(n))
	}
}
