package overview

import (
	"slices"

	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// part is a list of the wide view with a cursor of its own.
type part int

const (
	findings part = iota
	topQueues
	workers
	brokerQueues
	parts
)

// place is the cursor of a part: the key of its row, and the index of the row if the key is gone.
type place struct {
	key string
	row int
}

// here is the part in focus; a narrow view has only findings.
func (o *Overview) here() part {
	if !o.trends() {
		return findings
	}
	return o.part
}

// turn moves the focus by so many parts, over parts without rows.
func (o *Overview) turn(by part) {
	_, page := o.draw(o.env.Width, o.env.Height)
	for range parts {
		o.part = (o.part + by) % parts
		if o.part == findings || len(page.keys[o.part]) > 0 {
			return
		}
	}
}

// row is the index of the cursor among the drawn rows of a part; -1 if there are none.
func (o *Overview) row(of part, keys []string) int {
	at := &o.places[of]
	if len(keys) == 0 {
		return -1
	}
	if i := slices.Index(keys, at.key); i >= 0 {
		return i
	}
	return min(at.row, len(keys)-1)
}

// step moves the cursor of the part in focus.
func (o *Overview) step(by int) {
	of := o.here()
	if of == findings {
		o.move(by)
		return
	}
	_, page := o.draw(o.env.Width, o.env.Height)
	keys := page.keys[of]
	if at := o.row(of, keys); at >= 0 {
		at = max(0, min(at+by, len(keys)-1))
		o.places[of] = place{key: keys[at], row: at}
	}
}

// title is the heading of a part, in the accent colour if it has the focus.
func (o *Overview) title(of part, feed screen.Feed, text string) string {
	return o.env.PaneHead(o.here() == of && o.trends(), feed, text)
}

// rows draws n rows of a part, each behind its mark and w cells wide, with the cursor if the part has the focus.
func (o *Overview) rows(at *page, of part, n, w int, draw func(i int) (key, mark, text string)) []string {
	keys, marks, lines := make([]string, n), make([]string, n), make([]string, n)
	for i := range n {
		keys[i], marks[i], lines[i] = draw(i)
	}
	at.keys[of] = keys
	g, cursor := &o.env.Theme.Glyphs, o.row(of, keys)
	for i, text := range lines {
		switch {
		case i != cursor:
			lines[i] = marks[i] + " " + text
		case o.here() == of:
			lines[i] = marks[i] + o.env.Paint(theme.Cursor, g.Cursor+widget.Left(text, w))
		default:
			lines[i] = marks[i] + o.env.Dim(g.Rest) + text
		}
	}
	return lines
}
