package engine

import (
	"github.com/attune-go/attune/core/retention"
	"github.com/attune-go/attune/core/supervise"
)

// addRetention adds what removes what is kept for no reader any more.
func (e *Engine) addRetention(metrics *supervise.Metrics) {
	queues := retention.NewQueues(retention.QueuesConfig{Groups: e.cfg.Retention.GroupQueues}, e.query, e.logger, metrics)
	e.loops["retention"] = queues.Loop
	e.services.Add("retention", queues)
}
