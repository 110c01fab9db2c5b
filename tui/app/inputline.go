package app

import (
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// inputLine is the base of overlays that edit a text on the message line.
type inputLine struct {
	layer

	input *widget.Input
}

func newInputLine(text string) inputLine { return inputLine{input: widget.NewInput(text, 0)} }

// line draws the text with its caret, the wrong part in red, and a note after it.
func (o *inputLine) line(m *Model, wrong filter.Span, note string) string {
	line := " /" + o.typed(m, wrong)
	if over := widget.Width(line) + min(widget.Width(note)+3, m.width/2) - m.width; over > 0 {
		line = " …" + ansi.TruncateLeft(line, over+2, "")
	}
	return widget.Cut(line+"  "+note, m.width)
}

func (o *inputLine) typed(m *Model, wrong filter.Span) string {
	text, caret := o.input.Value(), o.input.Caret()
	edges := []int{0, caret, min(wrong.From, len(text)), min(wrong.To, len(text)), len(text)}
	slices.Sort(edges)
	var b strings.Builder
	drawn := false
	for i, from := range edges {
		if from == caret && !drawn {
			b.WriteString(m.env.Paint(theme.Accent, "▌"))
			drawn = true
		}
		if i+1 == len(edges) {
			break
		}
		role := theme.Plain
		if from >= wrong.From && from < wrong.To {
			role = theme.Bad
		}
		b.WriteString(m.env.Paint(role, widget.Clean(text[from:edges[i+1]])))
	}
	return b.String()
}

// searchLine is the input line of a search.
type searchLine struct{ inputLine }

func (o *searchLine) key(m *Model, _ keymap.Action, msg tea.KeyMsg) tea.Cmd {
	switch msg.String() {
	case "enter":
		m.pop()
		wanted := o.input.Value()
		if s, ok := m.screen().(screen.Searchable); ok && s.Search(wanted) == 0 && wanted != "" {
			text := "Nothing here has " + wanted
			if cut, ok := m.screen().(screen.Cut); ok && cut.Beyond() != "" {
				text += "; " + cut.Beyond()
			}
			m.say(text)
		}
	case "esc":
		m.pop()
	default:
		o.input.Update(msg)
	}
	return nil
}

func (o *searchLine) draw(m *Model, f *frame) {
	f.message = o.line(m, filter.Span{}, "")
	f.keys = " " + m.keyHint("enter", "search") + "  " + m.keyHint("esc", "close")
}

// sortLine asks for the number of a sort order.
type sortLine struct{ layer }

func (o *sortLine) key(m *Model, _ keymap.Action, msg tea.KeyMsg) tea.Cmd {
	m.pop()
	s, ok := m.screen().(screen.Sortable)
	name := msg.String()
	if !ok || len(name) != 1 {
		return nil
	}
	at := int(name[0]) - '1'
	if at < 0 || at >= len(s.SortKeys()) {
		return nil
	}
	return m.sortBy(s, s.Order().By(at))
}

func (o *sortLine) draw(m *Model, f *frame) {
	s, ok := m.screen().(screen.Sortable)
	if !ok {
		return
	}
	var parts []string
	for i, key := range s.SortKeys() {
		parts = append(parts, m.env.Paint(theme.Accent, string(rune('1'+i)))+" "+key)
	}
	f.message = " sort by  " + strings.Join(parts, "  ") + "   esc keeps"
}

// sortBy changes the sort order, and reads the list again if the database sorts.
func (m *Model) sortBy(s screen.Sortable, order screen.Order) tea.Cmd {
	if t := m.table(); t != nil {
		t.Anew(true)
	}
	s.SetOrder(order)
	if q, ok := s.(screen.Queryable); ok && !q.Live() {
		return m.restartView()
	}
	return nil
}
