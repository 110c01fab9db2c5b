package main

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// cell is one sign, at most two columns wide, with its place in the line; or a
// row of them that are drawn as one.
type cell struct {
	text     string
	x, width int
	style    style
}

// read splits a frame into lines of cells. Blanks without a ground are left out.
func read(frame string) [][]cell {
	var lines [][]cell
	now := unstyled
	for line := range strings.SplitSeq(strings.TrimSuffix(frame, "\n"), "\n") {
		var cells []cell
		cells, now = readLine(line, now)
		lines = append(lines, cells)
	}
	return lines
}

// readLine splits one line; the style goes on into the next one.
func readLine(line string, now style) (cells []cell, after style) {
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

// ascii reports whether the cell is a letter that every fixed font has in the
// same width.
func (c cell) ascii() bool { return len(c.text) == 1 && c.text[0] >= ' ' && c.text[0] < 0x7f }

// runs joins neighbours that look alike, across single blanks too.
func runs(cells []cell) []cell {
	var out []cell
	for _, c := range cells {
		if len(out) > 0 && c.ascii() && c.text != " " {
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

// grounds joins neighbours that lie on the same ground.
func grounds(cells []cell, look *palette) []cell {
	var out []cell
	for _, c := range cells {
		_, ground := look.ink(c.style)
		if ground == "" {
			continue
		}
		if len(out) > 0 {
			last := &out[len(out)-1]
			if last.text == ground && last.x+last.width == c.x {
				last.width += c.width
				continue
			}
		}
		out = append(out, cell{text: ground, x: c.x, width: c.width})
	}
	return out
}
