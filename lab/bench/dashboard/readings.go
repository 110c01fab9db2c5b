package dashboard

import (
	"context"
	"time"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
)

// Reading is one read of the dashboard.
type Reading struct {
	Name string
	Read func(ctx context.Context) error
}

// only drops the result of a reading.
func only[T any](_ T, err error) error { return err }

// Busiest is the queue with half of the queued executions.
const Busiest = 1001

// Polls returns the readings that views repeat every two seconds, of all views together. The views of one
// object show the busiest queue, and the newest waiting, failed or running execution.
func Polls(m *alerting.Reader) []Reading {
	return []Reading{
		{"overview", func(ctx context.Context) error { return only(m.Overview(ctx)) }},
		{"queues", func(ctx context.Context) error { return only(m.Queues(ctx, monitor.QueueFilter{})) }},
		{"queue", func(ctx context.Context) error {
			return only(m.QueueDetail(ctx, explain.QueueRef{ID: Busiest}))
		}},
		{"queued executions of a queue", func(ctx context.Context) error {
			return only(m.QueueLine(ctx, monitor.LineAsk{Queue: Busiest}))
		}},
		{"executions", func(ctx context.Context) error {
			return only(m.Executions(ctx, monitor.ExecutionFilter{}, 0))
		}},
		{"workers", func(ctx context.Context) error { return only(m.Workers(ctx)) }},
		{"worker", func(ctx context.Context) error { return only(m.Worker(ctx, 8)) }},
		{"dlq", func(ctx context.Context) error { return only(m.DeadLetters(ctx)) }},
		{"alerts", func(ctx context.Context) error { return only(m.Alerts(ctx)) }},
		{"audit", func(ctx context.Context) error { return only(m.Audit(ctx, 0)) }},
		{"workflows", func(ctx context.Context) error {
			return only(m.WorkflowBoard(ctx, monitor.WorkflowFilter{}, 0))
		}},
		{"inquiries", func(ctx context.Context) error { return only(m.Inquiries(ctx, monitor.InquiryFilter{}, "")) }},
	}
}

// Looks returns the readings on demand: one object, or a filtered list or a later page.
func Looks(m *alerting.Reader, size Size) []Reading {
	last := int64(size.Executions)
	running := last - 2*int64(size.Queued) - 7
	one := func(name string, id int64) Reading {
		return Reading{name, func(ctx context.Context) error { return only(m.Execution(ctx, id)) }}
	}
	list := func(name string, cursor int64, filter monitor.ExecutionFilter) Reading {
		return Reading{name, func(ctx context.Context) error { return only(m.Executions(ctx, filter, cursor)) }}
	}
	workflows := func(name string, cursor int64, filter monitor.WorkflowFilter) Reading {
		return Reading{name, func(ctx context.Context) error { return only(m.WorkflowBoard(ctx, filter, cursor)) }}
	}
	inquiries := func(name string, filter monitor.InquiryFilter) Reading {
		return Reading{name, func(ctx context.Context) error { return only(m.Inquiries(ctx, filter, "")) }}
	}
	failed := []lifecycle.Status{lifecycle.StatusFailed, lifecycle.StatusTimeout}
	tenant := []monitor.ParamMatch{{Path: "tenant", Values: []string{"nothing"}}}
	return []Reading{
		one("execution that waits", last-last%2),
		one("execution that runs", running),
		one("execution that ended", last/2+1),
		list("executions, page in the middle", last/2, monitor.ExecutionFilter{}),
		list("executions, the oldest", 0, monitor.ExecutionFilter{Oldest: true}),
		list("executions, failed", 0, monitor.ExecutionFilter{Statuses: failed}),
		list("executions, failed, the oldest", 0, monitor.ExecutionFilter{Statuses: failed, Oldest: true}),
		list("executions, failed, a later page", last/2, monitor.ExecutionFilter{Statuses: failed}),
		list("executions, of an action", 0, monitor.ExecutionFilter{Action: "bench.action_1007"}),
		list("executions, by an expression", 0, monitor.ExecutionFilter{Match: []string{"^nothing"}, MinTries: 1}),
		list("executions, by a reason", 0, monitor.ExecutionFilter{Reasons: []string{"nothing"}}),
		list("executions, by a parameter", 0, monitor.ExecutionFilter{Params: tenant, WithParams: true}),
		list("executions that wait, by a parameter", 0, monitor.ExecutionFilter{
			Statuses: []lifecycle.Status{lifecycle.StatusRequested}, Params: tenant,
		}),
		{"executions, chosen by a parameter", func(ctx context.Context) error {
			return only(m.Choose(ctx, monitor.ExecutionFilter{Params: tenant}, 1_000))
		}},
		list("executions, of no action", 0, monitor.ExecutionFilter{Action: "nothing.like.this"}),
		{"dead letters", func(ctx context.Context) error {
			return only(m.LedgerList(ctx, monitor.DeadLetterFilter{}, 0))
		}},
		{"the last hour", func(ctx context.Context) error { return only(m.Past(ctx)) }},
		{"the last hour of a queue", func(ctx context.Context) error { return only(m.QueuesPast(ctx, Busiest)) }},
		{"the last hour of queues", func(ctx context.Context) error { return only(m.QueuesPast(ctx, 0)) }},
		{"the last hour of workers", func(ctx context.Context) error { return only(m.WorkersPast(ctx)) }},
		{"last executions of a queue", func(ctx context.Context) error {
			return only(m.QueueLine(ctx, monitor.LineAsk{Queue: Busiest, End: true}))
		}},
		{"checks", func(ctx context.Context) error { return only(m.Checks(ctx)) }},
		{"dead letters, statistics", func(ctx context.Context) error { return only(m.LedgerStats(ctx, time.Hour)) }},
		{"workflow", func(ctx context.Context) error {
			return only(m.WorkflowTree(ctx, monitor.WorkflowAsk{Execution: running - running%50 + 1 - 50}))
		}},
		workflows("workflows in trouble", 0, monitor.WorkflowFilter{Trouble: true}),
		workflows("workflows, of no action", 0, monitor.WorkflowFilter{Action: "nothing.like.this"}),
		workflows("workflows, by an expression", 0,
			monitor.WorkflowFilter{Match: []string{"^nothing"}, Errors: []string{"x"}}),
		workflows("workflows, a later page", last/2, monitor.WorkflowFilter{}),
		inquiries("inquiries, by an expression", monitor.InquiryFilter{Texts: []string{"nothing"}}),
		inquiries("inquiries in trouble", monitor.InquiryFilter{Trouble: true}),
		{"inquiry", func(ctx context.Context) error { return only(m.Inquiry(ctx, 1)) }},
	}
}
