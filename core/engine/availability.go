package engine

import (
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/supervise"
)

// guards adds the loops that watch over workers, dead letters, alerts and what is
// kept, each to the services and to the loops whose ticks are shown.
func (e *Engine) guards(view *monitor.Monitor, metrics *supervise.Metrics) {
	e.addDeadLetters(metrics)
	e.addLiveness(metrics)
	e.addAlerts(view, metrics)
	e.addRetention(metrics)
}
