// Package workflows shows the workflows, those that run first, and of the one under
// the cursor its tasks as a tree, when each of them ran, what the workflow waits for
// and its variables.
//
// There are three panes: the list, the tree, and on a wide screen what is known of
// the task under the cursor. One of them has the focus, which moves with tab; enter
// leads from the list into the tree and from there to an execution, or into a
// workflow that a task has started, and esc leads back.
package workflows

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/jsonview"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/list"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/widget"
)

// pane is what has the focus.
type pane int

const (
	inList pane = iota
	inTree
	inSide
	panes
)

// maxRows bounds how many workflows are asked for that have not ended.
const maxRows = 1_000

type row = monitor.Workflow

// Workflows is the view.
type Workflows struct {
	*list.List[row]

	env *screen.Env
	// live are the workflows that run; below them stand those that have ended, of which there
	// may be many: they are read page by page.
	live  []row
	ended screen.Pages[row]
	focus pane
	query monitor.WorkflowFilter
	// limit is how many open workflows are asked for; it grows as the operator comes
	// near the end of the list.
	limit int

	// path are the workflows that were opened one within the other; the last of them is
	// shown instead of the one under the cursor. guest says that another view sent here.
	path  []int64
	guest bool
	tree  tree
	// why is true while all that is known of why the workflow waits takes the whole view; side
	// and reasons are how far the right pane and that are scrolled.
	why           bool
	side, reasons screen.Scroller
	// variables are those of the workflow in the tree.
	variables []string
}

// New makes the view.
func New(env *screen.Env) *Workflows {
	v := &Workflows{env: env, limit: monitor.DefaultPage}
	v.ended = screen.NewPages(func(w *row) int64 { return w.Execution })
	v.List = list.New(env, list.Spec[row]{
		View: keymap.InWorkflows, Singular: "workflow", Plural: "workflows", Feed: screen.FeedWorkflows,
		Loaded: func() bool { return env.Data.Workflows != nil },
		Rows:   func() []row { return slices.Concat(v.live, v.ended.Rows()) },
		Fields: fields, Key: key, Completions: v.known, Database: v.database(), Reset: v.forget,
		TieBreak:      func(x, y *row) int { return cmp.Compare(y.Execution, x.Execution) },
		Actions:       func(w *row) (act.Menu, bool) { return act.ForWorkflow(w), true },
		MarkedActions: func(keys []string) act.Menu { return act.ForMarkedWorkflows(screen.Targets(keys)) },
		Export:        func(w *row) screen.Thing { return thingOf(w, *w) },
		Truncated: func() string {
			if d := env.Data.Workflows; d != nil && (d.MoreOpen || v.ended.Next() != 0 || d.Bounded) {
				return "more workflows may match than are read"
			}
			return ""
		},
	})
	v.tree = tree{env: env, table: widget.NewTable(nil), folded: map[string]bool{}, charted: v.wide}
	v.focusOn(inList)
	return v
}

// Feeds is what the view needs polled: the tree only while there is one to show.
func (v *Workflows) Feeds() []screen.Feed {
	if v.Subject() == 0 || !v.treed() {
		return []screen.Feed{screen.FeedWorkflows}
	}
	return []screen.Feed{screen.FeedWorkflows, screen.FeedWorkflow}
}

// treed reports whether there is a tree beside the list.
func (v *Workflows) treed() bool { return v.PreviewShown() || len(v.path) > 0 }

// Subject is the workflow in the tree, by its execution; 0 while there is none.
func (v *Workflows) Subject() int64 {
	if len(v.path) > 0 {
		return v.path[len(v.path)-1]
	}
	if w := v.Current(); w != nil {
		return w.Execution
	}
	return 0
}

// Ask is what is read of the workflow in the tree.
func (v *Workflows) Ask() monitor.WorkflowAsk {
	ask := monitor.WorkflowAsk{Execution: v.Subject()}
	if v.tree.wideOf == ask.Execution {
		ask.Task, ask.Children = v.tree.wideTask, v.tree.wide
	}
	return ask
}

// Behind asks for the tree of another workflow than the one that was read last.
func (v *Workflows) Behind() screen.Feed {
	if id := v.Subject(); id != 0 && v.treed() && v.detail() == nil {
		return screen.FeedWorkflow
	}
	return ""
}

// inLists is what Shown says while no workflow but the one under the cursor is shown.
const inLists = "list"

// Shown names the workflows that were opened one within the other.
func (v *Workflows) Shown() string {
	if len(v.path) == 0 {
		return inLists
	}
	ids := make([]string, len(v.path))
	for i, id := range v.path {
		ids[i] = strconv.FormatInt(id, 10)
	}
	return strings.Join(ids, "/")
}

// Show opens workflows one within the other, or the list.
func (v *Workflows) Show(name string) {
	v.path, v.guest, v.why = nil, false, false
	v.focusOn(inList)
	for part := range strings.SplitSeq(name, "/") {
		if id := screen.Number(part); id != 0 {
			v.path, v.guest = append(v.path, id), true
			v.focusOn(inTree)
		}
	}
	v.turned()
}

// detail is what is known of the workflow in the tree, or nil.
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
	right = v.SortKey()
	if v.Order().Reverse {
		right += " reversed"
	}
	right = screen.ListTitle(right, v.Problems(), v.Filter())
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

// SetFilter has other workflows read.
func (v *Workflows) SetFilter(text string) error {
	err := v.List.SetFilter(text)
	v.turned()
	return err
}

// SetOrder puts the list in order.
func (v *Workflows) SetOrder(order screen.Order) {
	v.List.SetOrder(order)
	v.take()
}

// Changed takes over new data.
func (v *Workflows) Changed(feed screen.Feed) {
	switch feed {
	case screen.FeedWorkflows:
		v.merge()
		v.Rebuild(false)
		v.take()
	case screen.FeedWorkflow:
		v.take()
	}
}

// turned is called when another workflow may have come into the tree.
func (v *Workflows) turned() {
	v.side = screen.Scroller{}
	v.take()
}

// take shows what was read of the workflow in the tree.
func (v *Workflows) take() {
	d := v.detail()
	if d != v.tree.of {
		v.variables = nil
		if d != nil && len(d.Variables) > 0 {
			v.variables = screen.Indented(jsonview.Text(string(d.Variables)))
		}
	}
	v.tree.take(d)
	v.focusOn(v.focus)
}

// Acts is what may be done with the workflows that are marked, else with the row under
// the cursor: with the workflow in the list, and in the tree with what runs a task.
func (v *Workflows) Acts() (act.Menu, bool) {
	if v.focus != inTree && len(v.path) == 0 {
		if v.focus == inSide && v.Current() != nil {
			return act.ForWorkflow(v.Current()), true
		}
		return v.List.Acts()
	}
	d, n := v.detail(), v.tree.current()
	if d == nil {
		return act.Menu{}, false
	}
	if c := n.execution(); c != nil {
		return act.ForTask(n.task, c), true
	}
	return act.ForWorkflow(&d.Workflow), true
}

// RelatedExecution is the execution under the cursor: that of the workflow in the
// list, and in the tree the one that runs a task.
func (v *Workflows) RelatedExecution() (*monitor.Execution, bool) {
	if v.focus == inTree || len(v.path) > 0 {
		d, n := v.detail(), v.tree.current()
		if d == nil {
			return nil, false
		}
		if c := n.execution(); c != nil {
			return &monitor.Execution{
				ID: c.Execution, ActionRef: c.ActionRef, Status: c.Status,
				WorkerID: c.WorkerID, WorkerName: c.WorkerName, Parent: &d.Execution, Created: c.Created,
			}, true
		}
		return ofWorkflow(&d.Workflow), true
	}
	if w := v.Current(); w != nil {
		return ofWorkflow(w), true
	}
	return nil, false
}

// ofWorkflow is the execution that a workflow runs for.
func ofWorkflow(w *monitor.Workflow) *monitor.Execution {
	return &monitor.Execution{
		ID: w.Execution, ActionRef: w.ActionRef, Status: w.Status, Parent: w.Parent, Created: w.Created,
	}
}

// Relations is what the execution under the cursor has to do with, as far as its line
// says.
func (v *Workflows) Relations() (title string, related []screen.Relation, ok bool) {
	x, ok := v.RelatedExecution()
	if !ok {
		return "", nil, false
	}
	id := strconv.FormatInt(x.ID, 10)
	related = []screen.Relation{
		{Key: "x", Label: "execution", Help: id + "  " + x.ActionRef, To: screen.OpenExecution(x.ID)},
		{
			Key: "l", Label: "failed below", Help: "tasks of it that went wrong",
			To: screen.OpenList(keymap.InExecutions, "parent:"+id+" status:failed,timeout,abandoned"),
		},
	}
	return x.ActionRef + " " + id, append(related, screen.ExecutionRelations(x, nil)...), true
}

func thingOf(w *monitor.Workflow, value any) screen.Thing {
	id := strconv.FormatInt(w.Execution, 10)
	return screen.Thing{
		Name: "workflow " + id, ID: id, Value: value, Command: []string{"workflow", "show", id},
		Table: "workflow_execution", Where: "execution = " + id, Execution: w.Execution,
	}
}

// Shows is what has the focus beside the list: what runs the task under the cursor,
// else the workflow whose tree is in sight.
func (v *Workflows) Shows() (screen.Thing, bool) {
	d := v.detail()
	if d == nil || v.focus == inList && len(v.path) == 0 {
		return screen.Thing{}, false
	}
	if c := v.tree.current().execution(); c != nil {
		x := monitor.Execution{ID: c.Execution}
		return screen.ExecutionThing(&x, *c), true
	}
	return thingOf(&d.Workflow, d), true
}
