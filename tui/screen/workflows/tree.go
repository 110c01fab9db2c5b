package workflows

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/widget"
)

// node is a line of the tree: a task, one of its executions, or the executions that were not read.
type node struct {
	depth int
	task  *monitor.WorkflowTask
	child *monitor.WorkflowChild
	more  int64 // executions that were not read
	// folds is true of a line with others below it, open while they are listed.
	folds, open bool
}

// tree lists the tasks of one workflow without the lines below a fold. Its cursor follows tasks and
// executions, not line numbers.
type tree struct {
	env   *screen.Env
	table *widget.Table
	of    *monitor.WorkflowDetail
	nodes []node
	// folded is what the operator folded (true) or unfolded, by workflow and task; all other tasks fold
	// by their status. allFolded is the last FoldAll.
	folded    map[string]bool
	allFolded bool
	charted   func() bool // reports whether there is room for the chart
	children  childLimit
}

// childLimit is how many executions of a task are read.
type childLimit struct {
	workflow int64
	task     string
	limit    int
}

// show replaces the workflow; nil shows none. Cursor and folds stay if it is the same workflow.
func (t *tree) show(d *monitor.WorkflowDetail) {
	if d == nil || t.of == nil || t.of.Execution != d.Execution {
		t.table = widget.NewTable(nil)
	}
	t.of = d
	t.build()
}

func (t *tree) build() {
	t.nodes = t.nodes[:0]
	if t.of != nil {
		for i := range t.of.List {
			if task := &t.of.List[i]; task.Within == "" {
				t.add(task, 0)
			}
		}
	}
	t.table.SetRows(t)
}

// add appends a task and the lines below it.
func (t *tree) add(task *monitor.WorkflowTask, depth int) {
	var within []*monitor.WorkflowTask
	for i := range t.of.List {
		if inner := &t.of.List[i]; task.Type == "parallel" && inner.Within == task.Name {
			within = append(within, inner)
		}
	}
	n := node{depth: depth, task: task, folds: len(within) > 0 || severalLines(task)}
	n.open = n.folds && !t.isFolded(task)
	t.nodes = append(t.nodes, n)
	if !n.open {
		return
	}
	for _, inner := range within {
		t.add(inner, depth+1)
	}
	if !severalLines(task) {
		return
	}
	children := make([]*monitor.WorkflowChild, len(task.Children))
	for i := range task.Children {
		children[i] = &task.Children[i]
	}
	more := task.Made - int64(len(task.Children))
	if more <= 0 { // of a selection, unfinished and failed executions stay first
		slices.SortStableFunc(children,
			func(a, b *monitor.WorkflowChild) int { return cmp.Compare(index(a), index(b)) })
	}
	for _, child := range children {
		t.nodes = append(t.nodes, node{depth: depth + 1, task: task, child: child})
	}
	if more > 0 {
		t.nodes = append(t.nodes, node{depth: depth + 1, task: task, more: more})
	}
}

// severalLines reports whether the executions of a task are lines of their own. A single execution
// without an index is shown with its task.
func severalLines(task *monitor.WorkflowTask) bool {
	return len(task.Children) > 1 || len(task.Children) == 1 && task.Children[0].Index != nil
}

func index(c *monitor.WorkflowChild) int64 {
	if c.Index == nil {
		return -1
	}
	return *c.Index
}

func (t *tree) foldKey(task *monitor.WorkflowTask) string {
	return strconv.FormatInt(t.of.Execution, 10) + "/" + task.Name
}

// isFolded reports whether the lines below a task are hidden: as the operator chose, or else if the
// task needs no attention any more.
func (t *tree) isFolded(task *monitor.WorkflowTask) bool {
	if chosen, ok := t.folded[t.foldKey(task)]; ok {
		return chosen
	}
	return task.Status == "completed" || task.Status == "skipped"
}

// fold hides or lists the lines below a task and reports whether that changed anything.
func (t *tree) fold(task *monitor.WorkflowTask, folded bool) bool {
	if t.isFolded(task) == folded {
		return false
	}
	t.folded[t.foldKey(task)] = folded
	t.build()
	return true
}

// foldAll folds every task, or unfolds every task.
func (t *tree) foldAll() {
	if t.of == nil {
		return
	}
	t.allFolded = !t.allFolded
	for i := range t.of.List {
		t.folded[t.foldKey(&t.of.List[i])] = t.allFolded
	}
	t.build()
}

// left folds the selected line, or selects the line above that it belongs to.
func (t *tree) left() {
	n := t.current()
	if n == nil || n.folds && t.fold(n.task, true) {
		return
	}
	at := t.table.Cursor()
	for i := at - 1; i >= 0; i-- {
		if t.nodes[i].depth < t.nodes[at].depth {
			t.table.Move(i - at)
			return
		}
	}
}

// readMore asks for ten times as many executions of a task; false at the bound.
func (t *tree) readMore(task *monitor.WorkflowTask) bool {
	c := &t.children
	if c.workflow != t.of.Execution || c.task != task.Name {
		*c = childLimit{workflow: t.of.Execution, task: task.Name, limit: len(task.Children)}
	}
	if c.limit >= monitor.MaxTaskChildren {
		return false
	}
	c.limit = min(c.limit*10, monitor.MaxTaskChildren)
	return true
}

// current is the selected line, or nil.
func (t *tree) current() *node {
	if at := t.table.Cursor(); at >= 0 && at < len(t.nodes) {
		return &t.nodes[at]
	}
	return nil
}

// execution is the only execution that a line shows, or nil.
func (n *node) execution() *monitor.WorkflowChild {
	switch {
	case n == nil || n.more > 0:
		return nil
	case n.child != nil:
		return n.child
	case !severalLines(n.task) && len(n.task.Children) == 1:
		return &n.task.Children[0]
	default:
		return nil
	}
}

func (n *node) status() string {
	if n.child != nil {
		return n.child.Status
	}
	return n.task.Status
}

func unfinished(c *monitor.WorkflowChild) bool { return !lifecycle.Status(c.Status).Terminal() }
