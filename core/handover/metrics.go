package handover

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts what rounds do. A nil *Metrics counts nothing.
type Metrics struct {
	rounds   prometheus.Counter
	repeated prometheus.Counter
	granted  prometheus.Counter
	released prometheus.Counter
	enqueued prometheus.Counter
	ended    prometheus.Counter
}

// NewMetrics registers the metrics of rounds.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		reg.MustRegister(c)
		return c
	}
	return &Metrics{
		rounds:   counter("attune_rounds_total", "Committed rounds of claiming, admitting and releasing."),
		repeated: counter("attune_rounds_repeated_total", "Rounds run again because a row, queue or worker changed meanwhile."),
		granted:  counter("attune_executions_handed_over_total", "Executions admitted and handed to a worker."),
		released: counter("attune_slots_released_total", "Slots given back by terminal executions."),
		enqueued: counter("attune_executions_enqueued_total", "Executions that began to wait for a slot."),
		ended:    counter("attune_executions_ended_by_engine_total", "Executions ended by the engine's own decision before any worker had them."),
	}
}

func (m *Metrics) observe(r Result, attempts int) {
	if m == nil {
		return
	}
	m.rounds.Inc()
	m.repeated.Add(float64(attempts - 1))
	m.granted.Add(float64(r.Granted))
	m.released.Add(float64(r.Released))
	m.enqueued.Add(float64(r.Enqueued))
	m.ended.Add(float64(r.Ended))
}
