package act

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/triage"
)

// The acts that end executions.
const (
	CancelExecution Kind = "execution.cancel"
	CancelTree      Kind = "execution.cancel-tree"
	CancelWorkflow  Kind = "workflow.cancel"
)

var (
	_ = declare(CancelExecution, Act{
		Key: "c", Label: "cancel", Help: "end it, or ask its worker to stop it",
		Many: "end them, or ask their workers to stop them",
		Command: Command{
			Group: "execution", Use: "cancel ID... | cancel --param NAME=VALUE...", Takes: TakesIDs,
			Short: "Stop waiting and running executions",
			Long: "Stop executions. Waiting executions, and dispatched ones that cannot start any more, are cancelled\n" +
				"at once. For a running execution the worker is asked to stop it, and the worker writes how it ended.\n" +
				"For a failed execution the pending retry is stopped. An execution that was asked to stop is not\n" +
				"repeated, however it ends.\n\n" +
				"Without ids the flags choose: all unfinished executions that match, at most 10000 at once, of the\n" +
				"newest 50000. The command asks first; --dry-run counts them by action and status.",
			Example: "  attune-executor execution cancel 42 --reason 'wrong host' --wait --timeout 30s\n" +
				"  attune-executor execution cancel 42 --tree --dry-run\n" +
				"  attune-executor execution cancel --action shop.bill --status requested -p tenant=t7 --yes",
			Chooses: []lifecycle.Status{ // without a cancel request
				lifecycle.StatusRequested, lifecycle.StatusScheduling, lifecycle.StatusScheduled,
				lifecycle.StatusRunning,
			},
			Reason: "the reason, shown in the result", DryRun: dryAct, Yes: yesChoice,
			Wait: "wait until they have ended", Sends: true,
		},
		offers: []offer{in("execution", 4, cancelFits), in("task", 4, cancelFits)},
		plan:   (*Operator).planCancel, whole: true,
	})
	_ = declare(CancelTree, Act{
		Key: "t", Label: "cancel tree", Help: "end it and everything that it has started",
		Command: Command{Of: []Kind{CancelExecution}, Switch: "tree", SwitchHelp: "their descendants too"},
		// The tree of an ended execution may still run.
		offers: []offer{in[any]("execution", 5, nil), in[any]("task", 5, nil), in[any]("workflow", 5, nil)},
		plan:   (*Operator).planCancel, whole: true,
	})
	_ = declare(CancelWorkflow, Act{
		Key: "c", Label: "cancel", Help: "start nothing more and end it",
		Many: "start nothing more in them and end them",
		Command: Command{
			Group: "workflow", Use: "cancel ID", Takes: TakesID,
			Short: "Stop a workflow; its definition decides about its running tasks",
			Long: "Stop a workflow: it starts nothing more, and its waiting executions are cancelled. Running\n" +
				"executions are stopped too if the definition says cancellation_policy: cancel_running; otherwise they\n" +
				"go on to their ends.",
			Example: "  attune-executor workflow cancel 42 --reason 'wrong cart' --wait --timeout 30s",
			Reason:  "the reason, shown in the result",
			DryRun:  "show what would happen to it and to each task, and do nothing",
			Wait:    "wait until it has ended", Sends: true, Noun: "execution",
		},
		Route:  Route{Path: "workflows/{id}/cancel"},
		offers: []offer{in("workflow", 4, func(w *monitor.Workflow, item *Item) { item.Not = ended(w.Status) })},
		plan:   (*Operator).planCancel, whole: true,
	})
)

func cancelFits(x *monitor.Execution, item *Item) {
	item.Not = ended(x.Status)
	if lifecycle.Status(x.Status) == lifecycle.StatusCanceling {
		item.Not = "its worker was asked to stop it already"
	}
}

// planCancel plans to cancel an execution, several, a tree, or a workflow.
func (o *Operator) planCancel(ctx context.Context, request Request, plan *Plan) error {
	if len(request.Targets) > 0 && !request.Named {
		return o.planMarked(ctx, request, plan)
	}
	wish := triage.CancelRequest{IDs: request.IDs(), Tree: request.Kind == CancelTree, Reason: request.Reason}
	plan.Run = o.cancels(request.Kind, wish)
	if request.Direct {
		return nil
	}
	var tasks *monitor.WorkflowDetail
	if request.Kind == CancelWorkflow {
		d, err := o.reader.Workflow(ctx, request.Target.ID)
		none, isNone := errors.AsType[*monitor.NoWorkflowError](err)
		if err != nil && !(isNone && none.Waiting) { // one that has not begun is stopped before it begins
			return err
		}
		tasks = d
	}
	planned, err := o.triage.PlanCancel(ctx, wish)
	if err != nil {
		return err
	}
	plan.Data = planned
	if request.Kind == CancelWorkflow {
		plan.Data = cancelledWorkflow{CancelPlan: planned, Tasks: fates(tasks, planned)}
	}
	if wish.Tree {
		plan.Title = "Cancel the tree of execution " + strconv.FormatInt(request.Target.ID, 10)
		plan.Lines.Add(Plain, "%s: it, and what it has started that has not ended.",
			phrase.Plural(planned.Acted(), "execution", "executions"))
	}
	addFirst(&plan.Lines, planned.Executions, "… and %d more", cancelLine)
	switch {
	case planned.Acted() > 0:
	case planned.Missing > 0 && planned.Ended == 0:
		return missing(&request)
	case planned.Tree:
		return nothing("it and all that it has started have ended")
	default:
		return nothing("it has ended")
	}
	if tasks != nil {
		addFirst(&plan.Lines, fates(tasks, planned), "  … and %d more", func(f taskFate) TextLine {
			return line(Plain, "  %s  %s: %s", f.Task, f.Status, f.Would)
		})
		plan.Lines.Add(Plain, "")
		plan.Lines.Add(Note, "Its cancellation_policy decides about running tasks: %s. Cancel tree stops them too.",
			tasks.Cancellation)
		plan.Lines.Add(Danger, "This cannot be undone. A retry runs all tasks again.")
		return nil
	}
	plan.Lines.Add(Plain, "")
	if planned.Asked > 0 {
		plan.Lines.Add(Note,
			"Workers are asked to stop running executions, and record how they end. A workflow ends with its last task.")
	}
	plan.Lines.Add(Danger, "This cannot be undone. Cancelled executions are not retried automatically.")
	plan.Word = wordFor(planned.Acted(), "cancel %d", planned.Acted())
	return nil
}

// cancels makes the run of a cancellation. One of marked rows is paced, and may be stopped by hand.
func (o *Operator) cancels(kind Kind, wish triage.CancelRequest) Run {
	return does(func(ctx context.Context, reason string) (*triage.CancelReceipt, error) {
		wish.Reason = reason
		if kind == CancelWorkflow && !wish.Paced {
			r, err := o.triage.CancelWorkflow(ctx, wish.IDs[0], reason)
			return r, o.notOne(ctx, wish.IDs[0], err)
		}
		r, err := o.triage.Cancel(ctx, &triage.CancelPlan{CancelRequest: wish})
		if wish.Paced && errors.Is(ctx.Err(), context.Canceled) {
			err = nil // the receipt says so
		}
		return r, err
	}, cancelReceipt)
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
		switch {
		case r.WorkerGone:
			return line(Plain, "%s  %s → canceling, but worker %s is gone: the engine decides", name, r.Was, r.WorkerName)
		case r.WorkerID == 0:
			return line(Plain, "%s  %s → canceling, it ends when the last of its tasks has ended", name, r.Was)
		}
		return line(Plain, "%s  %s → canceling, worker %s is asked to stop it", name, r.Was, r.WorkerName)
	case triage.CancelEnded:
		return line(Note, "%s  had ended: %s", name, r.Was)
	case triage.CancelMissing:
		return line(Warn, "%d  there is no such execution", r.ID)
	default:
		return line(Warn, "%s  changed during every try", name)
	}
}

func cancelReceipt(r *triage.CancelReceipt) *Receipt {
	receipt := &Receipt{Audits: audits(r.Audit), Sent: r.Sent, Done: r.Acted()}
	receipt.Text = countsOf(r.CancelCounts)
	if r.Acted() == 0 {
		receipt.Unchanged, receipt.Problem = true, cancelProblem(r)
	}
	if r.Paced { // the rows were marked
		done := 0
		for _, one := range r.Executions {
			acted := one.Outcome == triage.CancelDone || one.Outcome == triage.CancelAsked
			if acted && slices.Contains(r.IDs, one.ID) {
				done++
			}
		}
		if r.Acted() > 0 {
			receipt.Lines.Add(Plain, "%s", receipt.Text)
		}
		receipt.Text = outcome(done, len(r.IDs), "done", other{len(r.IDs) - done - len(r.Left), "changed meanwhile"})
		receipt.Left, receipt.Partly, receipt.Problem = r.Left, done < len(r.IDs), nil
		if len(r.Left) > 0 {
			receipt.Lines.Add(Warn, "%d were not reached and stay marked.", len(r.Left))
		}
	}
	if r.Moving > 0 {
		receipt.Partly = true
		receipt.Lines.Add(Warn, "%d changed under every try: the same again is safe", r.Moving)
	}
	if r.Acted() > 0 && len(r.Executions) <= many && !r.Paced {
		for _, one := range r.Executions {
			receipt.Lines = append(receipt.Lines, cancelLine(one))
		}
	}
	switch {
	case r.Outcome == "interrupted" || r.Outcome == "failed":
		receipt.Partly, receipt.Next = true, "the same again goes on where it stopped"
	case r.Asked > 1:
		receipt.Next = "they are canceling until their workers say how they ended"
	case r.Asked == 1:
		receipt.Next = "it is canceling until its worker says how it ended, or its last task has ended"
	}
	return receipt
}

// countsOf says how many executions ended in which way.
func countsOf(c triage.CancelCounts) string {
	var parts []string
	for _, part := range []other{
		{c.Cancelled, "cancelled"}, {c.Asked, "asked to stop"}, {c.Ended, "had ended"}, {c.Missing, "not found"},
		{c.Moving, "kept changing"},
	} {
		switch {
		case part.n == 0:
		case len(parts) == 0:
			parts = append(parts, phrase.Plural(part.n, "execution", "executions")+" "+part.word)
		default:
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.word))
		}
	}
	return sentence(strings.Join(parts, ", "))
}

// cancelProblem is the reason of a cancellation without effect.
func cancelProblem(r *triage.CancelReceipt) *Problem {
	request := &Request{Kind: CancelExecution}
	if len(r.IDs) == 1 {
		request.Target.ID = r.IDs[0]
	}
	switch {
	case r.Ended+r.Moving == 0 && len(r.IDs) == 1:
		return missing(request)
	case r.Ended+r.Moving == 0:
		return &Problem{Kind: Missing, Text: "there are no such executions", Instead: hints["execution"]}
	case len(r.IDs) > 1:
		return refuse(Refused, "nothing was cancelled: %s", strings.TrimSuffix(countsOf(r.CancelCounts), "."))
	case r.Moving > 0:
		return &Problem{
			Kind: Conflict, Text: request.subject() + " changed during every try", Instead: "the same again is safe",
		}
	}
	return refuse(Refused, "%s has ended (%s)", request.subject(), r.Executions[0].Status)
}
