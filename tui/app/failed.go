package app

import (
	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// failed shows why there is no plan, or why an act failed and what it did before.
type failed struct {
	dialog

	item act.Item
	op   *act.Operation
}

func (o *failed) scope() keymap.Scope { return keymap.InFailed }

func (o *failed) key(m *Model, action keymap.Action, _ tea.KeyMsg) tea.Cmd {
	switch {
	case action == keymap.Refresh:
		return m.plan(m.replace, o.item, o.op.Order)
	case action == keymap.Back && o.op.Ran.IsZero():
		m.backToForm()
	case action == keymap.Back:
		m.closeDialog()
	}
	return nil
}

func (o *failed) draw(m *Model, f *frame) {
	list := []widget.Text{{Role: theme.Bad, Text: "✗ " + o.op.Err}}
	if o.op.Ran.IsZero() {
		list = append(list, widget.Text{Text: "Nothing was changed."})
	} else {
		list = append(list, receiptTexts(o.op)...)
	}
	list = append(list, widget.Text{Role: theme.Dim, Text: "r plans it again on newer facts; L keeps this."})
	f.box(m, keymap.InFailed, box{title: widget.Clean(o.op.Title), role: theme.Bad, lines: func(w, h int) []string {
		lines, _ := widget.Window(widget.Paragraphs(list, w, m.env.Theme), 0, h, m.env.Theme)
		return lines
	}})
}
