package outbox

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/attune-go/attune/core/broker"
)

// Metrics measures the relay.
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
	auto := promauto.With(reg)
	return &Metrics{
		published: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "attune_outbox_messages_total", Help: "Messages that the relay tried to publish, by outcome.",
		}, []string{"outcome"}),
		sweeps: auto.NewCounter(prometheus.CounterOpts{
			Name: "attune_outbox_swept_total",
			Help: "Messages that a sweep claimed because no replica had published them.",
		}),
		left: auto.NewCounter(prometheus.CounterOpts{
			Name: "attune_outbox_left_total",
			Help: "Messages left to the sweep because too many were pending in memory.",
		}),
		given: auto.NewCounter(prometheus.CounterOpts{
			Name: "attune_outbox_lost_rows_total",
			Help: "Rows that another replica claimed because this one did not renew its lease in time.",
		}),
		waiting: auto.NewGauge(prometheus.GaugeOpts{
			Name: "attune_outbox_messages", Help: "Messages in the outbox at the last sweep.",
		}),
		oldest: auto.NewGauge(prometheus.GaugeOpts{
			Name: "attune_outbox_oldest_seconds", Help: "Age of the oldest outbox row at the last sweep.",
		}),
	}
}

func (m *Metrics) outcomes(outcomes []broker.Outcome) {
	for _, outcome := range outcomes {
		m.published.WithLabelValues(outcome.Status.String()).Inc()
	}
}

func (m *Metrics) backlog(messages int64, oldest float64) {
	m.waiting.Set(float64(messages))
	m.oldest.Set(oldest)
}
