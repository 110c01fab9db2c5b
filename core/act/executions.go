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

// planCancel plans to cancel an execution, or its whole tree.
func (o *Operator) planCancel(ctx context.Context, request Request, plan *Plan) error {
	id, tree := request.Target.ID, request.Kind == CancelTree
	planned, err := o.triage.PlanCancel(ctx, triage.CancelRequest{IDs: []int64{id}, Tree: tree})
	if err != nil {
		return err
	}
	if tree {
		plan.Title = "Cancel the tree of execution " + strconv.FormatInt(id, 10)
		plan.Lines.Add(Plain, "%s: it, and what it has started that has not ended.",
			phrase.Plural(planned.Acted(), "execution", "executions"))
	}
	if err := sayCancelled(plan, planned); err != nil {
		return err
	}
	plan.Lines.Add(Plain, "")
	if planned.Asked > 0 {
		plan.Lines.Add(Note,
			"Workers are asked to stop running executions, and record how they end. A workflow ends with its last task.")
	}
	plan.Lines.Add(Danger, "This cannot be undone. Cancelled executions are not retried automatically.")
	plan.Word = wordFor(planned.Acted(), "cancel %d", planned.Acted())
	plan.Run = does(func(ctx context.Context, reason string) (*triage.CancelReceipt, error) {
		planned.Reason = reason
		return o.triage.Cancel(ctx, planned)
	}, cancelReceipt)
	return nil
}

// sayCancelled describes what happens to each execution, or why there is nothing to cancel.
func sayCancelled(plan *Plan, planned *triage.CancelPlan) error {
	addFirst(&plan.Lines, planned.Executions, "… and %d more", cancelLine)
	switch {
	case planned.Acted() > 0:
		return nil
	case planned.Missing > 0 && planned.Ended == 0:
		return nothing("there is no such execution")
	case planned.Tree:
		return nothing("it and all that it has started have ended")
	default:
		return nothing("it has ended")
	}
}

func cancelLine(r triage.CancelResult) TextLine {
	name := strconv.FormatInt(r.Acting(), 10) + " " + r.ActionRef
	if r.Retry != 0 {
		name += fmt.Sprintf(" (repeats %d)", r.ID)
	}
	switch r.Outcome {
	case triage.CancelDone:
		text := fmt.Sprintf("%s  %s → cancelled", name, r.Was)
		if r.WorkerGone {
			text += ", its worker " + r.WorkerName + " does not answer"
		}
		return line(Plain, "%s", text)
	case triage.CancelAsked:
		if r.WorkerID == 0 {
			return line(Plain, "%s  %s → canceling, it ends when the last of its tasks has ended", name, r.Was)
		}
		return line(Plain, "%s  %s → canceling, worker %s is asked to stop it", name, r.Was, r.WorkerName)
	case triage.CancelEnded:
		return line(Note, "%s  had ended: %s", name, r.Was)
	case triage.CancelMissing:
		return line(Warn, "%d  there is no such execution", r.ID)
	default:
		return line(Warn, "%s  %s", name, r.Outcome)
	}
}

func cancelReceipt(r *triage.CancelReceipt) *Receipt {
	receipt := &Receipt{Audits: audits(r.Audit)}
	switch {
	case r.Acted() == 0:
		receipt.Text, receipt.Unchanged = "Nothing was stopped: it had ended.", true
	case r.Asked == 0:
		receipt.Text = phrase.Plural(r.Cancelled, "execution is", "executions are") + " cancelled."
	case r.Cancelled == 0:
		receipt.Text = phrase.Plural(r.Asked, "execution was asked to stop.", "executions were asked to stop.")
	default:
		receipt.Text = fmt.Sprintf("%d cancelled, %d asked to stop.", r.Cancelled, r.Asked)
	}
	if r.Moving > 0 {
		receipt.Partly = true
		receipt.Lines.Add(Warn, "%d changed under every try: the same again is safe", r.Moving)
	}
	if r.Outcome == "interrupted" || r.Outcome == "failed" {
		receipt.Partly, receipt.Next = true, "the same again goes on where it stopped"
		return receipt
	}
	if r.Asked > 0 {
		receipt.Next = "it is canceling until its worker says how it ended, or its last task has ended"
	}
	if text := delivered(r.Sent); text != "" {
		receipt.Lines.Add(Note, "%s", text)
	}
	return receipt
}

// planRetry plans to retry an ended execution, workflow or task.
func (o *Operator) planRetry(ctx context.Context, request Request, plan *Plan) error {
	id := request.Target.ID
	switch request.Kind {
	case RetryTask:
		plan.Title = "Retry execution " + strconv.FormatInt(id, 10)
	case RetryWorkflow:
		plan.Title = "Begin workflow " + strconv.FormatInt(id, 10) + " anew"
	default:
	}
	attempts, err := o.reader.Attempts(ctx, id)
	if errors.Is(err, monitor.ErrNotFound) {
		return nothing("there is no such execution")
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
		return nothing(why)
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
	plan.Run = does(o.retries(id), retryReceipt)
	switch {
	case request.Kind == RetryWorkflow:
		plan.Lines.Add(Warn, "All its tasks run again, also completed ones.")
	case request.Kind == RetryTask && detail.Parent != nil:
		d, err := o.workflow(ctx, *detail.Parent)
		if _, none := errors.AsType[nothing](err); none {
			return nil
		}
		if err != nil {
			return err
		}
		plan.Lines = append(plan.Lines, heardLine(d, id))
	}
	return nil
}

func (o *Operator) retries(id int64) func(ctx context.Context, reason string) (*triage.RetryReceipt, error) {
	return func(ctx context.Context, reason string) (*triage.RetryReceipt, error) {
		return o.triage.RetryExecution(ctx, id, reason)
	}
}

func retryReceipt(r *triage.RetryReceipt) *Receipt {
	return &Receipt{
		Text: repeated(r), Next: fmt.Sprintf(":e %d opens it", r.Execution), Audits: audits(r.Audit),
	}
}

func repeated(r *triage.RetryReceipt) string {
	return fmt.Sprintf("Execution %d repeats %d as attempt %d.", r.Execution, r.Failed, r.Attempt)
}
