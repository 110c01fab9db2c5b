package workflows

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/widget"
)

// node is a line of the tree: a task, one of its children, or those of its children
// that are not shown.
type node struct {
	depth int
	task  *monitor.WorkflowTask
	child *monitor.WorkflowChild
	// more is how many children a line stands for that were not read.
	more int64
	// folds is true of a line that has others below it, open while they are shown.
	folds, open bool
}

// tree is the tasks of one workflow as lines, of which those are hidden that belong
// to something folded. Its cursor follows tasks and executions, not lines.
type tree struct {
	env   *screen.Env
	table *widget.Table
	of    *monitor.WorkflowDetail
	nodes []node
	// folded says of tasks, by workflow and name, what the operator wants; of the
	// others that is decided by what happens in them.
	folded map[string]bool
	// allFolded is what FoldAll did last.
	allFolded bool
	// charted reports whether the times of the tasks are drawn.
	charted func() bool
	// wide is how many children of wideTask are read, of the workflow wideOf.
	wideOf   int64
	wideTask string
	wide     int
}

// take shows another workflow, or newer facts about the same; nil shows none.
func (t *tree) take(d *monitor.WorkflowDetail) {
	if d == nil || t.of == nil || t.of.Execution != d.Execution {
		t.table = widget.NewTable(nil)
	}
	t.of = d
	t.build()
}

// build makes the lines anew.
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

// add adds a task with what is to be seen below it.
func (t *tree) add(task *monitor.WorkflowTask, depth int) {
	within := t.within(task)
	n := node{depth: depth, task: task, folds: len(within) > 0 || many(task)}
	n.open = n.folds && !t.isFolded(task)
	t.nodes = append(t.nodes, n)
	if !n.open {
		return
	}
	for _, inner := range within {
		t.add(inner, depth+1)
	}
	if !many(task) {
		return
	}
	more := task.Made - int64(len(task.Children))
	for _, child := range inOrder(task.Children, more > 0) {
		t.nodes = append(t.nodes, node{depth: depth + 1, task: task, child: child})
	}
	if more > 0 {
		t.nodes = append(t.nodes, node{depth: depth + 1, task: task, more: more})
	}
}

// many reports whether a task has children of its own lines. One child without an
// index is the task itself.
func many(task *monitor.WorkflowTask) bool {
	return len(task.Children) > 1 || len(task.Children) == 1 && task.Children[0].Index != nil
}

// inOrder puts children in the order of their items. Of a selection those stay first
// that have not ended or have failed.
func inOrder(children []monitor.WorkflowChild, selection bool) []*monitor.WorkflowChild {
	list := make([]*monitor.WorkflowChild, len(children))
	for i := range children {
		list[i] = &children[i]
	}
	if !selection {
		slices.SortStableFunc(list, func(a, b *monitor.WorkflowChild) int { return cmp.Compare(index(a), index(b)) })
	}
	return list
}

func index(c *monitor.WorkflowChild) int64 {
	if c.Index == nil {
		return -1
	}
	return *c.Index
}

func (t *tree) within(task *monitor.WorkflowTask) []*monitor.WorkflowTask {
	if task.Type != "parallel" {
		return nil
	}
	var list []*monitor.WorkflowTask
	for i := range t.of.List {
		if t.of.List[i].Within == task.Name {
			list = append(list, &t.of.List[i])
		}
	}
	return list
}

func (t *tree) foldKey(task *monitor.WorkflowTask) string {
	return strconv.FormatInt(t.of.Execution, 10) + "/" + task.Name
}

// isFolded reports whether what belongs to a task is hidden: by the operator's wish,
// else when it has come to a good end.
func (t *tree) isFolded(task *monitor.WorkflowTask) bool {
	if wish, ok := t.folded[t.foldKey(task)]; ok {
		return wish
	}
	return task.Status == "completed" || task.Status == "skipped"
}

// fold hides or shows what belongs to a task, and reports whether that was new.
func (t *tree) fold(task *monitor.WorkflowTask, folded bool) bool {
	if t.isFolded(task) == folded {
		return false
	}
	t.folded[t.foldKey(task)] = folded
	t.build()
	return true
}

// foldAll hides everything that can be hidden, or shows it all again.
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

// left folds the line under the cursor, or goes to the task that it belongs to.
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

// right unfolds the line under the cursor.
func (t *tree) right() {
	if n := t.current(); n != nil && n.folds {
		t.fold(n.task, false)
	}
}

// widen has ten times as many children of a task read; false when no more are.
func (t *tree) widen(task *monitor.WorkflowTask) bool {
	if t.wideOf != t.of.Execution || t.wideTask != task.Name {
		t.wideOf, t.wideTask, t.wide = t.of.Execution, task.Name, len(task.Children)
	}
	if t.wide >= monitor.MaxTaskChildren {
		return false
	}
	t.wide = min(t.wide*10, monitor.MaxTaskChildren)
	return true
}

// current is the line under the cursor, or nil.
func (t *tree) current() *node {
	if at := t.table.Cursor(); at >= 0 && at < len(t.nodes) {
		return &t.nodes[at]
	}
	return nil
}

// execution is what a line stands for: its child, or the only one of its task.
func (n *node) execution() *monitor.WorkflowChild {
	switch {
	case n == nil || n.more > 0:
		return nil
	case n.child != nil:
		return n.child
	case !many(n.task) && len(n.task.Children) == 1:
		return &n.task.Children[0]
	default:
		return nil
	}
}

// status is where a line is.
func (n *node) status() string {
	if n.child != nil {
		return n.child.Status
	}
	return n.task.Status
}

// running reports whether a child has not ended.
func running(c *monitor.WorkflowChild) bool { return !attune.Status(c.Status).Terminal() }
