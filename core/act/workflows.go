package act

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/triage"
)

// The acts on workflows.
const (
	PauseWorkflow  Kind = "workflow.pause"
	ResumeWorkflow Kind = "workflow.resume"
)

var (
	_ = declare(PauseWorkflow, Act{
		Key: "p", Label: "pause", Help: "start nothing more until it is resumed",
		Many: "start nothing more in them until they are resumed",
		Command: Command{
			Group: "workflow", Use: "pause ID", Takes: TakesID,
			Short: "Pause a workflow, with its nested workflows, until it is resumed",
			Long: "Pause a workflow and its nested workflows: they start no tasks, items of lists or retries until\n" +
				"it is resumed. Running executions go on to their ends. A running engine notices within seconds.",
			Example: "  attune-executor workflow pause 42 --reason 'prices change'",
			Reason:  "the reason, shown with the workflow",
		},
		Route: Route{Path: "workflows/{id}/pause"},
		offers: []offer{in("workflow", 1, func(w *monitor.Workflow, item *Item) {
			if item.Not = ended(w.Status); item.Not == "" && w.Paused {
				item.Not = "it is paused already"
			}
		})},
		plan: (*Operator).planPause,
	})
	_ = declare(ResumeWorkflow, Act{
		Key: "u", Label: "resume", Help: "go on", Many: "go on",
		Command: Command{
			Group: "workflow", Use: "resume ID", Takes: TakesID,
			Short:   "Resume a paused workflow, with its nested workflows that were not paused themselves",
			Example: "  attune-executor workflow resume 42",
			Reason:  "the reason, shown with the workflow",
		},
		Route: Route{Path: "workflows/{id}/resume"},
		offers: []offer{in("workflow", 2, func(w *monitor.Workflow, item *Item) {
			switch item.Not = ended(w.Status); {
			case item.Not != "" || w.Paused:
			case w.PausedAbove != 0:
				item.Not = "it is paused with workflow " + strconv.FormatInt(w.PausedAbove, 10) +
					" above it, and goes on with that"
			default:
				item.Not = "it is not paused"
			}
		})},
		plan: (*Operator).planPause,
	})
)

// planPause plans to pause or resume a workflow.
func (o *Operator) planPause(ctx context.Context, request Request, plan *Plan) error {
	id, pauses, do := request.Target.ID, request.Kind == PauseWorkflow, o.triage.ResumeWorkflow
	if pauses {
		do = o.triage.PauseWorkflow
	}
	plan.Run = does(func(ctx context.Context, reason string) (*triage.WorkflowReceipt, error) {
		r, err := do(ctx, id, reason)
		return r, o.notOne(ctx, id, err)
	}, func(r *triage.WorkflowReceipt) *Receipt {
		receipt := &Receipt{
			Text: fmt.Sprintf("Workflow %d %s.", id, r.Says), Audits: audits(r.Audit), Partly: !r.Changed,
			Unchanged: !r.Changed,
		}
		if r.PauseReason != "" {
			receipt.Lines.Add(Note, "%s", sentence("paused: "+r.PauseReason))
		}
		if pauses {
			receipt.Reverse = ResumeWorkflow
		}
		return receipt
	})
	if request.Direct {
		return nil
	}
	d, err := o.reader.Workflow(ctx, id)
	if err != nil {
		return err
	}
	menu := ForWorkflow(&d.Workflow)
	if not := menu.Not(request.Kind); not != "" {
		return nothing(not)
	}
	if pauses {
		plan.Lines.Add(Plain, "%s  %s → paused", d.ActionRef, d.Status)
	} else {
		plan.Lines.Add(Plain, "%s  paused → %s", d.ActionRef, d.Status)
		if d.PauseReason != "" {
			plan.Lines.Add(Note, "It was paused: %s.", strings.TrimSuffix(d.PauseReason, "."))
		}
	}
	ready := sayTasks(plan, d)
	switch {
	case pauses:
		plan.Lines.Add(Warn, "Nothing more is started in it, nor in workflows nested in it, until it is resumed; "+
			"its deadline does not wait.")
	case d.PausedAbove != 0:
		plan.Lines.Add(Warn, "Workflow %d above it is paused: it goes on with that.", d.PausedAbove)
	case len(ready) > 0:
		plan.Lines.Add(Plain, "Ready tasks start: %s.", strings.Join(ready, ", "))
	default:
		plan.Lines.Add(Plain, "Tasks that are due start within seconds.")
	}
	return nil
}

// notOne says what an execution is that is no workflow.
func (o *Operator) notOne(ctx context.Context, id int64, err error) error {
	if !errors.Is(err, triage.ErrNoWorkflow) {
		return err
	}
	_, other := o.reader.Workflow(ctx, id)
	return cmp.Or(other, err)
}

// sayTasks lists the running tasks, and names tasks that have not begun. It returns the ready ones.
func sayTasks(plan *Plan, d *monitor.WorkflowDetail) (ready []string) {
	var unreached []string
	var running []*monitor.WorkflowTask
	for i := range d.List {
		switch t := &d.List[i]; t.Status {
		case "running":
			if t.Type != "parallel" {
				running = append(running, t)
			}
		case "ready":
			ready = append(ready, t.Name)
		case "", "waiting":
			unreached = append(unreached, t.Name)
		}
	}
	addFirst(&plan.Lines, running, "  … and %d more", func(t *monitor.WorkflowTask) TextLine {
		return line(Plain, "  %s  %s: goes on to its end", t.Name, t.Says)
	})
	if len(unreached) > 0 {
		plan.Lines.Add(Note, "  not begun: %s", namesOf(unreached, " and %d more"))
	}
	return ready
}

// cancelledWorkflow is the published plan of a cancellation of a workflow.
type cancelledWorkflow struct {
	*triage.CancelPlan

	Tasks []taskFate `json:"tasks"`
}

// taskFate is the effect of a cancellation on one task.
type taskFate struct {
	Task   string `json:"task"`
	Status string `json:"status"`
	Would  string `json:"would_be"`
}

func fates(d *monitor.WorkflowDetail, plan *triage.CancelPlan) []taskFate {
	outcomes := make(map[int64]triage.CancelOutcome, len(plan.Executions))
	for _, one := range plan.Executions {
		outcomes[one.ID], outcomes[one.Acting()] = one.Outcome, one.Outcome
	}
	list := []taskFate{}
	if d == nil {
		return list
	}
	for i := range d.List {
		task := &d.List[i]
		list = append(list,
			taskFate{Task: task.Name, Status: cmp.Or(task.Says, task.Status), Would: fateOf(task, outcomes)})
	}
	return list
}

func fateOf(task *monitor.WorkflowTask, outcomes map[int64]triage.CancelOutcome) string {
	counts, order := map[string]int{}, []string{}
	for i := range task.Children {
		child := &task.Children[i]
		text := "runs on to its end"
		if outcome, ok := outcomes[child.Execution]; ok {
			text = string(outcome)
		} else if lifecycle.Status(child.Status).Terminal() {
			continue
		}
		if counts[text]++; counts[text] == 1 {
			order = append(order, text)
		}
	}
	if len(order) == 0 {
		switch task.Status {
		case "completed", "failed", "timeout", "cancelled", "skipped":
			return "stays as it is"
		}
		return "never started"
	}
	if len(task.Children) == 1 {
		return order[0]
	}
	parts := make([]string, len(order))
	for i, text := range order {
		parts[i] = fmt.Sprintf("%d %s", counts[text], text)
	}
	return strings.Join(parts, ", ")
}

// heardLine says whether a workflow waits for the retry of a child.
func heardLine(d *monitor.WorkflowDetail, id int64) TextLine {
	if lifecycle.Status(d.Status).Terminal() {
		return line(Warn,
			"Its workflow %d has ended (%s) and stays so: the work is done again, and nothing follows from it.",
			d.Execution, d.Status)
	}
	for i := range d.List {
		for _, c := range d.List[i].Children {
			switch {
			case c.Execution != id:
			case c.Drawn:
				return line(Warn,
					"Workflow %d has gone on from this end (%s is %s) and does not change that: "+
						"nothing follows from the retry in it.",
					d.Execution, d.List[i].Name, d.List[i].Status)
			default:
				return line(Plain, "Task %s of workflow %d waits for the retry instead.", d.List[i].Name,
					d.Execution)
			}
		}
	}
	return line(Note, "If workflow %d has gone on from this end, it does not change that.", d.Execution)
}
