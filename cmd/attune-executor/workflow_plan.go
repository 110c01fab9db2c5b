package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/triage"
)

// taskFate is what would become of one task of a workflow that is cancelled.
type taskFate struct {
	Task   string `json:"task"`
	Status string `json:"status"`
	Would  string `json:"would_be"`
}

// planWorkflowCancel shows what would become of a workflow, of its tasks, and of what
// runs below them, and does nothing.
func (a *app) planWorkflowCancel(cmd *cobra.Command, id int64, options *cancelOptions) error {
	if options.wait || options.timeout != 0 {
		return usageErrorf("--dry-run waits for nothing: leave --wait and --timeout out")
	}
	t, err := a.openTriage(cmd, false)
	if err != nil {
		return err
	}
	defer t.close()
	plan, err := t.PlanCancel(cmd.Context(), triage.CancelOrder{IDs: []int64{id}, Tree: true, AsDefined: true, Reason: options.reason})
	if err != nil {
		return cancelError(cmd.Context(), err)
	}
	tasks := []taskFate{}
	if detail, err := t.monitor().Workflow(cmd.Context(), id); err == nil { // one that was not begun has no tasks
		tasks = fates(detail, plan)
	}
	_, err = t.settle(options.flags, extended{plan, "tasks", tasks}, func(w *page) {
		cancelPlanPage(w, plan)
		if len(tasks) == 0 {
			return
		}
		w.row()
		table(w, "", tasks,
			col("TASK", func(one *taskFate) any { return one.Task }),
			col("STATUS", func(one *taskFate) any { return one.Status }),
			col("WOULD BE", func(one *taskFate) any { return one.Would }))
	}, nil)
	return err
}

// fates says of every task what would become of it.
func fates(d *monitor.WorkflowDetail, plan *triage.CancelPlan) []taskFate {
	outcomes := make(map[int64]triage.CancelOutcome, len(plan.Executions))
	for _, one := range plan.Executions {
		outcomes[one.ID], outcomes[one.Acting()] = one.Outcome, one.Outcome
	}
	list := make([]taskFate, 0, len(d.List))
	for i := range d.List {
		task := &d.List[i]
		list = append(list, taskFate{Task: task.Name, Status: cmp.Or(task.Says, task.Status), Would: fateOf(task, outcomes)})
	}
	return list
}

func fateOf(task *monitor.WorkflowTask, outcomes map[int64]triage.CancelOutcome) string {
	counts, order := map[string]int{}, []string{}
	for i := range task.Children {
		child := &task.Children[i]
		status := attune.Status(child.Status)
		text := "runs on to its end"
		if outcome, ok := outcomes[child.Execution]; ok {
			text = string(outcome)
		} else if status.Terminal() {
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
