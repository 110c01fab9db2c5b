package app

import (
	"errors"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/widget"
)

// longValue bounds the length of values that may be documents.
const longValue = 100_000

// formFields are the fields of an act as a form asks for them.
func formFields(list []act.Field) []widget.FormField {
	fields := make([]widget.FormField, len(list))
	for i, f := range list {
		fields[i] = widget.FormField{
			Name: f.Name, Label: f.Label, Value: f.Value, Hint: f.Hint, Check: f.Check, Choices: f.Choices, Optional: f.Optional, Secret: f.Secret,
			Replace: f.Number,
		}
		if f.Long {
			fields[i].Limit = longValue
		}
	}
	return fields
}

// formLines draws the form below what the act is about, of which it leaves enough.
func (m *Model) formLines(w, h int) []string {
	d := &m.dialog
	if d.item.About == "" {
		return d.form.Lines(w, h, m.env.Theme)
	}
	about := []string{}
	for _, paragraph := range widget.CleanLines(d.item.About) {
		about = append(about, widget.Wrap(paragraph, w)...)
	}
	if most := max(1, h/3); len(about) > most {
		about = append(about[:most-1:most-1], "…")
	}
	about = append(about, "")
	return append(about, d.form.Lines(w, h-len(about), m.env.Theme)...)
}

// backToForm leaves the plan and turns back to the form that it was made from, which
// still says what was written. Without one, or after something was run, the dialog
// closes.
func (m *Model) backToForm() tea.Cmd {
	d := &m.dialog
	if d.form == nil || !d.op.Ran.IsZero() {
		return m.closeDialog()
	}
	m.leave(d.op, "left; nothing was done")
	if d.cancel != nil {
		d.cancel()
	}
	d.scope, d.op, d.cancel, d.plan, d.confirm = keymap.InForm, nil, nil, nil, nil
	d.form.Select()
	return nil
}

// unplanned takes over why there is no plan. What was written wrongly leads back to
// its form, which says so beside the fields.
func (m *Model) unplanned(err error) {
	d, op := &m.dialog, m.dialog.op
	if invalid, ok := errors.AsType[*act.InvalidError](err); ok && d.form != nil {
		m.leave(op, "it did not fit: "+widget.Clean(invalid.Error()))
		d.form.Refuse(invalid.Problems)
		d.scope, d.op, d.cancel = keymap.InForm, nil, nil
		return
	}
	op.State, op.Err, op.Ended = act.Failed, widget.Clean(planReason(err).Error()), m.env.Clock
	d.scope = keymap.InFailed
}
