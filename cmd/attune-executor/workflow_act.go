package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/triage"
)

func newWorkflowPauseCommand(a *app) *cobra.Command {
	return newWorkflowChangeCommand(a, &cobra.Command{
		Use:   "pause ID",
		Short: "Have a workflow, and those within it, start nothing more until it is resumed",
		Long: "Have a workflow, and the workflows within it, start nothing more, neither tasks nor items of lists nor repetitions, until\n" +
			"it is resumed. What runs goes on to its end. A running engine notices within seconds.",
		Example: "  attune-executor workflow pause 42 --reason 'prices change'",
	}, (*triage.Triage).PauseWorkflow)
}

func newWorkflowResumeCommand(a *app) *cobra.Command {
	return newWorkflowChangeCommand(a, &cobra.Command{
		Use:     "resume ID",
		Short:   "Have a paused workflow go on, and those within it that were not paused by themselves",
		Example: "  attune-executor workflow resume 42",
	}, (*triage.Triage).ResumeWorkflow)
}

// newWorkflowChangeCommand makes a command that changes a workflow at once.
func newWorkflowChangeCommand(a *app, cmd *cobra.Command,
	change func(t *triage.Triage, ctx context.Context, execution int64, reason string) (*triage.WorkflowReceipt, error),
) *cobra.Command {
	reason := ""
	cmd.Args = oneArg("the id of a workflow")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id, err := aWorkflow.id(args[0])
		if err != nil {
			return err
		}
		t, err := a.openTriage(cmd, false)
		if err != nil {
			return err
		}
		defer t.close()
		receipt, err := change(t.Triage, cmd.Context(), id, reason)
		if errors.Is(err, triage.ErrNoWorkflow) {
			if _, looked := t.monitor().Workflow(cmd.Context(), id); looked != nil {
				return workflowError(id, looked)
			}
			return err // it was begun just now
		}
		if err != nil {
			return workflowError(id, err)
		}
		return t.show(receipt, func(w *page) {
			text := fmt.Sprintf("workflow %d (%s) %s", receipt.Execution, receipt.Action, receipt.Says)
			if receipt.PauseReason != "" {
				text += ": " + receipt.PauseReason
			}
			w.row(text + fmt.Sprintf(" (audit %d)", receipt.Audit))
		})
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for those who look at the workflow")
	return cmd
}

func newWorkflowCancelCommand(a *app) *cobra.Command {
	options := &cancelOptions{}
	cmd := &cobra.Command{
		Use:   "cancel ID",
		Short: "Stop a workflow; its definition says what becomes of its tasks that run",
		Long: "Stop a workflow: nothing more is started, and what waits is cancelled. What runs is stopped too if its definition says\n" +
			"cancellation_policy: cancel_running, and else goes on to its end.",
		Example: "  attune-executor workflow cancel 42 --reason 'wrong cart' --wait --timeout 30s",
		Args:    oneArg("the id of a workflow"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := aWorkflow.id(args[0])
			if err != nil {
				return err
			}
			if err := a.mustBeWorkflow(cmd, id); err != nil {
				return err
			}
			if options.flags.dryRun {
				return a.planWorkflowCancel(cmd, id, options)
			}
			return a.cancelExecutions(cmd, []int64{id}, options)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&options.reason, "reason", "", "why, for those who look at the result")
	flags.BoolVar(&options.flags.dryRun, "dry-run", false, "show what would become of it and of each task, and do nothing")
	flags.BoolVar(&options.wait, "wait", false, "wait until it has ended")
	flags.DurationVar(&options.timeout, "timeout", 0, "how long to wait, 0 for ever")
	return cmd
}

// mustBeWorkflow refuses to cancel by mistake what is no workflow.
func (a *app) mustBeWorkflow(cmd *cobra.Command, id int64) error {
	c, err := a.connect(cmd)
	if err != nil {
		return err
	}
	defer c.store.Close()
	_, err = c.monitor().Workflow(cmd.Context(), id)
	if none, isNone := errors.AsType[*monitor.NoWorkflowError](err); isNone && none.Waiting {
		return nil // it is stopped before it begins
	}
	if err != nil {
		return workflowError(id, err)
	}
	return nil
}

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
