package supervise

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics measures all loops of a process.
type Metrics struct {
	lastTick *prometheus.GaugeVec
	errors   *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

// NewMetrics registers the loop metrics; with a nil registerer they are not exported.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	auto := promauto.With(registerer)
	return &Metrics{
		lastTick: auto.NewGaugeVec(prometheus.GaugeOpts{
			Name: "attune_loop_last_tick_timestamp_seconds",
			Help: "End of the last tick of the loop, whatever its outcome, in Unix seconds.",
		}, []string{"loop"}),
		errors: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "attune_loop_errors_total",
			Help: "Ticks of the loop that failed, exceeded their deadline or panicked.",
		}, []string{"loop"}),
		duration: auto.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "attune_loop_duration_seconds",
			Help:    "Duration of a tick of the loop.",
			Buckets: []float64{0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60},
		}, []string{"loop"}),
	}
}

func (m *Metrics) observe(loop string, now time.Time, took time.Duration, err error) {
	m.lastTick.WithLabelValues(loop).Set(float64(now.UnixMilli()) / 1000)
	m.duration.WithLabelValues(loop).Observe(took.Seconds())
	counter := m.errors.WithLabelValues(loop) // exists from the first tick, at zero
	if err != nil {
		counter.Inc()
	}
}
