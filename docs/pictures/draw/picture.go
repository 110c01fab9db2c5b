package main

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The sizes of a cell and of the space around the cells, in pixels.
const (
	cellWidth  = 8.4
	cellHeight = 18.0
	fontSize   = 14
	baseline   = 13.5
	margin     = 14.0
	barHeight  = 30.0
)

// options are the flags.
type options struct {
	Title string // in the bar above the frame
	Light bool   // draw on a light page
	// Relight draws a frame of the dashboard's dark theme on a light page, in the colours of its light theme.
	Relight bool
	// Columns and Rows are the minimum size of the terminal.
	Columns, Rows int
}

// svg draws a frame.
func svg(frame string, o options) []byte {
	d, sizes := begin(o, frame)
	d.window(sizes)
	d.frame(sizes.lines[0], o.Title, sizes.width)
	d.out.WriteString("</svg>\n")
	return d.out.Bytes()
}

// size is the size of frames.
type size struct {
	lines         [][][]cell // of each frame
	width, height float64
}

// begin parses frames and measures the terminal that fits all of them.
func begin(o options, frames ...string) (*drawing, size) {
	colours := &dark
	switch {
	case o.Relight:
		colours = &relit
	case o.Light:
		colours = &light
	}
	var s size
	columns, rows := o.Columns, o.Rows
	for _, frame := range frames {
		lines := parse(frame)
		rows = max(rows, len(lines))
		for _, cells := range lines {
			if n := len(cells); n > 0 {
				columns = max(columns, cells[n-1].x+cells[n-1].width)
			}
		}
		s.lines = append(s.lines, lines)
	}
	s.width, s.height = 2*margin+float64(columns)*cellWidth, barHeight+margin+float64(rows)*cellHeight
	return &drawing{palette: colours}, s
}

// drawing is an unfinished picture. Shapes of one colour become one path, in the order of their first colours.
type drawing struct {
	*palette

	out   bytes.Buffer
	paths []*path
}

type path struct {
	colour  string
	stroked bool
	d       strings.Builder
}

// window draws the page and the bar above it.
func (d *drawing) window(s size) {
	w, h := number(s.width), number(s.height)
	fmt.Fprintf(&d.out,
		`<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %s %s" font-size="%d" `+
			`font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace">`+"\n", w, h, w, h,
		fontSize)
	fmt.Fprintf(&d.out, `<rect width="%s" height="%s" rx="8" fill="%s"/><path d="M0 22V8a8 8 0 0 1 8-8H%sa8 8 0 0 1 8 8v14z" fill="%s"/>`+"\n",
		w, h, d.page, number(s.width-8), d.bar)
	for i, colour := range []string{"#e06c75", "#d7a65f", "#7fbf7f"} {
		fmt.Fprintf(&d.out, `<circle cx="%d" cy="11" r="5" fill="%s"/>`, 16+18*i, colour)
	}
}

// frame draws a title and the lines below it.
func (d *drawing) frame(lines [][]cell, title string, width float64) {
	fmt.Fprintf(&d.out, "\n"+`<text x="%s" y="15.5" text-anchor="middle" font-size="12" fill="%s">%s</text>`+"\n",
		number(width/2), d.named[8], escape(title))
	d.paths = nil
	for i, cells := range lines {
		d.line(cells, barHeight+float64(i)*cellHeight)
	}
	for _, p := range d.paths {
		paint := `fill="` + p.colour + `"`
		if p.stroked {
			paint = `fill="none" stroke-width="1.2" stroke="` + p.colour + `"`
		}
		fmt.Fprintf(&d.out, `<path d="%s" %s/>`+"\n", p.d.String(), paint)
	}
}

// line draws the backgrounds of a line and its text, and collects its shapes.
func (d *drawing) line(cells []cell, y float64) {
	for _, g := range backgrounds(cells, d.palette) {
		fmt.Fprintf(&d.out, `<path d="%s" fill="%s"/>`+"\n",
			area(column(g.x), y, float64(g.width)*cellWidth, cellHeight), g.text)
	}
	for _, r := range runs(cells) {
		ink, _ := d.of(r.style)
		if p, stroked := shape(r.text, column(r.x), y); p != "" {
			same := func(p *path) bool { return p.colour == ink && p.stroked == stroked }
			i := slices.IndexFunc(d.paths, same)
			if i < 0 {
				i, d.paths = len(d.paths), append(d.paths, &path{colour: ink, stroked: stroked})
			}
			d.paths[i].d.WriteString(p)
			continue
		}
		d.text(r, ink, y+baseline)
	}
}

// text writes a run, stretched to its cells. A single non-ASCII character is centred, because its width depends on
// the font.
func (d *drawing) text(r cell, ink string, y float64) {
	weight := ""
	if r.style.bold {
		weight = ` font-weight="bold"`
	}
	if r.text[0] >= 0x80 {
		middle := column(r.x) + float64(r.width)*cellWidth/2
		fmt.Fprintf(&d.out, `<text x="%s" y="%s" text-anchor="middle" fill="%s"%s>%s</text>`+"\n", number(middle),
			number(y), ink, weight, escape(r.text))
		return
	}
	fmt.Fprintf(&d.out,
		`<text x="%s" y="%s" textLength="%s" lengthAdjust="spacingAndGlyphs" fill="%s"%s>%s</text>`+"\n",
		number(column(r.x)), number(y), number(float64(r.width)*cellWidth), ink, weight, escape(r.text))
}

// column returns the x position of a column.
func column(x int) float64 { return margin + float64(x)*cellWidth }

// number formats a length with at most one decimal.
func number(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

// escape makes text safe inside an element. It drops control characters, which an SVG must not contain.
func escape(text string) string {
	return escaper.Replace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\uFFFE' || r == '\uFFFF' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD")))
}
