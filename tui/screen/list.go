package screen

import (
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
