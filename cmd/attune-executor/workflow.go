package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
)

func newWorkflowCommand(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:     "workflow",
		Aliases: []string{"workflows"},
		Short:   "Show, pause, resume and cancel workflows",
		Long:    "Show workflows, and act on them. The id of a workflow is that of its execution, which `run` prints.",
		Example: "  attune-executor workflow list --paused\n  attune-executor workflow show 42 --graph\n" +
			"  attune-executor workflow pause 42 --reason 'prices change'",
	}, newWorkflowListCommand(a), newWorkflowShowCommand(a))
}

func newWorkflowListCommand(a *app) *cobra.Command {
	filter, cursor := monitor.WorkflowFilter{}, int64(0)
	cmd := reading(a, &cobra.Command{
		Use:   "list",
		Short: "List workflows, the newest first",
		Example: "  attune-executor workflow list --status running,canceling\n" +
			"  attune-executor workflow list --action 'shop.*' --paused -o json",
	}, func() error { return checkPage(filter.Limit, &filter) },
		func(c *client, _ []string) (*monitor.Workflows, error) {
			return c.monitor().Workflows(c.cmd.Context(), filter, cursor)
		}, workflowsPage)
	flags := cmd.Flags()
	flags.StringSliceVar(&filter.Statuses, "status", nil, "only these statuses, such as running or failed")
	flags.StringVar(&filter.Action, "action", "", "only actions whose ref matches; * stands for anything")
	flags.BoolVar(&filter.Paused, "paused", false, "only paused workflows")
	pageFlags(flags, &filter.Limit, &cursor)
	return cmd
}

func workflowsPage(w *page, list *monitor.Workflows) {
	const titles = "ID, ACTION, STATUS, TASKS, AGE, TOOK, NOW"
	table(w, "no workflow matches", list.List, titles, func(one *monitor.Workflow) []any {
		now := strings.Join(one.Current, ", ")
		switch {
		case one.Paused && one.PauseReason != "" && one.FinishedAt == nil:
			now = "paused: " + one.PauseReason
		case one.PausedAbove != 0:
			now = fmt.Sprintf("paused with workflow %d", one.PausedAbove)
		case one.Error != "":
			now = one.Error
		}
		return []any{
			one.Execution, one.ActionRef, one.State(), tasksText(one), short(list.At.Sub(one.Created)),
			spanText(one.StartedAt, one.FinishedAt), dash(phrase.CutMiddle(now, 60)),
		}
	})
	w.more(list.Next, list.Bounded)
}

// tasksText counts the ended tasks.
func tasksText(one *monitor.Workflow) string {
	if n := one.Tasks; n.Failed > 0 {
		return fmt.Sprintf("%s (%d failed)", n.Ended(), n.Failed)
	}
	return one.Tasks.Ended()
}

// workflowError explains an error about a workflow, with its exit code.
func workflowError(id int64, err error) error {
	none, isNone := errors.AsType[*monitor.NoWorkflowError](err)
	switch {
	case errors.Is(err, monitor.ErrNotFound):
		return aWorkflow.missing(id)
	case isNone && none.Within != nil:
		return failedErrorf("%w: look with `attune-executor workflow show %d`", none, none.Within.Execution)
	case isNone:
		return failedErrorf("%w: look with `attune-executor execution show %d`", none, id)
	}
	return err
}

// workflowShow are the flags of `workflow show`.
type workflowShow struct {
	graph, dot, log, ascii bool
	width                  int
}

func newWorkflowShowCommand(a *app) *cobra.Command {
	options := workflowShow{}
	var id int64
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show one workflow: its tasks with their states and reasons, its variables, its decisions",
		Long: "Show one workflow, by the id of its execution. --graph draws its tasks, --dot writes them in the\n" +
			"language of Graphviz; both show the state of each task.",
		Example: "  attune-executor workflow show 42\n  attune-executor workflow show 42 --graph --log\n" +
			"  attune-executor workflow show 42 --dot | dot -Tsvg > 42.svg",
		Args: oneArg("the id of a workflow"),
		PreRunE: func(_ *cobra.Command, args []string) (err error) {
			switch {
			case options.graph && options.dot:
				return usageErrorf("--graph and --dot exclude each other")
			case options.width < 0:
				return usageErrorf("--width must not be negative")
			case (options.ascii || options.width > 0) && !options.graph:
				return usageErrorf("--ascii and --width need --graph")
			}
			id, err = aWorkflow.id(args[0])
			return err
		},
		RunE: a.connected(func(c *client, _ []string) error { return c.showWorkflow(id, options) }),
	}
	flags := cmd.Flags()
	flags.BoolVar(&options.graph, "graph", false, "draw the tasks")
	flags.BoolVar(&options.dot, "dot", false, "write the tasks in the language of Graphviz, and nothing else")
	flags.BoolVar(&options.log, "log", false, "also the decisions and their reasons")
	flags.BoolVar(&options.ascii, "ascii", false, "draw with ASCII characters only")
	flags.IntVar(&options.width, "width", 0, "the greatest width of the drawing in columns (default $COLUMNS, else 80)")
	return cmd
}

// workflowView is a workflow with its drawing.
type workflowView struct {
	*monitor.WorkflowDetail

	Drawing string `json:"drawing,omitempty"`
	DOT     string `json:"dot,omitempty"`
}

// columns is the width of the terminal.
func (a *app) columns(wanted int) int {
	for _, setting := range a.environ {
		if text, ok := strings.CutPrefix(setting, "COLUMNS="); ok && wanted == 0 {
			wanted, _ = strconv.Atoi(text) // an invalid number leaves the default
		}
	}
	return max(wanted, 0)
}

func workflowPage(w *page, d *monitor.WorkflowDetail, drawing string, options workflowShow) {
	workflowFacts(w, d)
	if len(d.Variables) > 0 && string(d.Variables) != "{}" {
		w.text("\nvariables")
		w.lines(pretty(d.Variables))
	}
	if options.graph {
		w.text("\ngraph")
		w.lines(drawing)
	} else {
		w.text("\ntasks")
		workflowTasks(w, d)
	}
	if !options.log {
		return
	}
	w.text("\nlog")
	for _, decision := range d.Log {
		for _, line := range decision.Lines {
			w.row("  "+decision.At.Format(time.RFC3339), decision.Version, line)
		}
	}
}

func workflowFacts(w *page, d *monitor.WorkflowDetail) {
	w.row("workflow", d.Execution)
	w.row("action", d.ActionRef)
	w.row("status", d.State())
	if d.Paused && d.FinishedAt == nil {
		w.fact("paused", d.PauseReason)
	}
	if d.PausedAbove != 0 {
		w.row("paused with",
			fmt.Sprintf("workflow %d above it: `attune-executor workflow resume %d` resumes both", d.PausedAbove,
				d.PausedAbove))
	}
	if d.Unreadable == "" {
		w.row("tasks", tasksText(&d.Workflow)+" have ended")
	}
	w.fact("unreadable", d.Unreadable)
	if d.Within != nil {
		w.row("within", fmt.Sprintf("task %s of workflow %d", d.Within.Task, d.Within.Execution))
	}
	w.row("requested", at(d.Created, d.At))
	if d.StartedAt != nil {
		w.row("begun", at(*d.StartedAt, d.At))
	}
	if d.FinishedAt != nil {
		w.row("ended", at(*d.FinishedAt, d.At))
		w.row("took", spanText(d.StartedAt, d.FinishedAt))
	} else if d.Deadline != nil {
		w.row("deadline", dueText(*d.Deadline, d.At))
	}
	w.fact("error", d.Error)
}

// workflowTasks lists the tasks, with the unfinished and unsuccessful items of each list.
func workflowTasks(w *page, d *monitor.WorkflowDetail) {
	w.row("  TASK", "STATUS", "EXECUTION", "ATTEMPTS", "TOOK", "WHY")
	for i := range d.List {
		task := &d.List[i]
		name, execution, attempts := "  "+task.Name, "-", "-"
		if task.Within != "" {
			name = "    " + task.Name
		}
		if task.Attempts > 0 {
			attempts = strconv.FormatInt(task.Attempts, 10)
		}
		many := task.Made > 1 || len(task.Children) == 1 && task.Children[0].Index != nil
		if many {
			execution = fmt.Sprintf("%d of them", task.Made)
		} else if len(task.Children) == 1 {
			execution = strconv.FormatInt(task.Children[0].Execution, 10)
		}
		took := spanText(task.StartedAt, task.FinishedAt)
		w.row(name, taskStatus(task), execution, attempts, took, dash(phrase.CutMiddle(task.Why, 80)))
		if many {
			workflowItems(w, task, d.At)
		}
	}
}

// taskStatus is the state of a task, with that of its only child while it runs.
func taskStatus(task *monitor.WorkflowTask) string {
	if task.Status == "running" && len(task.Children) == 1 && task.Children[0].Index == nil &&
		task.Children[0].Status != "running" {
		return task.Says + ", " + task.Children[0].Status
	}
	return task.Says
}

func workflowItems(w *page, task *monitor.WorkflowTask, now time.Time) {
	for i := range task.Children {
		child := &task.Children[i]
		if child.Index == nil || child.Status == "completed" {
			continue
		}
		why := child.Error
		switch {
		case child.Inquiry != 0:
			why = fmt.Sprintf("waits for the answer to inquiry %d", child.Inquiry)
		case child.Due != nil:
			why = "is repeated " + dueText(*child.Due, now)
		}
		took := spanText(child.StartedAt, child.FinishedAt)
		w.row(fmt.Sprintf("    [%d]", *child.Index), child.Status, child.Execution, child.Attempt, took,
			dash(phrase.CutMiddle(why, 80)))
	}
}

func (c *client) showWorkflow(id int64, options workflowShow) error {
	d, err := c.monitor().Workflow(c.cmd.Context(), id)
	if err != nil {
		return workflowError(id, err)
	}
	view, drawn := workflowView{WorkflowDetail: d}, true
	if options.graph {
		view.Drawing, drawn = d.Draw(c.columns(options.width), options.ascii || c.ascii())
	}
	if options.dot {
		view.DOT, drawn = d.DOT()
	}
	if !drawn {
		return failedErrorf("workflow %d cannot be drawn: %s", id, d.Unreadable)
	}
	return c.show(view, func(w *page) {
		if options.dot {
			w.lines(view.DOT)
			return
		}
		workflowPage(w, d, view.Drawing, options)
	})
}
