package overview

import (
	"slices"
	"strconv"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// part is one of the lists of the wide view. The cursor is in one of them, and in
// each on a row that it finds again by its key.
type part int

const (
	findings part = iota
	topQueues
	workers
	brokerQueues
	parts
)

// place is where the cursor of a part is: on the row of a key, and where that was.
type place struct {
	key string
	row int
}

// here is the part that the cursor is in; narrow views have one only.
func (o *Overview) here() part {
	if !o.trends() {
		return findings
	}
	return o.part
}

// turn goes on to the next part that has rows, or to the one before.
func (o *Overview) turn(by part) {
	_, page := o.draw(o.env.Width, o.env.Height)
	for range parts {
		o.part = (o.part + by + parts) % parts
		if o.part == findings || len(page.keys[o.part]) > 0 {
			return
		}
	}
}

// row is where the cursor of a part is among the rows that are drawn; -1 where there are none.
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

// step moves the cursor of the part that it is in.
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

// title is the heading of a part, in the colour of what has the focus where the
// cursor is in it.
func (o *Overview) title(of part, feed screen.Feed, text string) string {
	if o.here() != of || !o.trends() {
		return o.env.Head(feed, text)
	}
	return o.env.Paint(theme.Accent, text+o.env.Mark(feed))
}

// line is a row of a part behind what marks it, w cells wide, with the cursor if that
// is on it.
func (o *Overview) line(here bool, mark, text string, w int) string {
	if here {
		return mark + o.env.Theme.Glyphs.Cursor + o.env.Paint(theme.Cursor, widget.Left(text, w))
	}
	return mark + " " + text
}

// keysOf are the keys of rows, and at which of them the cursor is.
func keysOf[T any](o *Overview, of part, rows []T, key func(*T) string) (keys []string, at int) {
	for i := range rows {
		keys = append(keys, key(&rows[i]))
	}
	if o.here() != of {
		return keys, -1
	}
	return keys, o.row(of, keys)
}

func queueKey(q *queue) string { return strconv.FormatInt(q.ID, 10) }

func workerKey(w *monitor.Worker) string { return strconv.FormatInt(w.ID, 10) }

// enter opens what the cursor is on, besides a finding.
func (o *Overview) enter(of part) screen.Effect {
	thing, ok := o.thing(of)
	if !ok {
		return screen.Effect{Handled: true, Note: "Nothing stands here."}
	}
	switch v := thing.Value.(type) {
	case monitor.Queue:
		return screen.OpenQueue(v.ID)
	case monitor.Worker:
		return screen.OpenWorker(v.ID)
	default:
		return screen.OpenRow(keymap.InBroker, thing.ID)
	}
}

// thing is what the cursor is on in a part, besides a finding.
func (o *Overview) thing(of part) (screen.Thing, bool) {
	_, page := o.draw(o.env.Width, o.env.Height)
	d, at := o.env.Data, o.row(of, page.keys[of])
	if at < 0 || d.Overview == nil && of != brokerQueues {
		return screen.Thing{}, false
	}
	switch of {
	case topQueues:
		return screen.QueueThing(&o.top[at].Queue, o.top[at].Queue), true
	case workers:
		w := o.workers().list[at]
		return screen.WorkerThing(&w, w), true
	default:
		return screen.BrokerQueueThing(o.pressing[at]), true
	}
}
