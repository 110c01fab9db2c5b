package workflows

import (
	"slices"
	"strconv"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
)

// Do carries out an action.
func (v *Workflows) Do(action keymap.Action) screen.Effect {
	switch action {
	case keymap.NextPane:
		v.turnTo(v.focus + 1)
	case keymap.PrevPane:
		v.turnTo(v.focus - 1)
	case keymap.Problems:
		effect := v.List.Do(action)
		v.turned()
		return effect
	case keymap.Preview:
		v.ShowPreview(!v.PreviewShown())
		v.turnTo(inList)
	case keymap.Why:
		return v.explain()
	case keymap.FoldAll:
		v.tree.foldAll()
	case keymap.Open:
		return v.open()
	default:
		return v.move(action)
	}
	return screen.Effect{Handled: true}
}

// turnTo gives a pane the focus, around the end. The right pane takes part where
// there is one.
func (v *Workflows) turnTo(to pane) {
	there := panes
	switch {
	case !v.treed():
		there = 1
	case !v.wide():
		there = inSide
	}
	v.focusOn((to + there) % there)
	v.why = false
}

// focusOn gives a pane the focus.
func (v *Workflows) focusOn(to pane) {
	v.focus = to
	v.Table().Focus(to == inList)
	v.tree.table.Focus(to == inTree)
}

// marking are the actions that mark rows, which only those of the list can be.
var marking = []keymap.Action{keymap.Mark, keymap.MarkRange, keymap.MarkAll, keymap.Unmark}

// move carries out the actions that move a cursor or fold.
func (v *Workflows) move(action keymap.Action) screen.Effect {
	effect := screen.Effect{Handled: true}
	switch {
	case v.focus != inList && slices.Contains(marking, action):
		effect.Note = "Workflows are marked in their list: tab leads there."
	case v.why:
		if d, h := v.detail(), v.env.Height-1; d != nil {
			v.reasons.Do(action, h, len(v.whyLines(d, v.env.Width))-h)
		}
	case v.focus == inSide:
		_, rw := screen.Halves(v.env.Width)
		v.side.Do(action, v.env.Height, screen.WindowEnd(len(v.sideLines(rw)), v.env.Height))
	case v.focus == inTree && action == keymap.Left:
		v.tree.left()
	case v.focus == inTree && action == keymap.Right:
		v.tree.right()
	case v.focus == inTree:
		effect.Handled = screen.MoveTable(v.tree.table, action)
		v.side = screen.Scroller{}
	case screen.MoveTable(v.Table(), action):
		v.turned()
		v.extend(&effect)
		effect.Take = action == keymap.MarkAll && v.more()
	default:
		return screen.Effect{}
	}
	return effect
}

// extend asks for more when the end of what is loaded comes near.
func (v *Workflows) extend(effect *screen.Effect) {
	if !v.nearEnd() {
		return
	}
	if v.env.Data.Workflows.MoreOpen && v.limit < maxRows {
		v.limit = min(v.limit*3, maxRows)
	} else if v.ended.Next() == 0 {
		return
	}
	effect.Refetch = screen.FeedWorkflows
}

// open leads from the list into the tree, and from there on.
func (v *Workflows) open() screen.Effect {
	effect := screen.Effect{Handled: true}
	switch {
	case v.Subject() == 0:
		return effect
	case v.why:
		v.why = false
		return effect
	case v.focus == inList:
		v.ShowPreview(true)
		v.focusOn(inTree)
		return effect
	}
	n := v.tree.current()
	switch c := n.execution(); {
	case n == nil:
		effect.Note = "The tasks are being read."
	case n.more > 0:
		return v.widen(n)
	case c != nil && c.Nested:
		v.path = append(slices.Clip(v.path), c.Execution)
		if len(v.path) == 1 { // so that the way back is known
			v.path = []int64{v.tree.of.Execution, c.Execution}
		}
		v.turned()
	case c != nil:
		return screen.OpenExecution(c.Execution)
	case n.folds:
		v.tree.fold(n.task, n.open)
	default:
		effect.Note = n.task.Name + " has no execution: " + n.task.Says + "."
	}
	return effect
}

// widen has more of the children of a task read, or leads to all of them.
func (v *Workflows) widen(n *node) screen.Effect {
	if v.tree.widen(n.task) {
		return screen.Effect{Handled: true, Refetch: screen.FeedWorkflow}
	}
	effect := screen.OpenList(keymap.InExecutions, "parent:"+strconv.FormatInt(v.tree.of.Execution, 10))
	effect.Note = "More than " + v.env.Num(monitor.MaxTaskChildren) + " of one task are shown as a list."
	return effect
}

// explain turns to all that is known of why the workflow waits, and back.
func (v *Workflows) explain() screen.Effect {
	if v.Subject() == 0 {
		return screen.Effect{Handled: true, Note: "There is no workflow under the cursor."}
	}
	v.ShowPreview(true) // what is not shown is not read
	v.why, v.reasons = !v.why, screen.Scroller{}
	return screen.Effect{Handled: true}
}

// Leave closes what is open: the reasons, a workflow within another one, the tree.
func (v *Workflows) Leave() bool {
	switch {
	case v.why:
		v.why = false
	case len(v.path) > 1:
		v.path = v.path[:len(v.path)-1]
		if len(v.path) == 1 && !v.guest {
			v.path = nil
		}
		v.turned()
	case len(v.path) == 1:
		guest := v.guest
		v.path, v.guest = nil, false
		v.focusOn(inList)
		v.turned()
		return !guest
	case v.focus != inList:
		v.focusOn(inList)
	default:
		return false
	}
	return true
}

// Select puts the cursor on a line of the body and gives its pane the focus.
func (v *Workflows) Select(line int) bool {
	_, at := v.draw(v.env.Width, v.env.Height)
	switch {
	case v.why:
		return false
	case line < at.list:
		if !v.Table().Select(line - 1) {
			return false
		}
		v.focusOn(inList)
		v.turned()
		return true
	case v.tree.table.Select(line - at.tree - 1):
		v.focusOn(inTree)
		return true
	default:
		return false
	}
}
