package engine

import (
	"time"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/supervise"
)

// addGuards adds the loops of liveness, dead letters, alerts and retention, each to the services and
// to the loops whose ticks are reported.
func (e *Engine) addGuards(view *alerting.Reader, probe *prober, metrics *supervise.Metrics) {
	e.addDeadLetters(metrics)
	e.addLiveness(metrics)
	e.addAlerts(view, probe, metrics)
	e.addRetention(metrics)
	e.addInquiries(metrics)
	e.addEvents(metrics)
}

// unsure reports that heartbeats and ages prove nothing: the database was unreachable at times, or
// refused reports.
func (e *Engine) unsure() bool {
	return e.outages.Unsure() || e.gate.Unsure(e.cfg.Executor.StaleAfter())
}

// dispatchesDelayed reports that dispatches may not have reached workers yet: while the broker is away, and
// afterwards for as long as the delivery of the backlog may take.
func (e *Engine) dispatchesDelayed() bool {
	return e.broker.ConnectedFor() < min(time.Minute, e.cfg.Executor.ScheduledTimeout/2)
}
