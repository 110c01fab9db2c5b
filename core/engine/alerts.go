package engine

import (
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/supervise"
)

// addAlerts adds what raises alerts.
func (e *Engine) addAlerts(_ *monitor.Monitor, _ *supervise.Metrics) {}
