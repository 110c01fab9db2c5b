package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// The size of a cell and what surrounds the cells, in pixels.
const (
	cellWidth  = 8.4
	cellHeight = 18.0
	fontSize   = 14
	baseline   = 13.5
	margin     = 14.0
	barHeight  = 30.0
)

// options says what surrounds a frame.
type options struct {
	// Title stands in the bar above the frame.
	Title string
	// Light draws on a light page.
	Light bool
	// Relight draws on a light page what the dashboard's dark theme has drawn, in the colours
	// of its light theme: one frame becomes two pictures that show the same moment.
	Relight bool
	// Columns and Rows are the least size of the terminal; a frame with longer or
	// more lines makes it larger.
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

// size is what frames need.
type size struct {
	lines         [][][]cell // of each frame
	width, height float64
}

// begin reads frames and measures the terminal that holds them all.
func begin(o options, frames ...string) (*drawing, size) {
	look := &dark
	switch {
	case o.Relight:
		look = &relit
	case o.Light:
		look = &light
	}
	var s size
	columns, rows := o.Columns, o.Rows
	for _, frame := range frames {
		lines := read(frame)
		rows = max(rows, len(lines))
		for _, cells := range lines {
			if n := len(cells); n > 0 {
				columns = max(columns, cells[n-1].x+cells[n-1].width)
			}
		}
		s.lines = append(s.lines, lines)
	}
	s.width, s.height = 2*margin+float64(columns)*cellWidth, barHeight+margin+float64(rows)*cellHeight
	return &drawing{look: look}, s
}

// drawing is a picture under way. Shapes of one colour are collected and drawn as
// one path, in the order in which the colours first came.
type drawing struct {
	look  *palette
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
		w, h, d.look.page, number(s.width-8), d.look.bar)
	for i, colour := range []string{"#e06c75", "#d7a65f", "#7fbf7f"} {
		fmt.Fprintf(&d.out, `<circle cx="%d" cy="11" r="5" fill="%s"/>`, 16+18*i, colour)
	}
}

// frame draws a title and what is below it.
func (d *drawing) frame(lines [][]cell, title string, width float64) {
	fmt.Fprintf(&d.out, "\n"+`<text x="%s" y="15.5" text-anchor="middle" font-size="12" fill="%s">%s</text>`+"\n",
		number(width/2), d.look.named[8], escape(title))
	d.paths = nil
	for i, cells := range lines {
		d.line(cells, barHeight+float64(i)*cellHeight)
	}
	d.shapes()
}

// line draws the grounds of a line and its letters, and collects its shapes.
func (d *drawing) line(cells []cell, y float64) {
	for _, g := range grounds(cells, d.look) {
		fmt.Fprintf(&d.out, `<path d="%s" fill="%s"/>`+"\n",
			area(column(g.x), y, float64(g.width)*cellWidth, cellHeight), g.text)
	}
	for _, r := range runs(cells) {
		ink, _ := d.look.ink(r.style)
		if p, stroked := shape(r.text, column(r.x), y); p != "" {
			d.collect(ink, stroked, p)
			continue
		}
		d.letters(r, ink, y+baseline)
	}
}

// letters writes a run, stretched to the cells it fills; a single sign stands in
// the middle of its own, since its width differs from font to font.
func (d *drawing) letters(r cell, ink string, y float64) {
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

// collect adds a shape to those of its colour.
func (d *drawing) collect(colour string, stroked bool, shape string) {
	for _, p := range d.paths {
		if p.colour == colour && p.stroked == stroked {
			p.d.WriteString(shape)
			return
		}
	}
	p := &path{colour: colour, stroked: stroked}
	p.d.WriteString(shape)
	d.paths = append(d.paths, p)
}

func (d *drawing) shapes() {
	for _, p := range d.paths {
		paint := `fill="` + p.colour + `"`
		if p.stroked {
			paint = `fill="none" stroke-width="1.2" stroke="` + p.colour + `"`
		}
		fmt.Fprintf(&d.out, `<path d="%s" %s/>`+"\n", p.d.String(), paint)
	}
}

// column is where a column begins.
func column(x int) float64 { return margin + float64(x)*cellWidth }

// number writes a length with at most one digit behind the point.
func number(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

// escape makes text safe inside an element. Control characters, which an SVG may
// not contain, are left out.
func escape(text string) string {
	return escaper.Replace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\uFFFE' || r == '\uFFFF' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD")))
}
