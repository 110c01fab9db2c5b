package supervise

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics measures all loops of a process. A nil *Metrics measures nothing.
type Metrics struct {
	lastTick *prometheus.GaugeVec
	errors   *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

// NewMetrics registers the loop metrics; with a nil registerer they are not exported.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	m := &Metrics{
		lastTick: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "attune_loop_last_tick_timestamp_seconds",
			Help: "When the loop last ended a tick, whatever its outcome, in Unix seconds.",
		}, []string{"loop"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "attune_loop_errors_total",
			Help: "Ticks of the loop that failed, ran over their deadline or panicked.",
		}, []string{"loop"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "attune_loop_duration_seconds",
			Help:    "How long a tick of the loop took.",
			Buckets: []float64{0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60},
		}, []string{"loop"}),
	}
	if registerer != nil {
		registerer.MustRegister(m.lastTick, m.errors, m.duration)
	}
	return m
}

func (m *Metrics) observe(loop string, now time.Time, took time.Duration, err error) {
	if m == nil {
		return
	}
	m.lastTick.WithLabelValues(loop).Set(float64(now.UnixMilli()) / 1000)
	m.duration.WithLabelValues(loop).Observe(took.Seconds())
	counter := m.errors.WithLabelValues(loop) // exists from the first tick, at zero
	if err != nil {
		counter.Inc()
	}
}
