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

// farDown is an offset below every end; what is drawn keeps it inside.
const farDown = 1 << 20

// Scroll carries out the actions that scroll a text of which h lines are in sight. It
// reports whether the action was one of them. What is drawn keeps the offset from
// going beyond the end.
func Scroll(offset *int, action keymap.Action, h int) bool {
	switch action {
	case keymap.RowDown:
		*offset++
	case keymap.RowUp:
		*offset--
	case keymap.HalfDown:
		*offset += max(1, h/2)
	case keymap.HalfUp:
		*offset -= max(1, h/2)
	case keymap.Top:
		*offset = 0
	case keymap.Bottom:
		*offset = farDown
	default:
		return false
	}
	*offset = max(0, *offset)
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
