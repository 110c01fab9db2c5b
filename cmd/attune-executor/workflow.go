package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/triage"
)

func newWorkflowCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "workflow",
		Aliases: []string{"workflows"},
		Short:   "Look at workflows, pause them, resume them, cancel them",
		Long: "Look at workflows that were begun, and act on them. A workflow is known by the id of the execution that it runs for,\n" +
			"the one that `run` prints.",
		Example: "  attune-executor workflow list --paused\n  attune-executor workflow show 42 --graph\n" +
			"  attune-executor workflow pause 42 --reason 'prices change'",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newWorkflowListCommand(a), newWorkflowShowCommand(a), newWorkflowPauseCommand(a), newWorkflowResumeCommand(a),
		newWorkflowCancelCommand(a))
	return cmd
}

func newWorkflowListCommand(a *app) *cobra.Command {
	filter, cursor := monitor.WorkflowFilter{}, int64(0)
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List workflows, the newest first",
		Example: "  attune-executor workflow list --status running,canceling\n" +
			"  attune-executor workflow list --action 'shop.*' --paused -o json",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if filter.Limit < 1 {
				return usageErrorf("--limit must be at least 1")
			}
			if err := filter.Check(); err != nil {
				return usageErrorf("%w", err)
			}
			return a.listWorkflows(cmd, filter, cursor)
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&filter.Statuses, "status", nil, "only these statuses, such as running or failed")
	flags.StringVar(&filter.Action, "action", "", "only actions whose ref matches; * stands for anything")
	flags.BoolVar(&filter.Paused, "paused", false, "only those that are paused")
	flags.IntVar(&filter.Limit, "limit", 20, "how many to list")
	flags.Int64Var(&cursor, "cursor", 0, "go on below this id")
	return cmd
}

func (a *app) listWorkflows(cmd *cobra.Command, filter monitor.WorkflowFilter, cursor int64) error {
	c, err := a.connect(cmd)
	if err != nil {
		return err
	}
	defer c.store.Close()
	page, err := c.monitor().Workflows(cmd.Context(), filter, cursor)
	if err != nil {
		return err
	}
	return a.print(cmd, page, func(w io.Writer) error { return workflowsTable(w, page) })
}

func workflowsTable(w io.Writer, page *monitor.Workflows) error {
	if len(page.List) == 0 {
		if err := row(w, "no workflow matches"); err != nil {
			return err
		}
	} else if err := row(w, "ID", "ACTION", "STATUS", "TASKS", "AGE", "TOOK", "NOW"); err != nil {
		return err
	}
	for i := range page.List {
		one := &page.List[i]
		now := strings.Join(one.Current, ", ")
		switch {
		case one.Paused && one.PauseReason != "" && one.FinishedAt == nil:
			now = "paused: " + one.PauseReason
		case one.PausedAbove != 0:
			now = fmt.Sprintf("paused with workflow %d", one.PausedAbove)
		case one.Error != "":
			now = one.Error
		}
		err := row(w, one.Execution, one.ActionRef, workflowStatus(one), tasksText(one), short(page.At.Sub(one.Created)), workflowTook(one),
			dash(cut(now, 60)))
		if err != nil {
			return err
		}
	}
	switch {
	case page.Bounded:
		return row(w, fmt.Sprintf("the search stopped at its bound; more may match: --cursor %d goes on", page.Next))
	case page.Next != 0:
		return row(w, fmt.Sprintf("more: --cursor %d", page.Next))
	}
	return nil
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

func workflowTook(one *monitor.Workflow) string {
	return tookText(monitor.Execution{StartedAt: one.StartedAt, FinishedAt: one.FinishedAt})
}

// workflowID reads the id that a workflow is known by.
func workflowID(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return 0, usageErrorf("%q is not the id of a workflow, which is that of its execution", text)
	}
	return id, nil
}

// workflowError turns what is wrong with a workflow into an error with advice.
func workflowError(id int64, err error) error {
	none, isNone := errors.AsType[*monitor.NoWorkflowError](err)
	ended, hasEnded := errors.AsType[*triage.WorkflowEndedError](err)
	switch {
	case errors.Is(err, monitor.ErrNotFound):
		return failedErrorf("there is no workflow %d: `attune-executor workflow list` shows the newest", id)
	case isNone && none.Within != nil:
		return failedErrorf("%w: look with `attune-executor workflow show %d`", none, none.Within.Execution)
	case isNone:
		return failedErrorf("%w: look with `attune-executor execution show %d`", none, id)
	case hasEnded:
		return refusedErrorf("%w: nothing is to be changed", ended)
	case store.ClassOf(err) == store.ClassUnknown:
		return failedErrorf("%w: whether it was done is unknown, the same again is safe", err)
	}
	return err
}

// at writes a time, and how long ago that was.
func at(moment, now time.Time) string {
	return moment.Format(time.RFC3339) + ", " + short(now.Sub(moment)) + " ago"
}
