package worker

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics measures a worker.
type Metrics struct {
	ended    *prometheus.CounterVec // by status
	failed   *prometheus.CounterVec // by step
	lost     *prometheus.CounterVec // by step
	poison   prometheus.Counter
	dropped  prometheus.Counter
	inHand   prometheus.Gauge
	consumes prometheus.Gauge
}

// NewMetrics registers the metrics; with a nil registerer they are not exported.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	auto := promauto.With(registerer)
	return &Metrics{
		ended: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "attune_worker_executions_total", Help: "Executions this worker ended, by status.",
		}, []string{"status"}),
		failed: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "attune_worker_errors_total", Help: "Failed tries to start, finish or publish, which are retried.",
		}, []string{"step"}),
		lost: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "attune_worker_lost_races_total",
			Help: "Starts and ends that another program had written already.",
		}, []string{"step"}),
		poison: auto.NewCounter(prometheus.CounterOpts{
			Name: "attune_worker_poison_messages_total", Help: "Unreadable messages that were dead-lettered.",
		}),
		dropped: auto.NewCounter(prometheus.CounterOpts{
			Name: "attune_worker_messages_dropped_total",
			Help: "Messages dropped because too many waited for the broker; the engine's sweep finds their executions.",
		}),
		inHand: auto.NewGauge(prometheus.GaugeOpts{
			Name: "attune_worker_executions_in_hand",
			Help: "Executions that are running or whose end is not written yet.",
		}),
		consumes: auto.NewGauge(prometheus.GaugeOpts{
			Name: "attune_worker_consuming", Help: "1 while the worker consumes its queue, else 0.",
		}),
	}
}
