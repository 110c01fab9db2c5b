package app

import (
	"slices"
	"strconv"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

func (m *Model) table() *widget.Table { return m.tableOf(m.view) }

// tableOf is the table of a view, or nil.
func (m *Model) tableOf(view screen.View) *widget.Table {
	if s, ok := m.screens[view].(screen.Tabular); ok {
		return s.Table()
	}
	return nil
}

// rearrange filters or sorts a view. An unmoved cursor stays on the first row.
func (m *Model) rearrange(view screen.View, change func() error) error {
	t := m.tableOf(view)
	if t != nil {
		t.Anew(true)
	}
	err := change()
	if t != nil && err != nil {
		t.Anew(false)
	}
	return err
}

// columns is the dialog that chooses the columns of a list.
type columns struct {
	dialog

	table *widget.Table
	list  *widget.Menu
}

// columnChoices lists the columns and whether they are on and fit.
func columnChoices(table *widget.Table) []widget.Choice {
	columns := table.Choosables()
	list := make([]widget.Choice, len(columns))
	for i, c := range columns {
		state, help := "[ ]", ""
		switch {
		case c.Fixed:
			state, help = "[x]", "names the row"
		case c.On && c.Fits:
			state = "[x]"
		case c.On:
			state, help = "[x]", "no room now: h l scroll to it"
		}
		list[i] = widget.Choice{Label: state + " " + c.Title, Help: help}
	}
	return list
}

func (o *columns) scope() keymap.Scope { return keymap.InColumns }

func (o *columns) key(m *Model, action keymap.Action, _ tea.KeyMsg) tea.Cmd {
	switch action {
	case keymap.RowDown:
		o.list.Move(1)
	case keymap.RowUp:
		o.list.Move(-1)
	case keymap.Yes:
		o.table.ResetColumns()
	case keymap.Choose:
		o.table.ToggleColumn(o.table.Choosables()[o.list.Cursor()].Column)
	case keymap.Back:
		m.closeDialog()
		return nil
	}
	m.resizeBody() // find out which columns fit
	at := o.list.Cursor()
	o.list = widget.NewMenu(columnChoices(o.table))
	o.list.Move(at - o.list.Cursor())
	_, h := m.boxRoom()
	o.list.Fit(h)
	return nil
}

func (o *columns) draw(m *Model, f *frame) {
	f.box(m, keymap.InColumns, box{
		title: "Columns", role: theme.Accent, width: max(o.list.Width(), widget.Width("Columns")+4),
		lines: func(w, h int) []string { return o.list.Lines(w, h, m.env.Theme) },
	})
}

// listNote describes the marks and hidden columns of the open view.
func (m *Model) listNote() string {
	table := m.table()
	if table == nil {
		return ""
	}
	space := m.env.Theme.Glyphs.Space
	note := table.MarkNote(space)
	if scrolled := table.ScrollNote(space); scrolled != "" {
		if note != "" {
			note += " · "
		}
		note += scrolled
	}
	return m.env.Paint(theme.Accent, widget.Cut(note, max(0, m.width-2)))
}

// markableViews maps the kinds of rows that can be marked to their views.
var markableViews = map[string]screen.View{
	"execution": keymap.InExecutions, "queue": keymap.InQueues,
	"worker": keymap.InWorkers, "workflow": keymap.InWorkflows, "inquiry": keymap.InInquiries,
	"dead letter": keymap.InDeadLetters,
}

// unmark removes the marks of processed rows. Rows that were not reached stay marked, so that the same act continues;
// after a failure all marks stay.
func (m *Model) unmark(op *act.Operation) {
	s, ok := m.screens[markableViews[op.Request.Kind.Of()]].(screen.Tabular)
	if !ok || op.Receipt == nil || op.State == act.Failed {
		return
	}
	var keys []string
	for _, target := range op.Request.Targets {
		if !slices.Contains(op.Receipt.Left, target.ID) {
			keys = append(keys, strconv.FormatInt(target.ID, 10))
		}
	}
	s.Table().UnmarkKeys(keys)
}
