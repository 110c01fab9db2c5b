package liveness

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/attune-go/attune/core/store"
)

// Metrics measures workers.
type Metrics struct {
	downtime    prometheus.Histogram
	outage      prometheus.Histogram
	deactivated prometheus.Counter
	reactivated prometheus.Counter
	workers     *prometheus.GaugeVec
	age         *prometheus.GaugeVec // without labels; absent while unknown
	probes      *prometheus.CounterVec
	rtt         prometheus.Histogram
}

// NewMetrics registers the metrics; with a nil registerer they are not exported.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	auto := promauto.With(registerer)
	return &Metrics{
		downtime: auto.NewHistogram(prometheus.HistogramOpts{
			Name:    "attune_worker_downtime_seconds",
			Help:    "Time between the last heartbeat of a worker and marking it inactive.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 14),
		}),
		outage: auto.NewHistogram(prometheus.HistogramOpts{
			Name:    "attune_worker_outage_seconds",
			Help:    "Time without heartbeats of a worker that was marked inactive and sends heartbeats again.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 18),
		}),
		deactivated: auto.NewCounter(prometheus.CounterOpts{
			Name: "attune_workers_deactivated_total",
			Help: "Workers marked inactive because their heartbeats ended, by this replica.",
		}),
		reactivated: auto.NewCounter(prometheus.CounterOpts{
			Name: "attune_workers_reactivated_total",
			Help: "Workers marked active because their heartbeats resumed, by this replica.",
		}),
		workers: auto.NewGaugeVec(prometheus.GaugeOpts{
			Name: "attune_workers", Help: "Workers of any role by state, each counted once.",
		}, []string{"state"}),
		age: auto.NewGaugeVec(prometheus.GaugeOpts{
			Name: "attune_worker_heartbeat_age_seconds",
			Help: "Age of the last heartbeat of the worker that has been silent longest, without inactive workers, " +
				"by the database's clock.",
		}, nil),
		probes: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "attune_worker_probes_total", Help: "Probes of workers by this replica, by verdict.",
		}, []string{"verdict"}),
		rtt: auto.NewHistogram(prometheus.HistogramOpts{
			Name:    "attune_worker_probe_rtt_seconds",
			Help:    "Response time of the broker for the state of a worker's queue.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 13),
		}),
	}
}

// gone counts a worker that was marked inactive; silent is negative if it never sent a heartbeat.
func (m *Metrics) gone(silent float64) {
	m.deactivated.Inc()
	if silent >= 0 {
		m.downtime.Observe(silent)
	}
}

// back counts a worker that resumed its heartbeats; outage is negative if unknown.
func (m *Metrics) back(outage float64) {
	m.reactivated.Inc()
	if outage >= 0 {
		m.outage.Observe(outage)
	}
}

func (m *Metrics) count(c store.CountWorkersRow) {
	for state, n := range map[string]int64{
		"active": c.Active, "inactive": c.Inactive, "stale": c.Stale, "draining": c.Draining, "cordoned": c.Cordoned,
		"suspect": c.Suspect, "unhealthy": c.Unhealthy, "degraded": c.Degraded,
	} {
		m.workers.WithLabelValues(state).Set(float64(n))
	}
	m.age.WithLabelValues().Set(c.OldestHeartbeat)
}

// unknown removes the numbers of workers, because they are not known.
func (m *Metrics) unknown() {
	m.workers.Reset()
	m.age.Reset()
}

func (m *Metrics) probed(f finding) {
	m.probes.WithLabelValues(f.verdict).Inc()
	if f.queue.err == nil && f.queue.asked {
		m.rtt.Observe(f.queue.took.Seconds())
	}
}
