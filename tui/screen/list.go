package screen

import (
	"strconv"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// PreviewHeight is the height of a preview; zero if the screen is too small for one.
func PreviewHeight(w, h int, wanted bool) int {
	if !wanted || w < 120 || h < 25 {
		return 0
	}
	return h * 2 / 5
}

// Tabular is a screen with a table, whose rows can be marked and columns chosen.
type Tabular interface {
	Table() *widget.Table
}

// MoveTable carries out actions on a table: moving the cursor, marking, scrolling and unfolding. It is
// false for other actions.
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

// GoneNote says that the selected row is no longer in the data.
func (e *Env) GoneNote(t *widget.Table, what string) string {
	if t.Gone() == "" {
		return ""
	}
	return e.Paint(theme.Warn, " ▲ "+what+" is no longer in the list")
}

// Worry is a cell that warns if it is bad.
func (e *Env) Worry(text string, bad bool) widget.Cell {
	if bad {
		return widget.Cell{Text: text, Role: theme.Warn}
	}
	return widget.Cell{Text: text}
}

// Queryable is a screen that is filtered in the language of package filter.
type Queryable interface {
	Filterable
	Schema() filter.Schema
	// Known lists known values of a field for completion.
	Known(field string) []string
	// Live reports whether a filter applies while it is typed, because nothing is read for it.
	Live() bool
}

// StoreFilter is the Ask of a list's database: it converts the filter and stores it for the next reading.
func StoreFilter[F any](into *F, convert func(*filter.Query) (F, error)) func(*filter.Query) error {
	return func(q *filter.Query) error {
		f, err := convert(q)
		if err == nil {
			*into = f
		}
		return err
	}
}

// RowSearch is a search in the rows of a table, for views without a filter. A screen embeds it.
type RowSearch struct{ query string }

// Query is the searched text.
func (s *RowSearch) Query() string { return s.query }

// SearchIn goes to the first match from the cursor on and counts the matches.
func (s *RowSearch) SearchIn(t *widget.Table, text string) int {
	s.query = text
	if t == nil {
		return 0
	}
	return t.Find(text, 0)
}

// Again goes to the next or the previous match. It is false for other actions.
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

// Targets are the targets of an action with numeric keys.
func Targets(keys []string) []act.Target {
	targets := make([]act.Target, 0, len(keys))
	for _, key := range keys {
		if id, err := strconv.ParseInt(key, 10, 64); err == nil {
			targets = append(targets, act.Target{ID: id, Name: key})
		}
	}
	return targets
}
