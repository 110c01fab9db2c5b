package eventing

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Outcomes of matching an event with a rule, as the metric names them.
const (
	outcomeFired    = "fired"    // an enforcement requests an execution
	outcomeDisabled = "disabled" // it fired and failed
	outcomeNoMatch  = "no_match"
	outcomeFailed   = "failed" // its expression failed
)

// Metrics measures the matching.
type Metrics struct {
	events    prometheus.Counter
	repeated  prometheus.Counter
	rules     *prometheus.CounterVec
	age       prometheus.Histogram
	forgotten *prometheus.CounterVec
}

// NewMetrics registers the metrics of events.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	auto := promauto.With(reg)
	m := &Metrics{
		events: auto.NewCounter(prometheus.CounterOpts{
			Name: "attune_events_matched_total", Help: "Events that were matched with the rules.",
		}),
		repeated: auto.NewCounter(prometheus.CounterOpts{
			Name: "attune_events_repeated_total",
			Help: "Deliveries of events that were matched before.",
		}),
		rules: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "attune_event_rules_total", Help: "Matches of an event with a rule, by outcome.",
		}, []string{"outcome"}),
		age: auto.NewHistogram(prometheus.HistogramOpts{
			Name: "attune_event_age_seconds", Help: "Age of events when they were matched.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 12),
		}),
		forgotten: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "attune_events_forgotten_total",
			Help: "Events and enforcements that the sweep found because their message was lost or late.",
		}, []string{"kind"}),
	}
	for _, outcome := range []string{outcomeFired, outcomeDisabled, outcomeNoMatch, outcomeFailed} {
		m.rules.WithLabelValues(outcome)
	}
	for _, kind := range []string{"event", "enforcement"} {
		m.forgotten.WithLabelValues(kind)
	}
	return m
}

// report measures a batch, and logs each failing rule once.
func (b *batch) report(ctx context.Context) {
	b.measure()
	for _, c := range b.rules {
		switch {
		case c.failedFires > 0:
			b.logger.WarnContext(ctx, "Rule fired and failed", "rule_ref", c.row.Ref, "events", c.failedFires, "reason",
				c.why)
		case c.failedEvents > 0:
			// Usual for a rule about an optional field; the reason is stored.
			b.logger.DebugContext(ctx, "Conditions of a rule not evaluated", "rule_ref", c.row.Ref, "events",
				c.failedEvents, "reason", c.why)
		}
	}
	if b.result.Created+b.result.Disabled > 0 {
		b.logger.DebugContext(ctx, "Events matched", "events", b.result.Events,
			"enforcements", b.result.Created, "disabled", b.result.Disabled)
	}
}

func (b *batch) measure() {
	m := b.metrics
	m.events.Add(float64(b.result.Events))
	m.repeated.Add(float64(b.result.Repeated))
	if b.result.Events == 0 {
		return
	}
	compared, fired, failed := 0, 0, 0
	for _, e := range b.fresh() {
		compared, fired, failed = compared+e.rules, fired+e.matched, failed+e.failed
		m.age.Observe(max(time.Since(e.row.Created).Seconds(), 0))
	}
	m.rules.WithLabelValues(outcomeFired).Add(float64(b.result.Created))
	m.rules.WithLabelValues(outcomeDisabled).Add(float64(b.result.Disabled))
	m.rules.WithLabelValues(outcomeFailed).Add(float64(failed))
	m.rules.WithLabelValues(outcomeNoMatch).Add(float64(max(compared-fired-failed, 0)))
}
