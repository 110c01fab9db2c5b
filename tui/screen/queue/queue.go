// Package queue shows one admission queue: who holds its slots, who stands in its
// line and for how long, how both were over the last hour, and its limits and who
// set them.
package queue

import (
	"strconv"

	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/jsonview"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/widget"
)

// The parts that tab goes through.
const (
	inHolders = iota
	inLine
	inAbout
	parts
)

// Queue is the view of one queue.
type Queue struct {
	env *screen.Env
	id  int64
	// name is how the queue was called where it was opened from.
	name string
	part int
	// chosen is true once the operator has turned to a part. Until then it is the first
	// that has something.
	chosen  bool
	holders *holders
	line    *line
	preview bool
	screen.RowSearch
	// doc is the config of the execution beside the rows, shown what it was made from.
	doc   *jsonview.View
	shown string
	// scroll and visible are of the part that is text; tops are the lines on
	// which the rows of the tables begin, as they were last drawn.
	scroll, visible int
	tops            [2]int
}

// New makes the view.
func New(env *screen.Env) *Queue {
	return &Queue{env: env, preview: true, holders: newHolders(env), line: newLine(env), doc: jsonview.New()}
}

// View is the name of the screen.
func (q *Queue) View() screen.View { return keymap.InQueue }

// Feeds is what the view needs polled.
func (q *Queue) Feeds() []screen.Feed {
	feeds := []screen.Feed{screen.FeedQueue, screen.FeedLine, screen.FeedQueuesPast}
	if q.wide() && q.Subject() != 0 {
		feeds = append(feeds, screen.FeedGlance)
	}
	return feeds
}

// ID is the queue in sight.
func (q *Queue) ID() int64 { return q.id }

// Shown names the queue in sight.
func (q *Queue) Shown() string { return strconv.FormatInt(q.id, 10) }

// Show turns to another queue.
func (q *Queue) Show(name string) {
	id := screen.Number(name)
	if id == q.id {
		return
	}
	q.id, q.scroll, q.name = id, 0, strconv.FormatInt(id, 10)
	q.part, q.chosen = inHolders, false
	q.holders, q.line = newHolders(q.env), newLine(q.env)
	if list := q.env.Data.Queues; list != nil {
		for _, row := range list.List {
			if row.ID == id {
				q.name = screen.QueueName(&row)
			}
		}
	}
	q.env.Data.Glance, q.env.Data.QueuesPast = nil, nil
	// The preview of the list may have read it already.
	if d := q.env.Data.Queue; d != nil && d.ID != id {
		q.env.Data.Queue = nil
	}
	if l := q.env.Data.Line; l != nil && (l.Queue != id || l.End) {
		q.env.Data.Line = nil
	}
	q.Changed(screen.FeedQueue)
	q.Changed(screen.FeedLine)
}

// Title is the text of the title rule.
func (q *Queue) Title() (left, right string) {
	left = "Queues › " + widget.Clean(q.name)
	if d := q.current(); d != nil {
		right = q.env.Num(d.Queued) + " queued · " + screen.Slots(d.Active, d.Limit) + " · " + state(d) + " · queue " + strconv.FormatInt(q.id, 10) +
			q.env.Mark(screen.FeedQueue)
	}
	return left, right
}

// state is the state of the queue in a word.
func state(d *explain.QueueDetail) string {
	switch {
	case d.Paused:
		return "paused"
	case d.Blocked != "":
		return "blocked"
	case d.Full():
		return "full"
	default:
		return "open"
	}
}

// current is the detail, unless it belongs to a queue left behind.
func (q *Queue) current() *explain.QueueDetail {
	if d := q.env.Data.Queue; d != nil && d.ID == q.id {
		return d
	}
	return nil
}

// Ask is the part of the line that is wanted.
func (q *Queue) Ask() monitor.LineAsk { return q.line.ask(q.id) }

// Subject is the execution under the cursor; zero where there is none.
func (q *Queue) Subject() int64 {
	switch q.part {
	case inHolders:
		return number(q.holders.table)
	case inLine:
		return number(q.line.table)
	default:
		return 0
	}
}

// wide reports whether the execution under the cursor is shown beside the rows.
func (q *Queue) wide() bool { return q.preview && q.env.Width >= 120 && q.env.Height >= 20 }

// number is the key of the row under the cursor as a number.
func number(t *widget.Table) int64 {
	id, err := strconv.ParseInt(t.Key(), 10, 64)
	if err != nil {
		return 0
	}
	return id
}

// Behind names what is to be read when another execution is under the cursor than was
// read last.
func (q *Queue) Behind() screen.Feed {
	if id := q.Subject(); q.wide() && id != 0 && q.glance(id) == nil {
		return screen.FeedGlance
	}
	return ""
}

// glance is the execution beside the rows, once it was read.
func (q *Queue) glance(id int64) *monitor.ExecutionDetail {
	if g := q.env.Data.Glance; g != nil && g.ExecutionDetail != nil && g.ID == id {
		return g.ExecutionDetail
	}
	return nil
}

// Changed takes over new data.
func (q *Queue) Changed(feed screen.Feed) {
	switch feed {
	case screen.FeedQueue:
		if d := q.current(); d != nil {
			q.holders.set(d)
		}
	case screen.FeedLine:
		if l := q.env.Data.Line; l != nil && l.Queue == q.id {
			q.line.set(l)
		}
	default:
		return
	}
	if !q.chosen {
		q.part = inHolders
		if q.holders.Len() == 0 && q.line.Len() > 0 {
			q.part = inLine
		}
	}
}

// focused is the table that the keys go to, or nil.
func (q *Queue) focused() *widget.Table {
	switch q.part {
	case inHolders:
		return q.holders.table
	case inLine:
		return q.line.table
	default:
		return nil
	}
}

// Search looks for a text in the rows that the keys go to.
func (q *Queue) Search(text string) int { return q.SearchIn(q.focused(), text) }

// Do carries out an action.
func (q *Queue) Do(action keymap.Action) screen.Effect {
	if q.Again(q.focused(), action) {
		return screen.Effect{Handled: true}
	}
	switch action {
	case keymap.NextPane:
		return q.turn(1)
	case keymap.PrevPane:
		return q.turn(-1)
	case keymap.Open:
		return q.open()
	case keymap.Preview:
		q.preview = !q.preview
		return screen.Effect{Handled: true}
	}
	switch q.part {
	case inHolders:
		return screen.Effect{Handled: screen.MoveTable(q.holders.table, action)}
	case inLine:
		return q.line.do(action)
	default:
		return screen.Effect{Handled: screen.Scroll(&q.scroll, action, q.visible)}
	}
}

func (q *Queue) turn(n int) screen.Effect {
	q.part, q.chosen, q.scroll = (q.part+n+parts)%parts, true, 0
	return screen.Effect{Handled: true}
}

// open shows the execution under the cursor, or all of the action.
func (q *Queue) open() screen.Effect {
	if id := q.Subject(); id != 0 {
		return screen.OpenExecution(id)
	}
	if d := q.current(); d != nil {
		return screen.OpenList(keymap.InExecutions, "action:"+d.ActionRef)
	}
	return screen.Effect{}
}

// Select puts the cursor on a line of the body, in the table that is drawn there.
func (q *Queue) Select(at int) bool {
	if q.part == inAbout {
		return false
	}
	for part, t := range []*widget.Table{q.holders.table, q.line.table} {
		if q.tops[part] > 0 && at >= q.tops[part] && t.Select(at-q.tops[part]) {
			q.part, q.chosen = part, true
			return true
		}
	}
	return false
}
