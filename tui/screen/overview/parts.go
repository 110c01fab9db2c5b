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

// shown are the keys of the rows that were drawn of each part.
type shown [parts][]string

// here is the part that the cursor is in; narrow views have one only.
func (o *Overview) here() part {
	if !o.trends() {
		return findings
	}
	return o.part
}

// turn goes on to the next part that has rows, or to the one before.
func (o *Overview) turn(by part) {
	for range parts {
		o.part = (o.part + by + parts) % parts
		if o.part == findings || len(o.shown[o.part]) > 0 {
			return
		}
	}
}

// row is where the cursor of a part is; -1 where the part has none.
func (o *Overview) row(of part) int {
	keys, at := o.shown[of], &o.places[of]
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
	if at := o.row(of); at >= 0 {
		at = max(0, min(at+by, len(o.shown[of])-1))
		o.places[of] = place{o.shown[of][at], at}
	}
}

// has reports whether the cursor is on a row of a part, which is drawn now.
func (o *Overview) has(of part, key string) bool {
	return o.here() == of && o.row(of) >= 0 && o.shown[of][o.row(of)] == key
}

// draw notes the rows of a part that are drawn.
func (o *Overview) draw(of part, keys []string) { o.shown[of] = keys }

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
func (o *Overview) line(of part, key, mark, text string, w int) string {
	if o.has(of, key) {
		return mark + o.env.Theme.Glyphs.Cursor + o.env.Paint(theme.Cursor, widget.Left(text, w))
	}
	return mark + " " + text
}

// keysOf are the keys of rows.
func keysOf[T any](rows []T, key func(*T) string) []string {
	keys := make([]string, len(rows))
	for i := range rows {
		keys[i] = key(&rows[i])
	}
	return keys
}

func queueKey(q *monitor.Queue) string { return strconv.FormatInt(q.ID, 10) }

func workerKey(w *monitor.Worker) string { return strconv.FormatInt(w.ID, 10) }

// top are the queues whose head waits longest, first.
func (o *Overview) top() []monitor.Queue {
	top := slices.Clone(o.env.Data.Overview.Top)
	slices.SortStableFunc(top, func(a, b monitor.Queue) int { return compareWait(a.Oldest, b.Oldest) })
	return top
}

// enter opens what the cursor is on, besides a finding.
func (o *Overview) enter(of part) screen.Effect {
	thing, ok := o.Shows()
	if !ok {
		return screen.Effect{Handled: true, Note: "Nothing stands here."}
	}
	switch v := thing.Value.(type) {
	case monitor.Queue:
		return screen.OpenQueue(v.ID)
	case monitor.Worker:
		return screen.OpenWorker(v.ID)
	default:
		return screen.OpenRow(keymap.InBroker, o.shown[of][o.row(of)])
	}
}

// thing is what the cursor is on in a part, besides a finding.
func (o *Overview) thing(of part) (screen.Thing, bool) {
	d, at := o.env.Data, o.row(of)
	if at < 0 || d.Overview == nil && of != brokerQueues {
		return screen.Thing{}, false
	}
	key := o.shown[of][at]
	switch of {
	case topQueues:
		for _, q := range d.Overview.Top {
			if queueKey(&q) == key {
				return screen.QueueThing(&q, q), true
			}
		}
	case workers:
		_, list := o.workers()
		for _, w := range list {
			if workerKey(&w) == key {
				return screen.WorkerThing(&w, w), true
			}
		}
	case brokerQueues:
		if q, ok := d.Broker.Queue(key); ok {
			return screen.BrokerQueueThing(q), true
		}
	}
	return screen.Thing{}, false
}
