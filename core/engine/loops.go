package engine

import (
	"context"
	"time"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/inquiry"
	"github.com/attune-go/attune/core/liveness"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/retention"
	"github.com/attune-go/attune/core/supervise"
)

// loop is a service that ticks; it embeds a *supervise.Loop.
type loop interface {
	supervise.Service
	Watch(watch func(err error) time.Duration)
	Wake()
	LastSuccess() time.Time
	LastError() error
	SuccessTimeout() time.Duration
}

// addLoop adds a loop to the services and to the loops whose ticks are reported.
func (e *Engine) addLoop(name string, l loop) {
	e.loops[name] = l
	e.services.Add(name, l)
}

func (e *Engine) addGuards(view *alerting.Reader, probe *prober, metrics *supervise.Metrics) {
	e.addDeadLetters(metrics)
	e.addLiveness(metrics)
	e.addAlerts(view, probe, metrics)
	e.addRetention(metrics)
	e.addInquiries(metrics)
	e.addEvents(metrics)
}

func (e *Engine) addLiveness(metrics *supervise.Metrics) {
	cfg := e.cfg.Executor
	watched := liveness.NewMetrics(e.registry)
	heartbeats := liveness.NewHeartbeats(liveness.HeartbeatsConfig{
		Interval: cfg.HeartbeatCheckInterval, StaleAfter: cfg.StaleAfter(), Unsure: e.unsure,
	}, e.query, e.logger, watched, metrics)
	probes := liveness.NewProbes(liveness.ProbesConfig{
		Interval: cfg.HealthCheckInterval, StaleAfter: cfg.StaleAfter(), Replica: e.id,
		ByFailures: cfg.Health.ByFailures == "all", EndpointHosts: cfg.Health.EndpointHosts,
		Limits: placement.Limits{
			DegradedFailures: cfg.Health.DegradedFailures, UnhealthyFailures: cfg.Health.UnhealthyFailures,
			DegradedQueue: cfg.Health.DegradedQueue, UnhealthyQueue: cfg.Health.UnhealthyQueue,
			DegradedRate: cfg.Health.DegradedFailureRate, UnhealthyRate: cfg.Health.UnhealthyFailureRate,
		},
	}, e.query, e.broker, e.logger, watched, metrics)
	suspects := liveness.NewSuspects(e.query, e.broker, e.logger, metrics)
	e.addLoop("heartbeats", heartbeats)
	e.addLoop("probes", probes)
	e.addLoop("suspects", suspects)
}

// maxAnswers bounds the answers of one batch.
const maxAnswers = 100

// addInquiries adds the consumer of answers that other services received, and the watch over open
// inquiries.
func (e *Engine) addInquiries(metrics *supervise.Metrics) {
	measured := inquiry.NewMetrics(e.registry)
	settling := inquiry.Responses{Store: e.query, Relay: e.relay, Metrics: measured, Keys: e.keys}
	answers := e.newInbox(&inbox{
		queue: message.QueueInquiryResponses, kind: message.TypeInquiryResponded, what: "inquiry", source: "answers",
		most: maxAnswers, deleted: e.deletedFrom("inquiry"),
		read: func(body []byte) (int64, error) {
			envelope, err := message.Decode[message.InquiryResponded](body)
			return envelope.Payload.InquiryID, err
		},
		work: func(ctx context.Context, items []item) ([]int64, error) {
			announced := make([]inquiry.Announced, len(items))
			for i, it := range items {
				envelope, err := message.Decode[message.InquiryResponded](it.delivery.Body)
				if err != nil {
					return nil, err // cannot happen: it was read before
				}
				announced[i] = inquiry.Announced{Inquiry: it.execution, By: envelope.Payload.RespondedBy}
			}
			return settling.Settle(ctx, announced)
		},
	})
	watch := inquiry.NewWatch(inquiry.WatchConfig{Keys: e.keys}, e.query, e.relay, e.logger, measured, metrics)
	e.services.Add("answer consumer", answers.consumer)
	e.services.Add("answers", answers)
	e.addLoop("inquiries", watch)
}

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
	e.addLoop("partitions", partitions)
	e.addLoop("retention", queues)
	e.addLoop("retention rows", rows)
	e.addLoop("retention workers", workers)
	executions := retention.NewExecutions(retention.ExecutionsConfig{
		Executions: cfg.Executions, Audit: cfg.OperatorAudit, Events: e.cfg.Executor.MaxEventAge,
		OnlyOwn: e.cfg.Source("retention.executions") == "default", // adopted data is deleted only on request
	}, e.query, e.logger, measures, metrics)
	e.addLoop("retention executions", executions)
}
