package worker

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/attune-go/attune/core/lifecycle"
)

// Metrics measures a worker. A nil *Metrics measures nothing.
type Metrics struct {
	endings  *prometheus.CounterVec
	errors   *prometheus.CounterVec
	races    *prometheus.CounterVec
	poisoned prometheus.Counter
	forgone  prometheus.Counter
	inHand   prometheus.Gauge
	consumes prometheus.Gauge
}

// NewMetrics registers the metrics; with a nil registerer they are not exported.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	m := &Metrics{
		endings: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "attune_worker_executions_total",
			Help: "Executions this worker ended, by status.",
		}, []string{"status"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "attune_worker_errors_total",
			Help: "Failed tries to start, finish or publish, which are retried.",
		}, []string{"step"}),
		races: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "attune_worker_lost_races_total",
			Help: "Starts and ends that another program had written already.",
		}, []string{"step"}),
		poisoned: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "attune_worker_poison_messages_total",
			Help: "Unreadable messages that were dead-lettered.",
		}),
		forgone: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "attune_worker_messages_dropped_total",
			Help: "Messages dropped because too many waited for the broker; the engine's sweep finds their executions.",
		}),
		inHand: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "attune_worker_executions_in_hand",
			Help: "Executions that are running or whose end is not written yet.",
		}),
		consumes: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "attune_worker_consuming",
			Help: "1 while the worker consumes its queue, else 0.",
		}),
	}
	if registerer != nil {
		registerer.MustRegister(m.endings, m.errors, m.races, m.poisoned, m.forgone, m.inHand, m.consumes)
	}
	return m
}

func (m *Metrics) ended(status lifecycle.Status) {
	if m != nil {
		m.endings.WithLabelValues(string(status)).Inc()
	}
}

func (m *Metrics) failed(step string) {
	if m != nil {
		m.errors.WithLabelValues(step).Inc()
	}
}

func (m *Metrics) lost(step string) {
	if m != nil {
		m.races.WithLabelValues(step).Inc()
	}
}

func (m *Metrics) poison() {
	if m != nil {
		m.poisoned.Inc()
	}
}

func (m *Metrics) dropped(n int) {
	if m != nil {
		m.forgone.Add(float64(n))
	}
}

func (m *Metrics) beat(inHand int, consuming bool) {
	if m == nil {
		return
	}
	m.inHand.Set(float64(inHand))
	m.consumes.Set(map[bool]float64{true: 1}[consuming])
}
