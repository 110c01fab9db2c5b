package act

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/lifecycle"
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
	_ = declare(RetryExecution, Act{
		Key: "r", Label: "retry", Help: "repeat it as a new execution", Many: "repeat ended ones as new executions",
		Command: Command{
			Group: "execution", Use: "retry ID... | retry --param NAME=VALUE...", Takes: TakesIDs,
			Short: "Repeat ended executions, each as a new execution",
			Long: "Repeat ended executions, whatever their status and however often they were repeated before. Each\n" +
				"retry is a new execution with the same parameters; the old one stays as it is and can be repeated\n" +
				"once: repeat the newest attempt instead. With several ids, all possible ones are repeated; the exit\n" +
				"code reports refusals.\n\n" +
				"Without ids the flags choose: all executions that match, of the statuses failed, timeout and abandoned\n" +
				"unless --status says otherwise, at most 10000 at once, of the newest 50000. The command asks first;\n" +
				"--dry-run counts them.",
			Example: "  attune-executor execution retry 42 --reason 'the disk is free again'\n" +
				"  attune-executor execution retry 42 43 44 -o json\n" +
				"  attune-executor execution retry --action shop.bill --since 1h -p tenant=t7 --dry-run",
			Chooses: []lifecycle.Status{lifecycle.StatusFailed, lifecycle.StatusTimeout, lifecycle.StatusAbandoned},
			Reason:  "the reason, for the audit", DryRun: dryChoice, Yes: yesChoice, Counts: true,
			Sends: true, Done: "repeated", Results: "retried",
		},
		Route:  Route{Path: "executions/{id}/retry"},
		offers: []offer{in("execution", 1, retryFits)}, plan: (*Operator).planRetry,
	})
	_ = declare(RetryWorkflow, Act{
		Key: "r", Label: "retry", Help: "all of it, as a new execution", Many: "all tasks of ended ones, as new executions",
		Command: Command{Of: []Kind{RetryExecution}},
		offers:  []offer{in("workflow", 3, func(w *monitor.Workflow, item *Item) { item.Not = running(w.Status) })},
		plan:    (*Operator).planRetry,
	})
	_ = declare(RetryTask, Act{
		Key: "r", Label: "retry", Help: "repeat it as a new execution", Command: Command{Of: []Kind{RetryExecution}},
		offers: []offer{in("task", 1, retryFits)}, plan: (*Operator).planRetry,
	})
)

// The helps of flags for acts on executions that flags choose.
const (
	dryChoice = "show which executions the flags choose and do nothing"
	yesChoice = "do not ask about executions that the flags choose"
)

// running says why an act does not apply to what has not ended, ended why not to what has; empty if it applies.
func running(status string) string {
	if lifecycle.Status(status).Terminal() {
		return ""
	}
	return "it has not ended: " + status
}

func ended(status string) string {
	if lifecycle.Status(status).Terminal() {
		return "it has ended: " + status
	}
	return ""
}

func retryFits(x *monitor.Execution, item *Item) { item.Not = running(x.Status) }

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
