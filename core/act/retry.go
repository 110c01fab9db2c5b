package act

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/triage"
)

// A retry of an execution, of a whole workflow, and of a task of one.
const (
	RetryExecution Kind = "execution.retry"
	RetryWorkflow  Kind = "workflow.retry"
	RetryTask      Kind = "task.retry"
)

var (
	_ = declare(RetryExecution, about{
		key: "r", label: "retry", help: "repeat it as a new execution", many: "repeat ended ones as new executions",
		command: "execution retry", reason: "--reason", plan: (*Operator).planRetry,
	})
	_ = declare(RetryWorkflow, about{
		key: "r", label: "retry", help: "all of it, as a new execution",
		many: "all tasks of ended ones, as new executions", command: "execution retry", reason: "--reason",
		plan: (*Operator).planRetry,
	})
	_ = declare(RetryTask, about{
		key: "r", label: "retry", help: "repeat it as a new execution", command: "execution retry", reason: "--reason",
		plan: (*Operator).planRetry,
	})
)

// planRetry plans to retry an ended execution, workflow or task.
func (o *Operator) planRetry(ctx context.Context, request Request, plan *Plan) error {
	id := request.Target.ID
	plan.Run = does(func(ctx context.Context, reason string) (*triage.RetryReceipt, error) {
		return o.triage.RetryExecution(ctx, id, reason)
	}, func(r *triage.RetryReceipt) *Receipt {
		return &Receipt{Text: repeated(r), Opens: r.Execution, Audits: audits(r.Audit), Sent: r.Sent}
	})
	if request.Direct {
		return nil
	}
	attempts, err := o.reader.Attempts(ctx, id)
	if errors.Is(err, monitor.ErrNotFound) {
		return missing(&request)
	}
	if err != nil {
		return err
	}
	detail, err := o.reader.Execution(ctx, id)
	if err != nil {
		return err
	}
	facts := explain.RetryFacts{Execution: &detail.Execution, Attempts: attempts}
	if request.Kind != RetryTask && detail.Parent != nil { // heardLine says more about tasks
		parent, err := o.reader.Execution(ctx, *detail.Parent)
		switch {
		case err == nil:
			facts.Parent = &parent.Execution
		case !errors.Is(err, monitor.ErrNotFound):
			return err
		}
	}
	assessed := explain.EvaluateRetry(facts)
	plan.Lines.Add(Plain, "%s ended as %s; %s so far.", detail.ActionRef, detail.Status,
		phrase.Plural(len(attempts), "attempt", "attempts"))
	if why := explain.Refusal(assessed); why != "" {
		return refuse(Refused, "%s", why)
	}
	plan.Lines.Add(Plain,
		"A new execution with the same parameters is requested at once; it joins its queue like any other.")
	plan.Lines.Add(Note, "This one stays as it is. The limit of retries binds the engine, not people.")
	for _, c := range assessed {
		if c.Standing == explain.RetryMinded {
			plan.Lines.Add(Warn, "%s", sentence(c.Text))
		}
	}
	if err := o.sayPaused(ctx, &plan.Lines, map[string]bool{detail.ActionRef: true}); err != nil {
		return err
	}
	switch {
	case request.Kind == RetryWorkflow:
		plan.Lines.Add(Warn, "All its tasks run again, also completed ones.")
	case request.Kind == RetryTask && detail.Parent != nil:
		d, err := o.reader.Workflow(ctx, *detail.Parent)
		if _, none := errors.AsType[*monitor.NoWorkflowError](err); none || errors.Is(err, monitor.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		plan.Lines = append(plan.Lines, heardLine(d, id))
	}
	return nil
}

func repeated(r *triage.RetryReceipt) string {
	return fmt.Sprintf("Execution %d repeats %s of %s as attempt %d.", r.Execution,
		strconv.FormatInt(r.Failed, 10), r.ActionRef, r.Attempt)
}
