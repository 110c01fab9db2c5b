package app

import (
	"slices"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/widget"
)

// actMenu is the menu of acts on the selected or the marked rows.
type actMenu struct {
	menu

	acts act.Menu
}

// openMenu opens the menu of acts. It returns nil if there is none.
func (m *Model) openMenu() *actMenu {
	if m.tooSmall() {
		return nil
	}
	if m.refused() {
		return nil
	}
	actionable, ok := m.screen().(screen.Actionable)
	if !ok {
		m.say("There are no actions in this view.")
		return nil
	}
	acts, ok := actionable.Acts()
	if !ok || len(acts.Items) == 0 {
		m.say("There is no action for this row.")
		return nil
	}
	lines := make([]widget.Choice, len(acts.Items))
	for i, item := range acts.Items {
		lines[i] = widget.Choice{Key: item.Key, Label: item.Label, Help: item.Help, Not: item.Not}
	}
	o := &actMenu{acts: acts}
	o.menu = menu{keys: keymap.InMenu, title: acts.Target.Name, list: widget.NewMenu(lines), choose: o.chosen}
	m.push(o)
	return o
}

// refused reports whether acting is disabled, and says why.
func (m *Model) refused() bool {
	if m.env.Locked != "" {
		m.say("Acting is disabled: " + m.env.Locked)
	}
	return m.env.Locked != ""
}

// chosen opens the form of an act, or plans an act without a form.
func (o *actMenu) chosen(m *Model, at int) tea.Cmd {
	item := o.acts.Items[at]
	if item.Target.Name == "" {
		item.Target = o.acts.Target
	}
	request := act.Request{Kind: item.Kind, Target: item.Target, Targets: o.acts.Targets}
	if len(item.Fields) == 0 {
		return m.plan(m.replace, item, request)
	}
	m.push(&form{item: item, request: request, fields: widget.NewForm(formFields(item.Fields))})
	return nil
}

// byKey lists the acts with a key of their own; the first one in the menu is chosen.
var byKey = map[keymap.Action][]act.Kind{
	keymap.Requeue: {act.RequeueDeadLetter, act.RetryExecution, act.RetryTask, act.RetryWorkflow},
	keymap.Discard: {act.DiscardDeadLetter},
	keymap.Purge:   {act.DiscardAllDeadLetters, act.DiscardDeadLetter},
	keymap.MoveTo:  {act.SendDeadLetters},
	keymap.Undo:    {act.UndoDeadLetters},
	keymap.Take:    {act.TakeDeadLetters},
}

// actAtOnce opens the menu and chooses the act of a key. An act that does not apply stays in the menu with its
// reason.
func (m *Model) actAtOnce(action keymap.Action) tea.Cmd {
	if action == keymap.Purge && m.env.Locked == "" && m.view == keymap.InDeadLetters &&
		m.deadLetters.DiscardsFiltered() {
		return m.markAllFor(action) // the plan is for the rows that match now
	}
	o := m.openMenu()
	if o == nil {
		return nil
	}
	for _, kind := range byKey[action] {
		for _, item := range o.acts.Items {
			if item.Kind == kind {
				o.list.Select(item.Key)
				return o.take(m)
			}
		}
	}
	return nil
}

// undo plans to undo the marked dead letters, the last act of this session, or the selected dead letter. The last act
// comes before the selected row if its receipt is shown or the row is a part of it: its receipt says "u undoes it".
func (m *Model) undo() tea.Cmd {
	if m.refused() {
		return nil
	}
	last := m.lastUndoable()
	if actionable, ok := m.screen().(screen.Actionable); ok {
		acts, ok := actionable.Acts()
		if ok && acts.Can(act.UndoDeadLetters) && (len(acts.Targets) > 0 || !m.isJustDone(last, acts.Target)) {
			return m.actAtOnce(keymap.Undo)
		}
	}
	if last == nil {
		m.say("This session has nothing to undo: no discard, no take and no move.")
		return nil
	}
	return m.plan(m.push, act.Item{}, *last.Receipt.Undo)
}

// lastUndoable is the last act of this session that can be undone, or nil.
func (m *Model) lastUndoable() *act.Operation {
	for _, op := range slices.Backward(m.env.Session) {
		if op.Receipt != nil && op.Receipt.Undo != nil {
			return op
		}
	}
	return nil
}

// isJustDone reports whether the receipt of an operation is shown, or the operation decided about the row.
func (m *Model) isJustDone(op *act.Operation, row act.Target) bool {
	if op == nil {
		return false
	}
	shown := len(m.reports) > 0 && m.reports[len(m.reports)-1] == op
	return shown || slices.ContainsFunc(op.Receipt.Undo.Targets, func(t act.Target) bool { return t.ID == row.ID })
}
