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
		v.cycleFocus(v.focus + 1)
	case keymap.PrevPane:
		v.cycleFocus(v.focus - 1)
	case keymap.Problems:
		effect := v.List.Do(action)
		v.subjectChanged()
		return effect
	case keymap.Preview:
		v.ShowPreview(!v.PreviewShown())
		v.cycleFocus(inList)
	case keymap.Why:
		if v.Subject() == 0 {
			return screen.Effect{Handled: true, Note: "There is no workflow under the cursor."}
		}
		v.ShowPreview(true) // the reasons are read with the tree
		v.why, v.reasons = !v.why, screen.Scroller{}
	case keymap.FoldAll:
		v.tree.foldAll()
	case keymap.Open:
		return v.enter()
	default:
		return v.move(action)
	}
	return screen.Effect{Handled: true}
}

// cycleFocus moves the focus to a pane, modulo the panes that are drawn.
func (v *Workflows) cycleFocus(to pane) {
	drawn := panes
	switch {
	case !v.treeShown():
		drawn = 1
	case !v.wide():
		drawn = inSide
	}
	v.focusOn((to + drawn) % drawn)
	v.why = false
}

func (v *Workflows) focusOn(to pane) {
	v.focus = to
	v.Table().Focus(to == inList)
	v.tree.table.Focus(to == inTree)
}

// InFirst reports whether the list has the focus.
func (v *Workflows) InFirst() bool { return v.focus == inList }

var markActions = []keymap.Action{keymap.Mark, keymap.MarkRange, keymap.MarkAll, keymap.Unmark}

// move carries out the actions that scroll, move a cursor or fold.
func (v *Workflows) move(action keymap.Action) screen.Effect {
	effect := screen.Effect{Handled: true}
	switch {
	case v.focus != inList && slices.Contains(markActions, action):
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
		if n := v.tree.current(); n != nil && n.folds {
			v.tree.fold(n.task, false)
		}
	case v.focus == inTree:
		effect.Handled = screen.MoveTable(v.tree.table, action)
		v.side = screen.Scroller{}
	case screen.MoveTable(v.Table(), action):
		v.subjectChanged()
		v.goOn = action == keymap.Bottom && v.Len() == 0
		effect.Take = action == keymap.MarkAll && v.more()
		switch grows := v.nearEnd() && v.env.Data.Workflows.MoreOpen && v.limit < maxOpen; {
		case grows:
			v.limit = min(v.limit*3, maxOpen)
			effect.Refetch = screen.FeedWorkflows
		case v.nearEnd() && v.ended.Next() != 0:
			effect.Refetch = screen.FeedWorkflows
		}
	default:
		return screen.Effect{}
	}
	return effect
}

// enter leads from the list into the tree, and from there to an execution or a nested workflow.
func (v *Workflows) enter() screen.Effect {
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
		effect.Note = "The tasks have not been read yet."
	case n.more > 0 && v.tree.readMore(n.task):
		effect.Refetch = screen.FeedWorkflow
	case n.more > 0:
		effect = screen.OpenList(keymap.InExecutions, "parent:"+strconv.FormatInt(v.tree.of.Execution, 10))
		effect.Note = "A task with more than " + v.env.Num(monitor.MaxTaskChildren) + " executions is shown as a list."
	case c != nil && c.Nested:
		v.path = append(slices.Clip(v.path), c.Execution)
		if len(v.path) == 1 { // esc leads back to the outer workflow
			v.path = []int64{v.tree.of.Execution, c.Execution}
		}
		v.subjectChanged()
	case c != nil:
		return screen.OpenExecution(c.Execution)
	case n.folds:
		v.tree.fold(n.task, n.open)
	default:
		effect.Note = n.task.Name + " has no execution: " + n.task.Says + "."
	}
	return effect
}

// Leave closes the reasons, a nested workflow, or the tree.
func (v *Workflows) Leave() bool {
	switch {
	case v.why:
		v.why = false
	case len(v.path) > 1:
		v.path = v.path[:len(v.path)-1]
		if len(v.path) == 1 && !v.linked {
			v.path = nil
		}
		v.subjectChanged()
	case len(v.path) == 1:
		linked := v.linked
		v.path, v.linked = nil, false
		v.focusOn(inList)
		v.subjectChanged()
		return !linked
	case v.focus != inList:
		v.focusOn(inList)
	default:
		return false
	}
	return true
}

// Places are the list and the tree.
func (v *Workflows) Places(w, h int) screen.Places {
	if v.why {
		return nil
	}
	at := v.layout(w, h)
	places := screen.Places{{Table: v.Table(), W: at.w, H: at.list, Focus: func() {
		v.focusOn(inList)
		v.subjectChanged()
	}}}
	if d := v.detail(); d != nil && len(d.List) > 0 {
		v.tree.table.SetColumns(v.tree.columns())
		head := len(v.treeHead(at.w))
		places = append(places, screen.Place{
			Table: v.tree.table, Top: at.tree + head, W: at.w, H: at.treeHeight - head,
			Focus: func() { v.focusOn(inTree) },
		})
	}
	return places
}
