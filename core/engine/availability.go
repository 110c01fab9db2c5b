package engine

import (
	"time"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/supervise"
)

// guards adds the loops that watch over workers, dead letters, alerts and what is
// kept, each to the services and to the loops whose ticks are shown.
func (e *Engine) guards(view *alerting.Reader, probe *prober, metrics *supervise.Metrics) {
	e.addDeadLetters(metrics)
	e.addLiveness(metrics)
	e.addAlerts(view, probe, metrics)
	e.addRetention(metrics)
	e.addInquiries(metrics)
	e.addEvents(metrics)
}

// unsure reports that silence and age say nothing: the database was not there all the
// time, or did not take everybody's reports.
func (e *Engine) unsure() bool { return e.sight.Blind() || e.gate.Unsure(e.cfg.Executor.StaleAfter()) }

// blind reports that hand-overs may not have reached workers yet: while the broker
// is away, and for as long afterwards as it may take to send them what has
// gathered.
func (e *Engine) blind() bool {
	return e.broker.ConnectedFor() < min(time.Minute, e.cfg.Executor.ScheduledTimeout/2)
}
