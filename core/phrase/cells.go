package phrase

import (
	"regexp"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Width is the number of cells of a text without its escape sequences.
func Width(s string) int {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return ansi.StringWidth(s)
		}
	}
	return len(s)
}

// Cut shortens a text to w cells and marks the cut with an ellipsis. It keeps no part of a number: that would be
// another number.
func Cut(s string, w int) string {
	if w <= 0 {
		return ""
	}
	if len(s) <= w || Width(s) <= w {
		return s
	}
	cut := ansi.Truncate(s, w, "…")
	at := max(0, strings.LastIndex(cut, "…")) // escape sequences may follow
	number := inNumber.FindString(cut[:at])
	if number == "" {
		return cut
	}
	if rest, ok := strings.CutPrefix(ansi.Strip(s), ansi.Strip(cut[:at])); ok && goesOn.MatchString(rest) {
		return cut[:at-len(number)] + cut[at:]
	}
	return cut
}

// inNumber matches the number at the end of a text, goesOn the rest of one. Thin spaces group the digits of quantities.
var (
	inNumber = regexp.MustCompile(`((^| )[+-])?[0-9][0-9\x{2009}.]*$`)
	goesOn   = regexp.MustCompile(`^[\x{2009}.]?[0-9]`)
)

// CutMiddle shortens a text to w cells and keeps its beginning and end, since names often differ in their last
// letters.
func CutMiddle(s string, w int) string {
	width := Width(s)
	if width <= w {
		return s
	}
	if w < 5 {
		return Cut(s, w)
	}
	tail := (w - 1) / 3
	head := w - 1 - tail
	return Cut(ansi.Truncate(s, head, "")+"…"+ansi.TruncateLeft(s, width-tail, ""), w)
}

// Align replaces the tabs of a text by spaces, so that the cells of neighbouring lines begin in one column.
func Align(text string) string {
	var lines [][]string
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, strings.Split(line, "\t"))
	}
	for column, more := 0, true; more; column++ {
		more = false
		for begin := 0; begin < len(lines); begin++ {
			end, width := begin, 0
			for ; end < len(lines) && len(lines[end]) > column+1; end++ {
				width = max(width, Width(lines[end][column]))
			}
			for _, cells := range lines[begin:end] {
				cells[column] += strings.Repeat(" ", width-Width(cells[column])+2)
				more = true
			}
			begin = end
		}
	}
	var out strings.Builder
	for i, cells := range lines {
		if i > 0 {
			out.WriteByte('\n')
		}
		out.WriteString(strings.Join(cells, ""))
	}
	return out.String()
}
