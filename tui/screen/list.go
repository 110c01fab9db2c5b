package screen

import (
	"strconv"
	"strings"

	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// PreviewHeight is how many lines of the body a preview takes, or zero when the
// screen is too small for one.
func PreviewHeight(w, h int, wanted bool) int {
	if !wanted || w < 120 || h < 25 {
		return 0
	}
	return h * 2 / 5
}

// Tabular is a screen with a table whose rows can be marked and whose columns can
// be chosen.
type Tabular interface {
	Table() *widget.Table
}

// MoveTable carries out the actions that move a cursor, mark rows, scroll columns or
// unfold the row under the cursor. It reports whether the action was one of them.
func MoveTable(t *widget.Table, action keymap.Action) bool {
	switch action {
	case keymap.RowDown:
		t.Move(1)
	case keymap.RowUp:
		t.Move(-1)
	case keymap.HalfDown:
		t.Page(1)
	case keymap.HalfUp:
		t.Page(-1)
	case keymap.Top:
		t.Top()
	case keymap.Bottom:
		t.Bottom()
	case keymap.Left:
		t.ScrollColumns(-1)
	case keymap.Right:
		t.ScrollColumns(1)
	case keymap.Mark:
		t.Mark()
	case keymap.MarkRange:
		t.MarkRange()
	case keymap.MarkAll:
		t.MarkAll()
	case keymap.Unmark:
		t.Unmark()
	case keymap.Wrap:
		t.ToggleWrap()
	default:
		return false
	}
	return true
}

// GoneNote says that the row under the cursor has left the data.
func (e *Env) GoneNote(t *widget.Table, what string) string {
	if t.Gone() == "" {
		return ""
	}
	return e.Paint(theme.Warn, " ▲ "+what+" is no longer in the list")
}

// Worry is a cell whose colour says how worrying a state is.
func (e *Env) Worry(text string, bad bool) widget.Cell {
	if bad {
		return widget.Cell{Text: text, Role: theme.Warn}
	}
	return widget.Cell{Text: text}
}

// Queryable is a screen that is filtered in the language of package filter.
type Queryable interface {
	Filterable
	// Schema is what its rows can be filtered by.
	Schema() filter.Schema
	// Known lists values of a field that are known now, to complete with.
	Known(field string) []string
	// Live reports whether a filter can be tried while it is typed, since nothing has
	// to be read for it.
	Live() bool
}

// NoMatch explains that a filter of the database matches no row.
func NoMatch(what, text string, problems bool, schema filter.Schema) []string {
	line := " No " + what + " matches /" + widget.Clean(text) + "."
	if problems {
		line = " No " + what + " with a problem matches /" + widget.Clean(text) + " (z shows all)."
	}
	return []string{"", line, " esc clears the filter; terms: " + strings.Join(schema.Examples(), "  ")}
}

// Distinct collects values without repeating them, in the order they come.
type Distinct struct {
	list []string
	seen map[string]bool
}

// Add takes a value; empty ones are left out.
func (d *Distinct) Add(values ...string) {
	for _, v := range values {
		if v == "" || d.seen[v] {
			continue
		}
		if d.seen == nil {
			d.seen = map[string]bool{}
		}
		d.seen[v] = true
		d.list = append(d.list, v)
	}
}

// List is what was added.
func (d *Distinct) List() []string { return d.list }

// RowSearch is a search through the rows of a table, for views that are not filtered
// because they show one thing. A screen embeds it.
type RowSearch struct{ query string }

// Query is the text that is looked for.
func (s *RowSearch) Query() string { return s.query }

// SearchIn goes to the first row from the cursor on that has the text, and counts them.
func (s *RowSearch) SearchIn(t *widget.Table, text string) int {
	s.query = text
	if t == nil {
		return 0
	}
	return t.Find(text, 0)
}

// Again goes to the next row that has the text, or to the one before. It reports
// whether the action was one of these.
func (s *RowSearch) Again(t *widget.Table, action keymap.Action) bool {
	step := map[keymap.Action]int{keymap.NextMatch: 1, keymap.PrevMatch: -1}[action]
	if step == 0 || t == nil {
		return step != 0
	}
	t.Find(s.query, step)
	return true
}

// Tone is the role in which a line of a plan or a receipt is painted.
func Tone(tone act.Tone) theme.Role {
	switch tone {
	case act.Note:
		return theme.Dim
	case act.Good:
		return theme.Good
	case act.Warn:
		return theme.Warn
	case act.Danger:
		return theme.Bad
	default:
		return theme.Plain
	}
}

// Targets are the rows of keys that are numbers, to be acted upon.
func Targets(keys []string) []act.Target {
	targets := make([]act.Target, 0, len(keys))
	for _, key := range keys {
		if id, err := strconv.ParseInt(key, 10, 64); err == nil {
			targets = append(targets, act.Target{ID: id, Name: key})
		}
	}
	return targets
}
