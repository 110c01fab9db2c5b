package engine

import (
	"github.com/attune-go/attune/core/liveness"
	"github.com/attune-go/attune/core/supervise"
)

// addLiveness adds what judges whether workers are there.
func (e *Engine) addLiveness(metrics *supervise.Metrics) {
	suspects := liveness.NewSuspects(e.query, e.broker, e.logger, metrics)
	e.loops["suspects"] = suspects.Loop
	e.services.Add("suspects", suspects)
}
