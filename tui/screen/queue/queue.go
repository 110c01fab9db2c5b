// Package queue shows one admission queue: its slot holders, its waiting executions in order, the last hour of
// both, and its limits with their sources.
package queue

import (
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/jsonview"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/list"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/screen/execution"
	"github.com/attune-go/attune/tui/widget"
)

// The parts in the order of tab.
const (
	inHolders = iota
	inWaiting
	inAbout
	parts
)

// Queue is the view of one queue.
type Queue struct {
	env  *screen.Env
	id   int64
	name string // from the list of queues
	part int
	// chosen is true once the operator has turned to a part. Before that the first part with rows has the focus.
	chosen  bool
	holders *list.Table[holder]
	waiting *waiting
	preview bool
	screen.RowSearch
	// doc shows docText, the config of execution docID, in the preview.
	doc     *jsonview.View
	docID   int64
	docText string
	// state explains the state of the queue; about describes its limits and times.
	state  string
	about  []explain.Section
	scroll screen.Scroller
}

// New makes the view.
func New(env *screen.Env) *Queue {
	q := &Queue{env: env, preview: true, doc: jsonview.New(), holders: newHolders(env), waiting: newWaiting(env)}
	q.doc.Focus(false)
	q.turnTo(inHolders)
	return q
}

// View is the name of the screen.
func (q *Queue) View() screen.View { return keymap.InQueue }

// Feeds are the feeds to poll while the view is open.
func (q *Queue) Feeds() []screen.Feed {
	feeds := []screen.Feed{screen.FeedQueue, screen.FeedLine, screen.FeedQueuesPast}
	if q.wide() && q.SelectedID() != 0 {
		feeds = append(feeds, screen.FeedGlance)
	}
	return feeds
}

// ID is the id of the shown queue.
func (q *Queue) ID() int64 { return q.id }

// Shown names the shown queue.
func (q *Queue) Shown() string { return strconv.FormatInt(q.id, 10) }

// Show turns to another queue.
func (q *Queue) Show(name string) {
	id := screen.Number(name)
	if id == q.id {
		return
	}
	q.id, q.scroll, q.name = id, screen.Scroller{}, strconv.FormatInt(id, 10)
	q.holders, q.waiting, q.chosen = newHolders(q.env), newWaiting(q.env), false
	q.turnTo(inHolders)
	data := q.env.Data
	if data.Queues != nil {
		for _, row := range data.Queues.List {
			if row.ID == id {
				q.name = screen.QueueName(&row)
			}
		}
	}
	data.Glance, data.QueuesPast = nil, nil
	// The preview of the list may have read them.
	if d := data.Queue; d != nil && d.ID != id {
		data.Queue = nil
	}
	if l := data.Line; l != nil && (l.Queue != id || l.End) {
		data.Line = nil
	}
	q.Changed(screen.FeedQueue)
	q.Changed(screen.FeedLine)
}

// Title is the text of the title rule.
func (q *Queue) Title() (left, right string) {
	left = "Queues › " + widget.Clean(q.name)
	if d := q.current(); d != nil {
		right = q.env.Num(d.Queued) + " queued · " + screen.Slots(d.Active, d.Limit) + " · " + state(d) +
			" · queue " + strconv.FormatInt(q.id, 10) + q.env.Mark(screen.FeedQueue)
	}
	return left, right
}

// state is the state of the queue as one word.
func state(d *explain.QueueDetail) string {
	word, _, _ := strings.Cut(d.State(), ":")
	return word
}

// current is the detail of the shown queue; nil until it was read.
func (q *Queue) current() *explain.QueueDetail {
	if d := q.env.Data.Queue; d != nil && d.ID == q.id {
		return d
	}
	return nil
}

// Ask says which waiting executions are read next.
func (q *Queue) Ask() monitor.LineAsk {
	return monitor.LineAsk{Queue: q.id, Rows: q.waiting.rows, End: q.waiting.wantsEnd}
}

// SelectedID is the execution under the cursor, 0 if none.
func (q *Queue) SelectedID() int64 {
	switch h, w := q.selected(); {
	case h != nil:
		return h.ID
	case w != nil:
		return w.ID
	default:
		return 0
	}
}

// selected is the row under the cursor, a slot holder or a waiting execution. At most one is not nil.
func (q *Queue) selected() (*holder, *monitor.QueuedExecution) {
	switch q.part {
	case inHolders:
		return q.holders.Current(), nil
	case inWaiting:
		return nil, q.waiting.Current()
	default:
		return nil, nil
	}
}

// wide reports whether a preview stands beside the rows.
func (q *Queue) wide() bool { return q.preview && q.env.Width >= 120 && q.env.Height >= 20 }

// Behind names the feed of the preview until it has read the selected execution.
func (q *Queue) Behind() screen.Feed {
	if id := q.SelectedID(); q.wide() && id != 0 && q.glance(id) == nil {
		return screen.FeedGlance
	}
	return ""
}

// glance is the execution of the preview; nil until it was read.
func (q *Queue) glance(id int64) *monitor.ExecutionDetail {
	if d := q.env.Data.Glanced(); d != nil && d.ID == id {
		return d
	}
	return nil
}

// Changed takes over new data.
func (q *Queue) Changed(feed screen.Feed) {
	switch feed {
	case screen.FeedQueue:
		if d := q.current(); d != nil {
			q.holders.SetList(holders(d))
			q.name, q.state, q.about = screen.QueueName(&d.Queue), widget.Clean(d.StateLine()), d.Sections()
		}
	case screen.FeedLine:
		if l := q.env.Data.Line; l != nil && l.Queue == q.id {
			q.waiting.set(l)
		}
	case screen.FeedGlance:
		if d := q.env.Data.Glanced(); d != nil && (d.ID != q.docID || d.Config != q.docText) {
			q.docID, q.docText = d.ID, d.Config
			q.doc.Reset()
			q.doc.Set(d.Config)
		}
		return
	default:
		return
	}
	if !q.chosen {
		q.turnTo(inHolders)
		if q.holders.Len() == 0 && q.waiting.Len() > 0 {
			q.turnTo(inWaiting)
		}
	}
}

// focused is the table in focus, or nil.
func (q *Queue) focused() *widget.Table {
	switch q.part {
	case inHolders:
		return q.holders.Table
	case inWaiting:
		return q.waiting.Table.Table
	default:
		return nil
	}
}

func (q *Queue) turnTo(part int) {
	q.part = part
	q.holders.Focus(part == inHolders)
	q.waiting.Focus(part == inWaiting)
}

// Search looks for a text in the table in focus.
func (q *Queue) Search(text string) int { return q.SearchIn(q.focused(), text) }

// Beyond says that a search does not look at all waiting executions.
func (q *Queue) Beyond() string {
	if q.waiting.total <= int64(q.waiting.Len()) {
		return ""
	}
	return "only " + q.env.Num(int64(q.waiting.Len())) + " of " + q.env.Num(q.waiting.total) +
		" waiting executions are read: G reads the last"
}

// Do carries out an action.
func (q *Queue) Do(action keymap.Action) screen.Effect {
	if q.Again(q.focused(), action) {
		return screen.Effect{Handled: true}
	}
	switch action {
	case keymap.NextPane, keymap.PrevPane:
		step := 1
		if action == keymap.PrevPane {
			step = parts - 1
		}
		q.turnTo((q.part + step) % parts)
		q.chosen, q.scroll = true, screen.Scroller{}
		return screen.Effect{Handled: true}
	case keymap.Open:
		if id := q.SelectedID(); id != 0 {
			return screen.OpenExecution(id)
		}
		if d := q.current(); d != nil {
			return screen.OpenList(keymap.InExecutions, "action:"+d.ActionRef)
		}
		return screen.Effect{}
	case keymap.Why:
		switch h, w := q.selected(); {
		case h != nil:
			return screen.OpenWhy(h.ID, h.Status)
		case w != nil:
			return screen.OpenWhy(w.ID, string(lifecycle.StatusRequested))
		}
		return screen.Effect{}
	case keymap.Preview:
		q.preview = !q.preview
		return screen.Effect{Handled: true}
	}
	switch q.part {
	case inHolders:
		return screen.Effect{Handled: screen.MoveTable(q.holders.Table, action)}
	case inWaiting:
		return q.waiting.do(action)
	default:
		lines, h := q.aboutLines(q.env.Width, q.env.Height)
		return screen.Effect{Handled: q.scroll.Do(action, h, len(lines)-h)}
	}
}

// Acts is the menu of the selected execution, or else of the queue.
func (q *Queue) Acts() (act.Menu, bool) {
	d := q.current()
	if d == nil {
		return act.Menu{}, false
	}
	switch h, w := q.selected(); {
	case h != nil:
		return act.ForExecution(&monitor.Execution{ID: h.ID, ActionRef: h.ActionRef, Status: h.Status}), true
	case w != nil:
		return act.ForExecution(&monitor.Execution{
			ID: w.ID, ActionRef: d.ActionRef, Status: string(lifecycle.StatusRequested),
		}), true
	default:
		return act.ForQueue(&d.Queue), true
	}
}

// Relations lead from the queue and the selected execution to related items.
func (q *Queue) Relations() (title string, related []screen.Relation, ok bool) {
	d := q.current()
	if d == nil {
		return "", nil, false
	}
	related = screen.ActionRelations(d.ActionRef)
	id := q.SelectedID()
	if id == 0 {
		return "queue " + d.ActionRef, related, true
	}
	h, w := q.selected()
	worker := screen.Relation{Key: "w", Label: "worker", Not: "it has none yet"}
	if h != nil && h.WorkerID != nil {
		worker.Leads(monitor.WorkerName(h.WorkerID, h.WorkerName), screen.OpenWorker(*h.WorkerID))
	}
	above := screen.Relation{Key: "p", Label: "parent", Not: "it has none"}
	if w == nil {
		above.Not = "it is unknown here: enter shows it"
	} else if w.Parent != nil {
		above.Leads(parent(w), screen.OpenExecution(*w.Parent))
	}
	return "queue " + d.ActionRef, append(related, screen.Relation{
		Key: "e", Label: "execution", Help: strconv.FormatInt(id, 10), To: screen.OpenExecution(id),
	}, worker, above), true
}

// Shows is the selected execution, or else the queue.
func (q *Queue) Shows() (screen.Thing, bool) {
	d := q.current()
	if d == nil {
		return screen.Thing{}, false
	}
	if x := q.glance(q.SelectedID()); x != nil {
		return screen.ExecutionThing(&x.Execution, execution.Document(x)), true
	}
	switch h, w := q.selected(); {
	case h != nil:
		return screen.ExecutionThing(&monitor.Execution{ID: h.ID, WorkerID: h.WorkerID}, &h.Holder), true
	case w != nil:
		return screen.ExecutionThing(&monitor.Execution{ID: w.ID}, w), true
	default:
		return screen.QueueThing(&d.Queue, d), true
	}
}
