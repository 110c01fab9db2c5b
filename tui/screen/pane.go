package screen

import (
	"slices"
	"strconv"
	"strings"

	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// Halves are the widths of the two panes of a wide view.
func Halves(w int) (left, right int) {
	left = w * 82 / 140
	return left, w - left - 2
}

// Beside joins the two panes of a wide view.
func (e *Env) Beside(left, right []string, w, h int) []string {
	lw, rw := Halves(w)
	return widget.Beside(left, right, lw, rw, h, e.Dim("│")+" ")
}

// Scroller is the scroll offset of a text.
type Scroller struct{ offset int }

// Do carries out an action that scrolls. Last is the offset of the end. It is false for other actions.
func (s *Scroller) Do(action keymap.Action, page, last int) bool {
	at := min(s.offset, max(0, last))
	switch action {
	case keymap.RowDown:
		at++
	case keymap.RowUp:
		at--
	case keymap.HalfDown:
		at += max(1, page/2)
	case keymap.HalfUp:
		at -= max(1, page/2)
	case keymap.Top:
		at = 0
	case keymap.Bottom:
		at = last
	default:
		return false
	}
	s.offset = max(0, min(at, last))
	return true
}

// Shown are the h visible lines and the offset of the first.
func (s *Scroller) Shown(lines []string, h int) (shown []string, at int) {
	at = max(0, min(s.offset, len(lines)-h))
	return lines[at:max(at, min(len(lines), at+h))], at
}

// Window are h visible lines; the last one counts the lines that do not fit.
func (s *Scroller) Window(lines []string, h int, th *theme.Theme) []string {
	shown, _ := widget.Window(lines, s.offset, h, th)
	return shown
}

// Page is a text that takes the whole body; its last line says which keys close it.
func (s *Scroller) Page(e *Env, lines []string, w, h int) []string {
	shown, _ := s.Shown(lines, h-1)
	return append(widget.Fit(shown, w, h-1), e.Dim(" "+strconv.Itoa(len(lines))+" lines · W or esc closes"))
}

// WindowEnd is the last offset of a window of h lines.
func WindowEnd(lines, h int) int {
	if lines <= h {
		return 0
	}
	return lines - h + 1
}

// Tabs are the names of the sections of a view in at most w cells, if they fit; the one at an index is highlighted.
func (e *Env) Tabs(names []string, at, w int) string {
	tabs := slices.Clone(names)
	tabs[at] = e.Paint(theme.Accent, "["+tabs[at]+"]")
	if line := strings.Join(tabs, " · "); widget.Width(line) <= w {
		return line
	}
	return strings.Join(tabs, " ")
}

// Paned is a screen with several panes of which the first stands below the title rule.
type Paned interface {
	// InFirst reports whether the first pane has the focus.
	InFirst() bool
}

// Lit is the role of the title rule of a pane: it shows which pane has the focus.
func Lit(focused bool) theme.Role {
	if focused {
		return theme.Accent
	}
	return theme.Dim
}

// Fact is a labelled text.
type Fact struct{ Name, Text string }

// Label is a dim label in n cells.
func (e *Env) Label(name string, n int) string { return e.Dim(widget.Left(name, n)) }

// Facts are facts below each other, with labels of n cells, wrapped at w cells. Facts without a text are
// left out.
func (e *Env) Facts(list []Fact, n, w int) []string {
	var lines []string
	for _, fact := range list {
		if fact.Text == "" {
			continue
		}
		for _, part := range widget.Wrap(fact.Text, max(8, w-n)) {
			lines = append(lines, e.Label(fact.Name, n)+part)
			fact.Name = ""
		}
	}
	return lines
}

// Indented are the lines one cell further right. Empty lines stay empty.
func Indented(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		if line != "" {
			out[i] = " " + line
		}
	}
	return out
}
