package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/triage"
)

func newWorkflowCommand(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:     "workflow",
		Aliases: []string{"workflows"},
		Short:   "Look at workflows, pause them, resume them, cancel them",
		Long: "Look at workflows that were begun, and act on them. A workflow is known by the id of the execution that it runs for,\n" +
			"the one that `run` prints.",
		Example: "  attune-executor workflow list --paused\n  attune-executor workflow show 42 --graph\n" +
			"  attune-executor workflow pause 42 --reason 'prices change'",
	}, newWorkflowListCommand(a), newWorkflowShowCommand(a), newWorkflowPauseCommand(a), newWorkflowResumeCommand(a),
		newWorkflowCancelCommand(a))
}

func newWorkflowListCommand(a *app) *cobra.Command {
	filter, cursor := monitor.WorkflowFilter{}, int64(0)
	cmd := reading(a, &cobra.Command{
		Use:   "list",
		Short: "List workflows, the newest first",
		Example: "  attune-executor workflow list --status running,canceling\n" +
			"  attune-executor workflow list --action 'shop.*' --paused -o json",
	}, func() error { return checkPage(filter.Limit, &filter) }, func(c *client, _ []string) (*monitor.Workflows, error) {
		return c.monitor().Workflows(c.cmd.Context(), filter, cursor)
	}, workflowsPage)
	flags := cmd.Flags()
	flags.StringSliceVar(&filter.Statuses, "status", nil, "only these statuses, such as running or failed")
	flags.StringVar(&filter.Action, "action", "", "only actions whose ref matches; * stands for anything")
	flags.BoolVar(&filter.Paused, "paused", false, "only those that are paused")
	pageFlags(flags, &filter.Limit, &cursor)
	return cmd
}

func workflowsPage(w *page, list *monitor.Workflows) {
	table(w, "no workflow matches", list.List,
		col("ID", func(one *monitor.Workflow) any { return one.Execution }),
		col("ACTION", func(one *monitor.Workflow) any { return one.ActionRef }),
		col("STATUS", func(one *monitor.Workflow) any { return workflowStatus(one) }),
		col("TASKS", func(one *monitor.Workflow) any { return tasksText(one) }),
		col("AGE", func(one *monitor.Workflow) any { return short(list.At.Sub(one.Created)) }),
		col("TOOK", func(one *monitor.Workflow) any { return spanText(one.StartedAt, one.FinishedAt) }),
		col("NOW", func(one *monitor.Workflow) any {
			now := strings.Join(one.Current, ", ")
			switch {
			case one.Paused && one.PauseReason != "" && one.FinishedAt == nil:
				now = "paused: " + one.PauseReason
			case one.PausedAbove != 0:
				now = fmt.Sprintf("paused with workflow %d", one.PausedAbove)
			case one.Error != "":
				now = one.Error
			}
			return dash(cut(now, 60))
		}))
	w.more(list.Next, list.Bounded)
}

func workflowStatus(one *monitor.Workflow) string {
	if (one.Paused || one.PausedAbove != 0) && one.FinishedAt == nil {
		return one.Status + ", paused"
	}
	return one.Status
}

// tasksText is how many tasks have ended, of how many.
func tasksText(one *monitor.Workflow) string {
	n := one.Tasks
	text := fmt.Sprintf("%d/%d", n.Completed+n.Failed+n.Skipped, n.Total)
	if n.Failed > 0 {
		text += fmt.Sprintf(" (%d failed)", n.Failed)
	}
	return text
}

// workflowError turns what is wrong with a workflow into an error with advice.
func workflowError(id int64, err error) error {
	none, isNone := errors.AsType[*monitor.NoWorkflowError](err)
	ended, hasEnded := errors.AsType[*triage.WorkflowEndedError](err)
	switch {
	case errors.Is(err, monitor.ErrNotFound):
		return aWorkflow.missing(id)
	case isNone && none.Within != nil:
		return failedErrorf("%w: look with `attune-executor workflow show %d`", none, none.Within.Execution)
	case isNone:
		return failedErrorf("%w: look with `attune-executor execution show %d`", none, id)
	case hasEnded:
		return refusedErrorf("%w: nothing is to be changed", ended)
	}
	return unknownOutcome(err)
}
