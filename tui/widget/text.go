// Package widget draws the parts of views: text that is safe to show, numbers and ages in fixed units, tables, forms,
// menus, sparklines and charts. Widgets do no I/O and keep no clock. Drawing changes nothing: the same state draws
// the same lines.
package widget

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/attune-go/attune/core/phrase"
)

// Clean makes a text safe for a terminal, on one line: escape sequences, control characters, bidirectional overrides
// and invisible format characters are shown as escapes, line breaks and tabs become spaces, and invalid UTF-8 is
// replaced. Of a very long text it keeps the beginning and the end.
func Clean(s string) string {
	if len(s) > longest {
		s = whole(s[:longest*3/4]) + "…" + whole(s[len(s)-longest/4:])
	}
	if isPlain(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Co, r) || unicode.Is(unicode.Cs, r) {
			return utf8.RuneError
		}
		return r
	}, phrase.Line(s))
}

// longest is the number of bytes of a text that Clean reads: more than the largest screen has cells.
const longest = 16 << 10

// whole removes incomplete characters at both ends.
func whole(s string) string {
	for i := 0; i < utf8.UTFMax && s != "" && !utf8.RuneStart(s[0]); i++ {
		s = s[1:]
	}
	for range utf8.UTFMax {
		if r, size := utf8.DecodeLastRuneInString(s); r != utf8.RuneError || size != 1 {
			break
		}
		s = s[:len(s)-1]
	}
	return s
}

// isPlain reports whether s is printable ASCII, the common case.
func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// CleanLines cleans a text of several lines, keeping its line breaks.
func CleanLines(s string) []string {
	lines := strings.Split(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
	for i, line := range lines {
		lines[i] = Clean(strings.ReplaceAll(line, "\t", "    "))
	}
	return lines
}

// Width is the number of cells of a text without its escape sequences.
func Width(s string) int { return phrase.Width(s) }

// Cut shortens a text to w cells and marks the cut with an ellipsis.
func Cut(s string, w int) string { return phrase.Cut(s, w) }

// CutMiddle shortens a text to w cells and keeps its beginning and end.
func CutMiddle(s string, w int) string { return phrase.CutMiddle(s, w) }

// Blank returns n spaces.
func Blank(n int) string { return strings.Repeat(" ", max(n, 0)) }

// Left pads or cuts text to exactly w cells, text first.
func Left(s string, w int) string {
	s = Cut(s, w)
	return s + Blank(w-Width(s))
}

// quantity matches a number whose digits are grouped by thin spaces.
var quantity = regexp.MustCompile(`[0-9]{1,3}(\x{2009}[0-9]{3})+`)

// Right pads or cuts text to exactly w cells, text last. A quantity that is too wide goes to a shorter unit.
func Right(s string, w int) string {
	for digits, text := 1, s; digits >= 0 && Width(s) > w; digits-- {
		s = quantity.ReplaceAllStringFunc(text, func(written string) string {
			n, _ := strconv.ParseFloat(strings.ReplaceAll(written, "\u2009", ""), 64)
			return strings.TrimSuffix(strconv.FormatFloat(n/1000, 'f', digits, 64), ".0") + "k"
		})
	}
	s = Cut(s, w)
	return Blank(w-Width(s)) + s
}

// Spread puts left and right at the two ends of a line of w cells, and cuts the right one first.
func Spread(left, right string, w int) string {
	lw := Width(left)
	if lw >= w {
		return Cut(left, w)
	}
	right = Cut(right, max(0, w-lw-1))
	return left + Blank(w-lw-Width(right)) + right
}

// Fit makes a block of exactly w×h cells: it cuts longer lines and adds blank ones. It guarantees that no view breaks
// the screen.
func Fit(lines []string, w, h int) []string {
	out := make([]string, h)
	for i := range out {
		if i >= len(lines) {
			continue
		}
		out[i] = lines[i]
		if len(lines[i]) > w && Width(lines[i]) > w {
			out[i] = Cut(lines[i], w)
			if bare := strings.TrimRight(ansi.Strip(lines[i]), " "); Width(bare) <= w {
				out[i] = ansi.Truncate(lines[i], w, "") // nothing is missing
			}
		}
	}
	return out
}

// Beside joins two blocks with a bar between them and pads the left one to lw.
func Beside(left, right []string, lw, rw, h int, bar string) []string {
	left, right = Fit(left, lw, h), Fit(right, rw, h)
	out := make([]string, h)
	for i := range out {
		out[i] = left[i] + Blank(lw-Width(left[i])) + bar + right[i]
	}
	return out
}

// Wrap breaks a text into lines of at most w cells, preferably between words.
func Wrap(s string, w int) []string {
	return strings.Split(ansi.Wrap(Clean(s), max(w, 1), ""), "\n")
}

// Hang writes a text after a start, and wraps it below itself.
func Hang(start, text string, w int) []string {
	indent := Width(start)
	room := w - indent
	if room < 12 {
		return []string{Cut(start+text, w)}
	}
	var lines []string
	for i, part := range Wrap(text, room) {
		if i > 0 {
			start = Blank(indent)
		}
		lines = append(lines, start+part)
	}
	return lines
}
