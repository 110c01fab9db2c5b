package engine

import (
	"github.com/attune-go/attune/core/retention"
	"github.com/attune-go/attune/core/supervise"
)

// addRetention adds the loops that delete expired data and create the partitions of the next days.
func (e *Engine) addRetention(metrics *supervise.Metrics) {
	cfg, measures := e.cfg.Retention, retention.NewMetrics(e.registry)
	partitions := retention.NewPartitions(retention.PartitionsConfig{History: cfg.History, Events: cfg.Events}, e.query,
		e.logger, measures, metrics)
	queues := retention.NewQueues(retention.QueuesConfig{Groups: cfg.GroupQueues}, e.query, e.logger, measures, metrics)
	rows := retention.NewRows(retention.RowsConfig{
		History: cfg.History, DeadLetters: e.cfg.MessageQueue.RabbitMQ.DeadLetter.TTL,
	}, e.query, e.logger, measures, metrics)
	workers := retention.NewWorkers(retention.WorkersConfig{Silent: cfg.InactiveWorkers}, e.query, e.broker, e.logger,
		measures, metrics)
	e.loops["partitions"], e.loops["retention"] = partitions.Loop, queues.Loop
	e.loops["retention rows"], e.loops["retention workers"] = rows.Loop, workers.Loop
	e.services.Add("partitions", partitions)
	e.services.Add("retention", queues)
	e.services.Add("retention rows", rows)
	e.services.Add("retention workers", workers)
	executions := retention.NewExecutions(retention.ExecutionsConfig{
		Executions: cfg.Executions, Audit: cfg.OperatorAudit, Events: e.cfg.Executor.MaxEventAge,
		OnlyOwn: e.cfg.Source("retention.executions") == "default", // adopted data is deleted only on request
	}, e.query, e.logger, measures, metrics)
	e.loops["retention executions"] = executions.Loop
	e.services.Add("retention executions", executions)
}
