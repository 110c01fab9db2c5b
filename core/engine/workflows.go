package engine

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/attune-go/attune/core/advancement"
	"github.com/attune-go/attune/core/batch"
	"github.com/attune-go/attune/core/recovery"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

// addWorkflows adds the services that advance workflows; stopped is called when tasks shall end.
func (e *Engine) addWorkflows(sched *scheduler.Scheduler, stopped func(), metrics *supervise.Metrics) {
	cfg := advancement.Config{
		ActionTimeouts: e.cfg.Executor.HonourActionTimeoutSeconds, Keys: e.keys, Gate: e.gate, Stopped: stopped,
	}
	e.workflows = advancement.NewRunner(cfg, sched, classifyWorkflows, e.handleResult, e.logger,
		advancement.NewMetrics(e.registry))
	auto := promauto.With(e.registry)
	auto.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "attune_workflow_orders_waiting", Help: "Workflows that wait until this replica advances them.",
	}, func() float64 { return float64(e.workflows.Waiting()) })
	auto.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "attune_workflows_stuck", Help: "Workflows that this replica could neither advance nor end.",
	}, func() float64 { return float64(e.workflows.Stuck()) })
	sweep := advancement.NewSweep(cfg, workflowSweep, e.query, e.workflows.Recheck,
		func(ctx context.Context, ended []int64) error {
			return e.hot.Submit(ctx, recovery.Found{Ended: ended})
		}, e.logger, metrics)
	e.hot.workflows, e.loops["workflows"] = e.workflows, sweep
	e.services.Add("workflows", e.workflows)
	e.services.Add("workflow sweep", sweep)
}

// recheckStopped advances the workflows among executions that another program cancelled. If that fails, the sweep finds
// them.
func (e *Engine) recheckStopped(ctx context.Context, executions []int64) {
	workflows, err := e.query.OpenWorkflowsOf(ctx, executions)
	if err != nil {
		e.logger.WarnContext(ctx, "Workflows of cancelled executions not read", "executions", len(executions), "error", err)
		return
	}
	e.workflows.Recheck(workflows...)
}

// workflowSweep is the interval between reads of the open workflows.
const workflowSweep = 5 * time.Second

// classifyWorkflows distinguishes slow workflows from workflows whose rows are locked.
func classifyWorkflows(err error, tries int) batch.Verdict {
	verdict := classify(err, tries)
	if verdict == batch.Blocked && !store.IsLockTimeout(err) {
		return batch.Slow
	}
	return verdict
}

// handleResult handles the result of a batch outside of the hot loop: workflows, retries, and
// unfilled queues.
func (e *Engine) handleResult(ctx context.Context, result scheduler.Result) {
	e.workflows.Begin(result.Starts...)
	e.workflows.Advance(result.Tasks...)
	e.hot.repeated(ctx, result)
	if result.Wake > 0 {
		e.hot.wake.after(result.Wake, time.Now())
	}
	e.hot.fill(result)
}
