package main

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// cell is one character, at most two columns wide, with its column; or a run of characters.
type cell struct {
	text     string
	x, width int
	style    style
}

// parse splits a frame into lines of cells. It drops blanks without a background.
func parse(frame string) [][]cell {
	var lines [][]cell
	now := unstyled
	for line := range strings.SplitSeq(strings.TrimSuffix(frame, "\n"), "\n") {
		var cells []cell
		cells, now = parseLine(line, now)
		lines = append(lines, cells)
	}
	return lines
}

// parseLine splits one line. The next line starts with the style after it.
func parseLine(line string, now style) (cells []cell, after style) {
	x := 0
	var state byte
	for line != "" {
		seq, width, n, next := ansi.DecodeSequence(line, state, nil)
		line, state = line[n:], next
		if width == 0 {
			if body, ok := strings.CutPrefix(seq, "\x1b["); ok && strings.HasSuffix(body, "m") {
				now = now.apply(strings.TrimSuffix(body, "m"))
			}
			continue
		}
		if seq != " " || now.reverse || now.bg != plain {
			cells = append(cells, cell{text: seq, x: x, width: width, style: now})
		}
		x += width
	}
	return cells, now
}

// runs joins neighbours with the same style, also across single blanks. Only ASCII has the same width in every
// fixed font.
func runs(cells []cell) []cell {
	var out []cell
	for _, c := range cells {
		ascii := len(c.text) == 1 && c.text[0] > ' ' && c.text[0] < 0x7f
		if len(out) > 0 && ascii {
			last := &out[len(out)-1]
			gap := c.x - last.x - last.width
			if last.text != "" && last.text[0] < 0x80 && last.style == c.style && (gap == 0 || gap == 1) {
				last.text += strings.Repeat(" ", gap) + c.text
				last.width += gap + 1
				continue
			}
		}
		if c.text != " " {
			out = append(out, c)
		}
	}
	return out
}

// backgrounds joins neighbours with the same background.
func backgrounds(cells []cell, colours *palette) []cell {
	var out []cell
	for _, c := range cells {
		_, background := colours.of(c.style)
		if background == "" {
			continue
		}
		if len(out) > 0 {
			last := &out[len(out)-1]
			if last.text == background && last.x+last.width == c.x {
				last.width += c.width
				continue
			}
		}
		out = append(out, cell{text: background, x: c.x, width: c.width})
	}
	return out
}
