package widget

import (
	"github.com/attune-go/attune/tui/theme"
)

// Choice is one line of a menu.
type Choice struct {
	Key         string
	Label, Help string
	// Not says why the line cannot be chosen; empty if it can.
	Not string
}

// Menu is a list of choices with a cursor. A line that cannot be chosen stays in its place and says why, so that
// positions never change.
type Menu struct {
	choices []Choice
	cursor  int
	offset  int
}

// NewMenu makes a menu with the cursor on the first line that can be chosen.
func NewMenu(choices []Choice) *Menu {
	m := &Menu{choices: choices}
	for i, c := range choices {
		if c.Not == "" {
			m.cursor = i
			break
		}
	}
	return m
}

// Move moves the cursor by n lines.
func (m *Menu) Move(n int) { m.cursor = max(0, min(m.cursor+n, len(m.choices)-1)) }

// Cursor is the line under the cursor, or -1 in an empty menu.
func (m *Menu) Cursor() int {
	if len(m.choices) == 0 {
		return -1
	}
	return m.cursor
}

// Chosen is the line under the cursor; false in an empty menu.
func (m *Menu) Chosen() (Choice, bool) {
	if len(m.choices) == 0 {
		return Choice{}, false
	}
	return m.choices[m.cursor], true
}

// Select puts the cursor on the line with the letter.
func (m *Menu) Select(key string) bool {
	for i, c := range m.choices {
		if c.Key != "" && c.Key == key {
			m.cursor = i
			return true
		}
	}
	return false
}

// Width is the width of the uncut menu.
func (m *Menu) Width() int {
	label, help := 0, 0
	for _, c := range m.choices {
		label, help = max(label, Width(c.Label)), max(help, Width(c.text()))
	}
	return label + help + 7
}

func (c Choice) text() string {
	if c.Not != "" {
		return "not now: " + Clean(c.Not)
	}
	return Clean(c.Help)
}

// from is the first of h visible lines.
func (m *Menu) from(h int) int {
	h = max(1, min(h, len(m.choices)))
	return max(0, min(max(m.offset, m.cursor-h+1), m.cursor, len(m.choices)-h))
}

// Fit scrolls a menu of h lines to its cursor.
func (m *Menu) Fit(h int) { m.offset = m.from(h) }

// Lines draws the menu w cells wide and at most h lines high.
func (m *Menu) Lines(w, h int, th *theme.Theme) []string {
	label := 0
	for _, c := range m.choices {
		label = max(label, Width(c.Label))
	}
	from := m.from(h)
	h = max(1, min(h, len(m.choices)))
	out := make([]string, 0, h)
	for i := from; i < len(m.choices) && len(out) < h; i++ {
		out = append(out, m.line(i, label, w, th))
	}
	return out
}

func (m *Menu) line(i, label, w int, th *theme.Theme) string {
	c := m.choices[i]
	mark := " "
	if i == m.cursor {
		mark = th.Glyphs.Cursor
	}
	text := Left(mark+" "+c.Key+"  "+Left(c.Label, label)+"  "+c.text(), w)
	switch {
	case i == m.cursor:
		return th.Start(theme.Cursor) + text + th.Stop(theme.Cursor)
	case c.Not != "":
		return th.Paint(theme.Dim, text)
	default:
		return mark + " " + th.Paint(theme.Accent, c.Key) + "  " + Left(c.Label, label) + "  " +
			th.Paint(theme.Dim, Cut(c.text(), max(0, w-label-6)))
	}
}
