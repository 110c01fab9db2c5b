package outbox

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/attune-go/attune/core/broker"
)

// Metrics measures the relay. A nil *Metrics measures nothing.
type Metrics struct {
	published *prometheus.CounterVec
	sweeps    prometheus.Counter
	left      prometheus.Counter
	given     prometheus.Counter
	waiting   prometheus.Gauge
	oldest    prometheus.Gauge
}

// NewMetrics registers the metrics of the relay.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		published: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "attune_outbox_messages_total", Help: "Messages the relay tried to publish, by what the broker said.",
		}, []string{"outcome"}),
		sweeps: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "attune_outbox_swept_total", Help: "Messages that a sweep took because nobody had published them.",
		}),
		left: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "attune_outbox_left_total",
			Help: "Messages left to the sweep because too many were pending in memory.",
		}),
		given: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "attune_outbox_lost_rows_total",
			Help: "Rows that another replica claimed because this one stood still for longer than its lease.",
		}),
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "attune_outbox_messages", Help: "Messages in the outbox at the last sweep.",
		}),
		oldest: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "attune_outbox_oldest_seconds", Help: "Age of the oldest outbox row at the last sweep.",
		}),
	}
	reg.MustRegister(m.published, m.sweeps, m.left, m.given, m.waiting, m.oldest)
	return m
}

func (m *Metrics) outcomes(outcomes []broker.Outcome) {
	if m == nil {
		return
	}
	for _, outcome := range outcomes {
		m.published.WithLabelValues(outcome.Status.String()).Inc()
	}
}

func (m *Metrics) swept(n int) {
	if m != nil {
		m.sweeps.Add(float64(n))
	}
}

func (m *Metrics) leftToSweep(n int) {
	if m != nil {
		m.left.Add(float64(n))
	}
}

func (m *Metrics) lost(rows int) {
	if m != nil {
		m.given.Add(float64(rows))
	}
}

func (m *Metrics) backlog(messages int64, oldest float64) {
	if m != nil {
		m.waiting.Set(float64(messages))
		m.oldest.Set(oldest)
	}
}
