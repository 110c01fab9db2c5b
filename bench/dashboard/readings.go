package dashboard

import (
	"context"
	"time"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/monitor"
)

// Reading is one thing that the dashboard asks for.
type Reading struct {
	Name string
	Read func(ctx context.Context) error
}

// Busiest is the queue in which half of those who wait are.
const Busiest = 1001

// Polls are the readings that views repeat every two seconds, all views taken
// together; no dashboard has all of them open at once. Of the views of one thing
// it is the busiest queue, and the newest execution that waits, fails or runs.
func Polls(m *alerting.Reader) []Reading {
	return []Reading{
		reading("overview", func(ctx context.Context) (*alerting.Overview, error) { return m.Overview(ctx) }),
		reading("queues",
			func(ctx context.Context) (*monitor.Queues, error) { return m.Queues(ctx, monitor.QueueFilter{}) }),
		reading("queue", func(ctx context.Context) (*explain.QueueDetail, error) {
			return m.QueueDetail(ctx, explain.QueueRef{ID: Busiest})
		}),
		reading("line of a queue", func(ctx context.Context) (*monitor.Line, error) {
			return m.QueueLine(ctx, monitor.LineAsk{Queue: Busiest})
		}),
		reading("executions", func(ctx context.Context) (*monitor.Executions, error) {
			return m.Executions(ctx, monitor.ExecutionFilter{}, 0)
		}),
		reading("workers", m.Workers),
		reading("worker", func(ctx context.Context) (*monitor.WorkerDetail, error) { return m.Worker(ctx, 8) }),
		reading("dlq", m.DeadLetters),
		reading("alerts", m.Alerts),
		reading("audit", func(ctx context.Context) (*monitor.Audit, error) { return m.Audit(ctx, 0) }),
		reading("workflows", func(ctx context.Context) (*monitor.WorkflowBoard, error) {
			return m.WorkflowBoard(ctx, monitor.WorkflowFilter{}, 0)
		}),
		reading("inquiries", func(ctx context.Context) (*monitor.InquiryPage, error) {
			return m.Inquiries(ctx, monitor.InquiryFilter{}, "")
		}),
	}
}

// Looks are the readings that somebody asks for now and then: one thing, or a list
// that is filtered or turned to a later page.
func Looks(m *alerting.Reader, size Size) []Reading {
	last := int64(size.Executions)
	running := last - 2*int64(size.Queued) - 7
	list := func(name string, cursor int64, filter monitor.ExecutionFilter) Reading {
		return reading(name,
			func(ctx context.Context) (*monitor.Executions, error) { return m.Executions(ctx, filter, cursor) })
	}
	failed := monitor.ExecutionFilter{Statuses: []attune.Status{attune.StatusFailed, attune.StatusTimeout}}
	one := func(name string, id int64) Reading {
		return reading(name,
			func(ctx context.Context) (*monitor.ExecutionDetail, error) { return m.Execution(ctx, id) })
	}
	return []Reading{
		one("execution that waits", last-last%2),
		one("execution that runs", running),
		one("execution that ended", last/2+1),
		list("executions, page in the middle", last/2, monitor.ExecutionFilter{}),
		list("executions, the oldest", 0, monitor.ExecutionFilter{Oldest: true}),
		list("executions, failed", 0, failed),
		list("executions, failed, the oldest", 0, monitor.ExecutionFilter{Statuses: failed.Statuses, Oldest: true}),
		list("executions, failed, a later page", last/2, failed),
		list("executions, of an action", 0, monitor.ExecutionFilter{Action: "bench.action_1007"}),
		list("executions, by an expression", 0, monitor.ExecutionFilter{Match: []string{"^nothing"}, MinTries: 1}),
		list("executions, by a reason", 0, monitor.ExecutionFilter{Reasons: []string{"nothing"}}),
		list("executions, by a parameter", 0,
			monitor.ExecutionFilter{Params: []monitor.ParamMatch{{Path: "tenant", Values: []string{"nothing"}}},
				WithParams: true}),
		list("executions that wait, by a parameter", 0, monitor.ExecutionFilter{
			Statuses: []attune.Status{attune.StatusRequested},
			Params:   []monitor.ParamMatch{{Path: "tenant", Values: []string{"nothing"}}},
		}),
		reading("executions, chosen by a parameter", func(ctx context.Context) (*monitor.Chosen, error) {
			return m.Choose(ctx,
				monitor.ExecutionFilter{Params: []monitor.ParamMatch{{Path: "tenant", Values: []string{"nothing"}}}},
				1_000)
		}),
		list("executions, of no action", 0, monitor.ExecutionFilter{Action: "nothing.like.this"}),
		reading("letters", func(ctx context.Context) (*monitor.LedgerPage, error) {
			return m.LedgerList(ctx, monitor.DeadLetterFilter{}, 0)
		}),
		reading("the last hour", m.Past),
		reading("the last hour of a queue",
			func(ctx context.Context) (*monitor.QueuesPast, error) { return m.QueuesPast(ctx, Busiest) }),
		reading("the last hour of queues",
			func(ctx context.Context) (*monitor.QueuesPast, error) { return m.QueuesPast(ctx, 0) }),
		reading("the last hour of workers", m.WorkersPast),
		reading("end of the line of a queue", func(ctx context.Context) (*monitor.Line, error) {
			return m.QueueLine(ctx, monitor.LineAsk{Queue: Busiest, End: true})
		}),
		reading("checks", m.Checks),
		reading("letters, statistics",
			func(ctx context.Context) (*monitor.LedgerStats, error) { return m.LedgerStats(ctx, time.Hour) }),
		reading("workflow", func(ctx context.Context) (*monitor.WorkflowDetail, error) {
			return m.WorkflowTree(ctx, monitor.WorkflowAsk{Execution: running - running%50 + 1 - 50})
		}),
		reading("workflows in trouble", func(ctx context.Context) (*monitor.WorkflowBoard, error) {
			return m.WorkflowBoard(ctx, monitor.WorkflowFilter{Trouble: true}, 0)
		}),
		reading("workflows, of no action", func(ctx context.Context) (*monitor.WorkflowBoard, error) {
			return m.WorkflowBoard(ctx, monitor.WorkflowFilter{Action: "nothing.like.this"}, 0)
		}),
		reading("workflows, by an expression", func(ctx context.Context) (*monitor.WorkflowBoard, error) {
			return m.WorkflowBoard(ctx, monitor.WorkflowFilter{Match: []string{"^nothing"}, Errors: []string{"x"}}, 0)
		}),
		reading("workflows, a later page", func(ctx context.Context) (*monitor.WorkflowBoard, error) {
			return m.WorkflowBoard(ctx, monitor.WorkflowFilter{}, last/2)
		}),
		reading("inquiries, by an expression", func(ctx context.Context) (*monitor.InquiryPage, error) {
			return m.Inquiries(ctx, monitor.InquiryFilter{Texts: []string{"nothing"}}, "")
		}),
		reading("inquiries in trouble", func(ctx context.Context) (*monitor.InquiryPage, error) {
			return m.Inquiries(ctx, monitor.InquiryFilter{Trouble: true}, "")
		}),
		reading("inquiry", func(ctx context.Context) (*monitor.InquiryDetail, error) { return m.Inquiry(ctx, 1) }),
	}
}

// reading binds a method of the monitor whose answer does not matter.
func reading[T any](name string, read func(context.Context) (*T, error)) Reading {
	return Reading{Name: name, Read: func(ctx context.Context) error {
		_, err := read(ctx)
		return err
	}}
}
