package widget

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/attune-go/attune/tui/theme"
)

// Box draws a frame w cells wide around lines. The title stands in the upper edge, the note in the lower one.
func Box(title, note string, lines []string, w int, role theme.Role, th *theme.Theme) []string {
	inner := max(1, w-4)
	out := make([]string, 0, len(lines)+2)
	out = append(out, edge("┌", "┐", title, w, role, th))
	bar := th.Paint(role, "│")
	for _, line := range lines {
		line = Cut(line, inner)
		out = append(out, bar+" "+line+Blank(inner-Width(line))+" "+bar)
	}
	return append(out, edge("└", "┘", note, w, role, th))
}

func edge(left, right, text string, w int, role theme.Role, th *theme.Theme) string {
	if text != "" {
		text = " " + Cut(text, max(1, w-6)) + " "
	}
	fill := max(0, w-3-Width(text))
	return th.Paint(role, left+"─") + th.Paint(theme.Strong, text) + th.Paint(role, strings.Repeat("─", fill)+right)
}

// sliver is the number of cells beside a block that Overlay leaves blank: half a word there would look like part of
// the dialog.
const sliver = 3

// Overlay lays a block on a frame of w cells, with its upper left corner at x and y. The frame loses its colours in
// those lines, so that the block stands out.
func Overlay(frame, block []string, x, y, w int, th *theme.Theme) []string {
	out := make([]string, len(frame))
	copy(out, frame)
	for i, line := range block {
		at := y + i
		if at < 0 || at >= len(out) {
			continue
		}
		below := ansi.Strip(out[at])
		below += Blank(w - Width(below))
		left := ""
		if x > sliver {
			left = ansi.Truncate(below, x, "")
		}
		left += Blank(x - Width(left)) // a wide character may be cut in half
		room := max(0, w-x-Width(line))
		right := ""
		if room > sliver {
			right = ansi.TruncateLeft(below, x+Width(line), "")
		}
		for cut := 1; Width(right) > room; cut++ { // as above, on the other side
			right = ansi.TruncateLeft(below, x+Width(line)+cut, "")
		}
		right = Blank(room-Width(right)) + right
		out[at] = th.Paint(theme.Dim, left) + line + th.Paint(theme.Dim, right)
	}
	return out
}

// Fade takes the colours from lines and draws them dim.
func Fade(lines []string, th *theme.Theme) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = th.Paint(theme.Dim, ansi.Strip(line))
	}
	return out
}

// Bar draws how much of something is done in w cells.
func Bar(done, total int64, w int) string {
	if total <= 0 || w <= 0 {
		return ""
	}
	full := int(min(max(done, 0), total) * int64(w) / total)
	return strings.Repeat("█", full) + strings.Repeat("░", w-full)
}

// Window returns h of the lines from an offset on. Its last line counts the hidden ones. It also returns the offset,
// moved into the bounds.
func Window(lines []string, offset, h int, th *theme.Theme) (shown []string, kept int) {
	if len(lines) <= h {
		return lines, 0
	}
	if h < 2 {
		return lines[:max(h, 0)], 0
	}
	kept = max(0, min(offset, len(lines)-h+1))
	end := min(len(lines), kept+h-1)
	shown = append(shown, lines[kept:end]...)
	note := "… " + Number(int64(len(lines)-end), " ") + " more lines: pgdn"
	if end == len(lines) {
		note = "… " + Number(int64(kept), " ") + " lines above: pgup"
	}
	return append(shown, th.Paint(theme.Dim, note)), kept
}

// Toast is a short report in a corner of the screen.
type Toast struct {
	// Role is the colour of the frame.
	Role  theme.Role
	Title string
	Texts []Text
	Note  string
}

// The largest size of a toast.
const (
	maxToastWidth = 66
	maxToastLines = 7
)

// Lines draws the toast as narrow as its texts allow, at most w cells wide and h lines high.
func (t *Toast) Lines(w, h int, th *theme.Theme) []string {
	w = min(w, maxToastWidth)
	body := Paragraphs(t.Texts, w-4, th)
	if most := max(min(h-2, maxToastLines), 1); len(body) > most {
		more := "… " + Number(int64(len(body)-most+1), " ") + " more lines"
		body = append(body[:most-1:most-1], th.Paint(theme.Dim, more))
	}
	widest := max(Width(t.Title), Width(t.Note)) + 4
	for _, line := range body {
		widest = max(widest, Width(line))
	}
	return Box(t.Title, t.Note, body, min(w, widest+4), t.Role, th)
}
