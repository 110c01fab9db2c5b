package app

import (
	"cmp"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// form asks for the values of an act. It lies above the menu and stays below the plan.
type form struct {
	dialog

	item act.Item
	// request has no values of the form yet.
	request act.Request
	fields  *widget.Form
}

func (o *form) scope() keymap.Scope { return keymap.InForm }

func (o *form) key(m *Model, action keymap.Action, msg tea.KeyMsg) tea.Cmd {
	switch action {
	case keymap.Back:
		m.pop()
	case keymap.NextPane:
		o.fields.Move(1)
	case keymap.PrevPane:
		o.fields.Move(-1)
	case keymap.Choose:
		if o.fields.Next() {
			request := o.request
			request.Values = o.fields.Values()
			return m.plan(m.push, o.item, request)
		}
	default:
		o.fields.Update(msg)
	}
	return nil
}

// draw draws the form below a description of the act.
func (o *form) draw(m *Model, f *frame) {
	title := o.item.Label + " " + widget.Clean(cmp.Or(o.item.Touches, o.item.Target.Name))
	var unused []keymap.Action
	if len(o.item.Fields) == 1 {
		unused = []keymap.Action{keymap.NextPane}
	}
	f.box(m, keymap.InForm, box{title: title, role: theme.Accent, unused: unused, lines: func(w, h int) []string {
		if o.item.About == "" {
			return o.fields.Lines(w, h, m.env.Theme)
		}
		about := []string{}
		for _, paragraph := range widget.CleanLines(o.item.About) {
			about = append(about, widget.Wrap(paragraph, w)...)
		}
		if most := max(1, h/3); len(about) > most {
			about = append(about[:most-1:most-1], "…")
		}
		about = append(about, "")
		return append(about, o.fields.Lines(w, h-len(about), m.env.Theme)...)
	}})
}

// longValue bounds the length of documents.
const longValue = 100_000

func formFields(list []act.Field) []widget.FormField {
	fields := make([]widget.FormField, len(list))
	for i, f := range list {
		fields[i] = widget.FormField{
			Name: f.Name, Label: f.Label, Value: f.Value, Hint: f.Hint, Check: f.Check, Choices: f.Choices,
			Optional: f.Optional, Secret: f.Secret, Replace: f.Type == act.Number,
		}
		if f.Long {
			fields[i].Limit = longValue
		}
	}
	return fields
}
