// Package workflows shows the list of workflows, running ones first, and the tasks of the selected
// workflow as a tree: when each task ran, what the workflow waits for, and its variables.
//
// There are three panes: the list, the tree, and on a wide screen the details of the selected task.
// Tab moves the focus. Enter leads from the list into the tree, and from there to an execution or
// into a nested workflow; esc leads back.
package workflows

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/jsonview"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/list"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// pane is a part of the view that can have the focus.
type pane int

const (
	inList pane = iota
	inTree
	inSide
	panes
)

type row = monitor.Workflow

// Workflows is the view.
type Workflows struct {
	*list.List[row]

	env *screen.Env
	// open are the unfinished workflows. The list continues with the ended ones, which are paged.
	open  []row
	ended screen.Pages[row]
	focus pane
	query monitor.WorkflowFilter
	goOn  bool // an empty list searches its next page once
	limit int  // of open workflows; it grows as the operator comes near the end of the list

	// path are nested workflows, each opened from the one before; the tree shows the last one instead
	// of the selected row. linked is true if another view opened the path: esc then leaves the view.
	path   []int64
	linked bool
	tree   tree
	// why is true while the reasons why the workflow waits take the whole view.
	why           bool
	side, reasons screen.Scroller
	variables     []string // of the workflow in the tree
}

// New makes the view.
func New(env *screen.Env) *Workflows {
	v := &Workflows{env: env, limit: monitor.DefaultPage}
	v.ended = screen.NewPages(func(w *row) int64 { return w.Execution })
	v.List = list.New(env, list.Spec[row]{
		View: keymap.InWorkflows, Singular: "workflow", Plural: "workflows", Feed: screen.FeedWorkflows,
		Loaded: func() bool { return env.Data.Workflows != nil },
		Rows:   func() []row { return slices.Concat(v.open, v.ended.Rows()) },
		Fields: fields, Key: key, Reset: v.reset,
		Database:      &list.Database{Schema: filter.Workflows, Ask: screen.StoreFilter(&v.query, filter.ForWorkflows)},
		TieBreak:      func(x, y *row) int { return cmp.Compare(y.Execution, x.Execution) },
		Actions:       func(w *row) (act.Menu, bool) { return act.ForWorkflow(w), true },
		MarkedActions: func(keys []string) act.Menu { return act.ForMarked("workflow", screen.Targets(keys)) },
		Export:        func(w *row) screen.Thing { return export(w, *w) },
		More:          func() bool { return v.more() || env.Data.Workflows != nil && env.Data.Workflows.Bounded },
		GoesOn:        func() string { return list.PartSearched(v.ended.Next() != 0) },
		NoProblem:     "No workflow has failed, is paused, or has a task that failed.",
		EmptyText: []string{
			" No workflow has been started yet. A workflow is an action made of tasks; start one:",
			"   attune-executor run PACK.WORKFLOW", " docs/workflows.md says how to write one.",
		},
	})
	v.tree = tree{env: env, table: widget.NewTable(nil), folded: map[string]bool{}, charted: v.wide}
	v.focusOn(inList)
	return v
}

// Feeds is what the view needs polled: the tree only while it is shown.
func (v *Workflows) Feeds() []screen.Feed {
	if v.Subject() == 0 || !v.treeShown() {
		return []screen.Feed{screen.FeedWorkflows}
	}
	return []screen.Feed{screen.FeedWorkflows, screen.FeedWorkflow}
}

func (v *Workflows) treeShown() bool { return v.PreviewShown() || len(v.path) > 0 }

// Subject is the workflow in the tree, by its execution; 0 if none.
func (v *Workflows) Subject() int64 {
	if len(v.path) > 0 {
		return v.path[len(v.path)-1]
	}
	if w := v.Current(); w != nil {
		return w.Execution
	}
	return 0
}

// Ask is the request for the workflow in the tree.
func (v *Workflows) Ask() monitor.WorkflowAsk {
	ask := monitor.WorkflowAsk{Execution: v.Subject()}
	if more := &v.tree.children; more.workflow == ask.Execution {
		ask.Task, ask.Children = more.task, more.limit
	}
	return ask
}

// Behind asks for the tree if the last one read belongs to another workflow.
func (v *Workflows) Behind() screen.Feed {
	if v.Subject() != 0 && v.treeShown() && v.detail() == nil {
		return screen.FeedWorkflow
	}
	return ""
}

// noPath is what Shown says while no workflow is opened.
const noPath = "list"

// Shown names the opened workflows.
func (v *Workflows) Shown() string {
	if len(v.path) == 0 {
		return noPath
	}
	ids := make([]string, len(v.path))
	for i, id := range v.path {
		ids[i] = strconv.FormatInt(id, 10)
	}
	return strings.Join(ids, "/")
}

// Show opens nested workflows, or the list.
func (v *Workflows) Show(name string) {
	v.path, v.linked, v.why = nil, false, false
	v.focusOn(inList)
	for part := range strings.SplitSeq(name, "/") {
		if id := screen.Number(part); id != 0 {
			v.path, v.linked = append(v.path, id), true
			v.focusOn(inTree)
		}
	}
	v.subjectChanged()
}

// detail is the workflow in the tree, nil until it was read.
func (v *Workflows) detail() *monitor.WorkflowDetail {
	if d := v.env.Data.Workflow; d != nil && d.Execution == v.Subject() {
		return d
	}
	return nil
}

// Title is the text of the title rule.
func (v *Workflows) Title() (left, right string) {
	left = "Workflows"
	for _, id := range v.path {
		left += " › " + strconv.FormatInt(id, 10)
	}
	right = screen.ListTitle(screen.OrderName(v), v.Problems(), v.Filter())
	if v.env.Data.Workflows != nil {
		right += " · " + strconv.Itoa(v.Len())
		if v.more() {
			right += "+"
			if !v.byID() {
				right += " read, ordered among themselves"
			}
		}
	}
	return left, right + v.env.Mark(screen.FeedWorkflows)
}

// SetFilter applies a filter.
func (v *Workflows) SetFilter(text string) error {
	err := v.List.SetFilter(text)
	v.subjectChanged()
	return err
}

// SetOrder sorts the list.
func (v *Workflows) SetOrder(order screen.Order) {
	v.List.SetOrder(order)
	v.showDetail()
}

// Changed takes over new data.
func (v *Workflows) Changed(feed screen.Feed) {
	switch feed {
	case screen.FeedWorkflows:
		v.merge()
		v.Rebuild(false)
		v.showDetail()
	case screen.FeedWorkflow:
		v.showDetail()
	}
}

// subjectChanged runs after actions that may select another workflow.
func (v *Workflows) subjectChanged() {
	v.side = screen.Scroller{}
	v.showDetail()
}

// showDetail fills the tree with the last reading.
func (v *Workflows) showDetail() {
	d := v.detail()
	if d != v.tree.of {
		v.variables = nil
		if d != nil && len(d.Variables) > 0 {
			v.variables = screen.Indented(jsonview.Text(string(d.Variables)))
		}
		if d != nil && d.VariablesBytes > 0 {
			v.variables = []string{" " + v.env.Paint(theme.Warn, phrase.Part(0, d.VariablesBytes)+", e writes all")}
		}
	}
	v.tree.show(d)
	v.focusOn(v.focus)
}

// onTree reports whether actions are about the tree instead of the list.
func (v *Workflows) onTree() bool { return v.focus == inTree || len(v.path) > 0 }

// Acts is the menu for the marked or selected workflow, and in the tree for the execution of a task.
func (v *Workflows) Acts() (act.Menu, bool) {
	switch d, n := v.detail(), v.tree.current(); {
	case !v.onTree() && v.focus == inSide && v.Current() != nil:
		return act.ForWorkflow(v.Current()), true
	case !v.onTree():
		return v.List.Acts()
	case d == nil:
		return act.Menu{}, false
	case n.execution() != nil:
		return act.ForTask(n.task, n.execution()), true
	default:
		return act.ForWorkflow(&d.Workflow), true
	}
}

// RelatedExecution is the execution of the selected workflow, and in the tree that of the selected task.
func (v *Workflows) RelatedExecution() (*monitor.Execution, bool) {
	w := v.Current()
	if v.onTree() {
		d := v.detail()
		if d == nil {
			return nil, false
		}
		if c := v.tree.current().execution(); c != nil {
			return &monitor.Execution{
				ID: c.Execution, ActionRef: c.ActionRef, Status: c.Status,
				WorkerID: c.WorkerID, WorkerName: c.WorkerName, Parent: &d.Execution, Created: c.Created,
			}, true
		}
		w = &d.Workflow
	}
	if w == nil {
		return nil, false
	}
	return &monitor.Execution{
		ID: w.Execution, ActionRef: w.ActionRef, Status: w.Status, Parent: w.Parent, Created: w.Created,
	}, true
}

// Relations lists what is related to that execution.
func (v *Workflows) Relations() (title string, related []screen.Relation, ok bool) {
	x, ok := v.RelatedExecution()
	if !ok {
		return "", nil, false
	}
	id := strconv.FormatInt(x.ID, 10)
	related = []screen.Relation{
		screen.ExecutionRelation(x),
		{
			Key: "l", Label: "failed below", Help: "its failed tasks",
			To: screen.OpenList(keymap.InExecutions, "parent:"+id+" status:failed,timeout,abandoned"),
		},
	}
	return x.ActionRef + " " + id, append(related, screen.ExecutionRelations(x, nil)...), true
}

func export(w *monitor.Workflow, value any) screen.Thing {
	id := strconv.FormatInt(w.Execution, 10)
	return screen.Thing{
		Name: "workflow " + id, ID: id, Value: value, Command: []string{"workflow", "show", id},
		Table: "workflow_execution", Where: "execution = " + id, Execution: w.Execution,
	}
}

// Shows is the execution of the selected task, or else the workflow in the tree.
func (v *Workflows) Shows() (screen.Thing, bool) {
	d := v.detail()
	if d == nil || v.focus == inList && len(v.path) == 0 {
		return screen.Thing{}, false
	}
	if c := v.tree.current().execution(); c != nil {
		return screen.ExecutionThing(&monitor.Execution{ID: c.Execution}, *c), true
	}
	thing := export(&d.Workflow, d)
	thing.Cut = d.VariablesBytes > 0
	return thing, true
}
