package screen

import (
	"strconv"

	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// Halves is how wide the two panes of a wide view are.
func Halves(w int) (left, right int) {
	left = w * 82 / 140
	return left, w - left - 2
}

// Beside joins the two panes of a wide view.
func (e *Env) Beside(left, right []string, w, h int) []string {
	lw, rw := Halves(w)
	return widget.Beside(left, right, lw, rw, h, e.Dim("│")+" ")
}

// Scroller is how far a text is scrolled.
type Scroller struct{ offset int }

// Do carries out the actions that scroll a text: by a line, by half a page, or to an end, of which
// last is the offset. It reports whether the action was one of them.
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

// Shown are the h lines in sight, from offset at on.
func (s Scroller) Shown(lines []string, h int) (shown []string, at int) {
	at = max(0, min(s.offset, len(lines)-h))
	return lines[at:max(at, min(len(lines), at+h))], at
}

// Window are h lines from the offset on, the last of which says how many more there are.
func (s Scroller) Window(lines []string, h int, th *theme.Theme) []string {
	shown, _ := widget.Window(lines, s.offset, h, th)
	return shown
}

// Page is a text that takes the whole body; its last line says which keys close it.
func (s Scroller) Page(e *Env, lines []string, w, h int) []string {
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

// Tabs are the names of the sections of a view, with the one in sight lit up.
func (e *Env) Tabs(names []string, at int) string {
	text := ""
	for i, name := range names {
		if i > 0 {
			text += " · "
		}
		if i == at {
			name = e.Paint(theme.Accent, "["+name+"]")
		}
		text += name
	}
	return text
}

// Heading is the title of a pane, lit up while the keys go there.
func (e *Env) Heading(lit bool, title string) string {
	if lit {
		return e.Paint(theme.Accent, title)
	}
	return e.Dim(title)
}

// Fact is a name, and what is known under it.
type Fact struct{ Name, Text string }

// Label is the name of a fact in n cells.
func (e *Env) Label(name string, n int) string { return e.Dim(widget.Left(name, n)) }

// Facts are facts below each other, their names in n cells, each on as many lines of at most w
// cells as its text needs. Those without a text are left out.
func (e *Env) Facts(list []Fact, n, w int) []string {
	var lines []string
	for _, fact := range list {
		if fact.Text == "" {
			continue
		}
		for i, part := range widget.Wrap(fact.Text, max(8, w-n)) {
			if i > 0 {
				fact.Name = ""
			}
			lines = append(lines, e.Label(fact.Name, n)+part)
		}
	}
	return lines
}

// Indented are lines one cell further right; empty ones stay empty.
func Indented(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		if line != "" {
			out[i] = " " + line
		}
	}
	return out
}
