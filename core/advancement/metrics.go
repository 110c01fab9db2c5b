package advancement

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics counts batches of workflows.
type Metrics struct {
	rounds   prometheus.Counter
	failures prometheus.Counter
	took     prometheus.Histogram
	begun    prometheus.Counter
	ended    *prometheus.CounterVec
	tasks    *prometheus.CounterVec
}

// NewMetrics registers the metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	auto := promauto.With(reg)
	m := &Metrics{
		rounds: auto.NewCounter(prometheus.CounterOpts{
			Name: "attune_workflow_rounds_total",
			Help: "Batches that advanced workflows.",
		}),
		failures: auto.NewCounter(prometheus.CounterOpts{
			Name: "attune_workflow_round_failures_total",
			Help: "Batches of workflows that failed and were retried.",
		}),
		took: auto.NewHistogram(prometheus.HistogramOpts{
			Name: "attune_workflow_round_seconds", Help: "Duration of a batch that advanced workflows.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
		}),
		begun: auto.NewCounter(prometheus.CounterOpts{
			Name: "attune_workflows_started_total",
			Help: "Started workflows.",
		}),
		ended: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "attune_workflows_ended_total", Help: "Ended workflows, by status.",
		}, []string{"status"}),
		tasks: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "attune_workflow_tasks_total",
			Help: "Children of workflows that were created, retried, or whose end was processed.",
		}, []string{"what"}),
	}
	for _, status := range []string{"completed", "failed", "cancelled", "timeout"} {
		m.ended.WithLabelValues(status)
	}
	for _, what := range []string{"made", "repeated", "settled"} {
		m.tasks.WithLabelValues(what)
	}
	return m
}

func (m *Metrics) batch(step *Step, took time.Duration) {
	m.rounds.Inc()
	m.took.Observe(took.Seconds())
	m.tasks.WithLabelValues("settled").Add(float64(len(step.closed)))
	for _, c := range step.advances {
		if c.phase == begins {
			m.begun.Inc()
		}
		if c.plan.End != nil {
			m.ended.WithLabelValues(string(c.plan.End.Status)).Inc()
		}
		m.tasks.WithLabelValues("made").Add(float64(len(c.newExecutions)))
		m.tasks.WithLabelValues("repeated").Add(float64(len(c.repeats)))
		m.tasks.WithLabelValues("settled").Add(float64(len(c.settle)))
	}
}
