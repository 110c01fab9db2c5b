package engine

import (
	"github.com/attune-go/attune/core/liveness"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/supervise"
)

// addLiveness adds the loops that check the workers.
func (e *Engine) addLiveness(metrics *supervise.Metrics) {
	cfg := e.cfg.Executor
	watched := liveness.NewMetrics(e.registry)
	heartbeats := liveness.NewHeartbeats(liveness.HeartbeatsConfig{
		Interval: cfg.HeartbeatCheckInterval, StaleAfter: cfg.StaleAfter(), Unsure: e.unsure,
	}, e.query, e.logger, watched, metrics)
	probes := liveness.NewProbes(liveness.ProbesConfig{
		Interval: cfg.HealthCheckInterval, StaleAfter: cfg.StaleAfter(), Replica: e.id,
		ByFailures: cfg.Health.ByFailures == "all",
		Limits: placement.Limits{
			DegradedFailures: cfg.Health.DegradedFailures, UnhealthyFailures: cfg.Health.UnhealthyFailures,
			DegradedQueue: cfg.Health.DegradedQueue, UnhealthyQueue: cfg.Health.UnhealthyQueue,
			DegradedRate: cfg.Health.DegradedFailureRate, UnhealthyRate: cfg.Health.UnhealthyFailureRate,
		},
	}, e.query, e.broker, e.logger, watched, metrics)
	suspects := liveness.NewSuspects(e.query, e.broker, e.logger, metrics)
	e.loops["heartbeats"], e.loops["probes"], e.loops["suspects"] = heartbeats.Loop, probes.Loop, suspects.Loop
	e.services.Add("heartbeats", heartbeats)
	e.services.Add("probes", probes)
	e.services.Add("suspects", suspects)
}
