package scheduler

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics counts what batches do.
type Metrics struct {
	batches       prometheus.Counter
	repeated      prometheus.Counter
	granted       prometheus.Counter
	released      prometheus.Counter
	enqueued      prometheus.Counter
	ended         prometheus.Counter
	moved         prometheus.Counter
	contradicting prometheus.Counter
	again         *prometheus.CounterVec
	refused       *prometheus.CounterVec
	waits         *prometheus.HistogramVec
	runs          *prometheus.HistogramVec
	latency       prometheus.Histogram

	mu      sync.Mutex
	actions map[string]bool
}

// maxActions bounds the actions with a label of their own; the others share one.
const maxActions = 200

// label returns the action's reference, or "other" beyond the bound.
func (m *Metrics) label(ref string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.actions[ref] {
		if len(m.actions) >= maxActions {
			return "other"
		}
		m.actions[ref] = true
	}
	return ref
}

func (m *Metrics) waited(ref string, took time.Duration) {
	m.waits.WithLabelValues(m.label(ref)).Observe(max(took.Seconds(), 0))
}

func (m *Metrics) ran(ref string, took, latency time.Duration) {
	m.latency.Observe(max(latency.Seconds(), 0))
	m.runs.WithLabelValues(m.label(ref)).Observe(max(took.Seconds(), 0))
}

// NewMetrics registers the metrics of batches.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	auto := promauto.With(reg)
	counter := func(name, help string) prometheus.Counter {
		return auto.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	times := func(name, help string) *prometheus.HistogramVec {
		return auto.NewHistogramVec(prometheus.HistogramOpts{
			Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(0.005, 3, 14),
		}, []string{"action"})
	}
	return &Metrics{
		latency: auto.NewHistogram(prometheus.HistogramOpts{
			Name:    "attune_requested_to_running_seconds",
			Help:    "Time from the request of an execution to its start at a worker, observed at its end.",
			Buckets: prometheus.ExponentialBuckets(0.005, 3, 14),
		}),
		again: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "attune_executions_repeated_total", Help: "Retries of ended executions, by reason.",
		}, []string{"reason"}),
		moved: counter("attune_executions_moved_total",
			"Executions moved to another worker before they started, in place."),
		contradicting: counter("attune_completions_contradicting_total",
			"Reports of another end than the row's; the row decides."),
		actions: make(map[string]bool),
		refused: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "attune_executions_refused_total",
			Help: "Executions ended before their start: their queue was full, a policy does not let them wait, " +
				"or they waited too long.",
		}, []string{"reason"}),
		waits:   times("attune_queue_wait_seconds", "Time from the request of an execution to its admission."),
		runs:    times("attune_queue_run_seconds", "Time from the start of an execution at its worker to its end."),
		batches: counter("attune_rounds_total", "Committed batches."),
		repeated: counter("attune_rounds_repeated_total",
			"Batches run again because a row, queue or worker changed meanwhile."),
		granted:  counter("attune_executions_handed_over_total", "Executions admitted and dispatched to a worker."),
		released: counter("attune_slots_released_total", "Slots released by ended executions."),
		enqueued: counter("attune_executions_enqueued_total", "Executions that began to wait for a slot."),
		ended: counter("attune_executions_ended_by_engine_total",
			"Executions that the engine ended before any worker received them."),
	}
}

func (m *Metrics) observe(r Result, attempts int) {
	m.batches.Inc()
	m.repeated.Add(float64(attempts - 1))
	m.granted.Add(float64(r.Granted))
	m.released.Add(float64(r.Released))
	m.enqueued.Add(float64(r.Enqueued))
	m.ended.Add(float64(r.Ended))
	m.moved.Add(float64(r.Moved))
	for _, row := range r.Repeated {
		m.again.WithLabelValues(row.RetryReason).Inc()
	}
}
