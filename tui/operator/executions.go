package operator

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/tui/act"
)

// planCancel plans to stop an execution, or it and everything it has started.
func (o *Operator) planCancel(ctx context.Context, order act.Order) (*act.Plan, error) {
	tree := order.Kind == act.CancelTree
	asked := triage.CancelOrder{IDs: []int64{order.Target.ID}, Tree: tree}
	planned, err := o.triage.PlanCancel(ctx, asked)
	if err != nil {
		return nil, err
	}
	plan := &act.Plan{Title: "Cancel execution " + strconv.FormatInt(order.Target.ID, 10)}
	if tree {
		plan.Title = "Cancel the tree of execution " + strconv.FormatInt(order.Target.ID, 10)
		plan.Lines = append(plan.Lines, line(act.Plain, "%s: it, and what it has started that has not ended.",
			counted(planned.Acted(), "execution", "executions")))
	}
	plan.Lines = append(plan.Lines, cancelLines(planned.Executions)...)
	if planned.Acted() == 0 {
		plan.Nothing = nothingToCancel(planned, tree)
		return plan, nil
	}
	plan.Lines = append(plan.Lines, line(act.Plain, ""))
	if planned.Asked > 0 {
		plan.Lines = append(plan.Lines, line(act.Note, "What runs is asked to stop; how it ends is written by its worker. A workflow ends with its last task."))
	}
	plan.Lines = append(plan.Lines, line(act.Danger, "It cannot be taken back, and what is stopped is not repeated by itself."))
	plan.Word = wordFor(planned.Acted(), fmt.Sprintf("cancel %d", planned.Acted()))
	plan.Handle = run(func(ctx context.Context, reason string) (*act.Receipt, error) {
		planned.Reason = reason
		receipt, err := o.triage.Cancel(ctx, planned)
		return cancelReceipt(receipt), err
	})
	return plan, nil
}

// cancelLines says of each execution what becomes of it.
func cancelLines(list []triage.CancelResult) []act.Line {
	var lines []act.Line
	for i, r := range list {
		if i == maxNamed {
			return append(lines, line(act.Note, "… and %d more", len(list)-i))
		}
		lines = append(lines, cancelLine(r))
	}
	return lines
}

func cancelLine(r triage.CancelResult) act.Line {
	name := strconv.FormatInt(r.Acting(), 10) + " " + r.ActionRef
	if r.Repetition != 0 {
		name += fmt.Sprintf(" (repeats %d)", r.ID)
	}
	switch r.Outcome {
	case triage.CancelDone:
		text := fmt.Sprintf("%s  %s → cancelled", name, r.Was)
		if r.WorkerGone {
			text += ", its worker " + r.WorkerName + " does not answer"
		}
		return line(act.Plain, "%s", text)
	case triage.CancelAsked:
		if r.WorkerID == 0 {
			return line(act.Plain, "%s  %s → canceling, it ends when the last of its tasks has ended", name, r.Was)
		}
		return line(act.Plain, "%s  %s → canceling, worker %s is asked to stop it", name, r.Was, r.WorkerName)
	case triage.CancelEnded:
		return line(act.Note, "%s  had ended: %s", name, r.Was)
	case triage.CancelMissing:
		return line(act.Warn, "%d  there is no such execution", r.ID)
	default:
		return line(act.Warn, "%s  %s", name, r.Outcome)
	}
}

func nothingToCancel(planned *triage.CancelPlan, tree bool) string {
	switch {
	case planned.Missing > 0 && planned.Ended == 0:
		return "there is no such execution"
	case tree:
		return "it and all that it has started have ended"
	default:
		return "it has ended"
	}
}

func cancelReceipt(r *triage.CancelReceipt) *act.Receipt {
	if r == nil {
		return nil
	}
	receipt := &act.Receipt{Audits: audits(r.Audit)}
	switch {
	case r.Acted() == 0:
		receipt.Text = "Nothing was stopped: it had ended."
	case r.Asked == 0:
		receipt.Text = sentence(counted(r.Cancelled, "execution is", "executions are") + " cancelled")
	case r.Cancelled == 0:
		receipt.Text = sentence(counted(r.Asked, "execution was asked to stop", "executions were asked to stop"))
	default:
		receipt.Text = fmt.Sprintf("%d cancelled, %d asked to stop.", r.Cancelled, r.Asked)
	}
	if r.Moving > 0 {
		receipt.Partly = true
		receipt.Lines = append(receipt.Lines, line(act.Warn, "%d changed under every try: the same again is safe", r.Moving))
	}
	if r.Outcome == "interrupted" || r.Outcome == "failed" {
		receipt.Partly, receipt.Next = true, "the same again goes on where it stopped"
		return receipt
	}
	if r.Asked > 0 {
		receipt.Next = "it is canceling until its worker says how it ended, or its last task has ended"
	}
	if text := delivered(r.Sent); text != "" {
		receipt.Lines = append(receipt.Lines, line(act.Note, "%s", text))
	}
	return receipt
}

// parent reads who started an execution; nil when nobody did, or when it is gone.
func (o *Operator) parent(ctx context.Context, id *int64) (*monitor.Execution, error) {
	if id == nil {
		return nil, nil
	}
	d, err := o.reader.Execution(ctx, *id)
	if errors.Is(err, monitor.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &d.Execution, nil
}

// planRetry plans to repeat what has ended.
func (o *Operator) planRetry(ctx context.Context, order act.Order) (*act.Plan, error) {
	id := order.Target.ID
	plan := &act.Plan{Title: "Retry execution " + strconv.FormatInt(id, 10)}
	attempts, err := o.reader.Attempts(ctx, id)
	if errors.Is(err, monitor.ErrNotFound) {
		plan.Nothing = "there is no such execution"
		return plan, nil
	}
	if err != nil {
		return nil, err
	}
	detail, err := o.reader.Execution(ctx, id)
	if err != nil {
		return nil, err
	}
	facts := explain.RetryFacts{Execution: &detail.Execution, Attempts: attempts}
	if order.Kind != act.RetryTask { // of which its workflow says more
		if facts.Parent, err = o.parent(ctx, detail.Parent); err != nil {
			return nil, err
		}
	}
	judged := explain.JudgeRetry(facts)
	plan.Nothing = explain.Refusal(judged)
	plan.Lines = []act.Line{
		line(act.Plain, "%s ended as %s; %s so far.", detail.ActionRef, detail.Status, counted(len(attempts), "attempt", "attempts")),
	}
	if plan.Nothing != "" {
		return plan, nil
	}
	plan.Lines = append(plan.Lines,
		line(act.Plain, "A new execution with the same parameters is requested at once; it joins its queue like any other."),
		line(act.Note, "This one stays as it is. The limit of retries binds the engine, not people."))
	for _, c := range judged {
		if c.Standing == explain.RetryMinded {
			plan.Lines = append(plan.Lines, line(act.Warn, "%s", sentence(c.Text)))
		}
	}
	paused, err := o.pausedQueues(ctx, map[string]bool{detail.ActionRef: true})
	if err != nil {
		return nil, err
	}
	plan.Lines = append(plan.Lines, paused...)
	plan.Handle = run(func(ctx context.Context, reason string) (*act.Receipt, error) {
		r, err := o.triage.RetryExecution(ctx, id, reason)
		if err != nil {
			return nil, err
		}
		return &act.Receipt{
			Text:   fmt.Sprintf("Execution %d repeats %d as attempt %d.", r.Execution, r.Failed, r.Attempt),
			Next:   fmt.Sprintf("3, then / %s finds it", r.ActionRef),
			Audits: audits(r.Audit),
		}, nil
	})
	return plan, nil
}
