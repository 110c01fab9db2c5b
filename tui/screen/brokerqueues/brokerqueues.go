// Package brokerqueues is the view of the message broker: every queue of the
// virtual host with what is in force for it and whose it is, the nodes, and
// whether dead letters find their way.
//
// Numbers that the broker has not counted are unknown, never zero, and an
// interface that does not answer leaves what it said last, greyed with its age.
package brokerqueues

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/widget"
)

// The columns a list can be sorted by, in the order of the picker.
const (
	byProblem = iota
	byReady
	byUnacked
	byConsumers
	byIn
	byOut
	byName
)

var sortKeys = []string{"problem", "ready", "unacked", "consumers", "in", "out", "name"}

// Broker is the view.
type Broker struct {
	env   *screen.Env
	table *widget.Table
	rows  []row
	keys  []string
	screen.Filtered
	screen.Sorted

	problems bool
	preview  bool
	first    int
}

// row is a queue with whose it is and what is wrong with it.
type row struct {
	monitor.BrokerQueue
	worker string // its worker's name; empty for none
	orphan bool   // of a worker that has no row
	state  string // as the theme knows it
	note   string
}

var columns = []widget.Column{
	{Title: "", Width: 1},
	{Title: "QUEUE", Width: 24, Grow: true, Middle: true},
	{Title: "READY", Width: 8, Right: true, Watch: true},
	{Title: "UNACK", Width: 6, Right: true, Watch: true},
	{Title: "CONS", Width: 4, Right: true, Watch: true},
	{Title: "IN/s", Width: 6, Right: true, Priority: 3},
	{Title: "OUT/s", Width: 6, Right: true, Priority: 3},
	{Title: "TYPE", Width: 7, Priority: 6},
	{Title: "TTL", Width: 4, Right: true, Priority: 4},
	{Title: "DLX", Width: 10, Priority: 5},
	{Title: "MAX", Width: 6, Right: true, Priority: 7},
	{Title: "POLICY", Width: 10, Priority: 8},
	{Title: "WORKER", Width: 14, Middle: true, Priority: 2},
	{Title: "NOTE", Width: 24, Priority: 9},
}

// New makes the view.
func New(env *screen.Env) *Broker {
	return &Broker{env: env, table: widget.NewTable(columns), preview: true, Filtered: screen.NewFiltered(fields), Sorted: screen.NewSorted(sortKeys...)}
}

// Problems reports whether only what means trouble is listed.
func (v *Broker) Problems() bool { return v.problems }

// View is the name of the screen.
func (v *Broker) View() screen.View { return keymap.InBroker }

// Feeds is what the view needs polled: the broker first, which it is drawn from.
func (v *Broker) Feeds() []screen.Feed {
	return []screen.Feed{screen.FeedBroker, screen.FeedChecks, screen.FeedWorkers}
}

// Table is the list, with its columns.
func (v *Broker) Table() *widget.Table { return v.table }

// Name is what people call a row.
func (v *Broker) Name(i int) string { return v.rows[i].BrokerQueue.Name }

// Title is the text of the title rule.
func (v *Broker) Title() (left, right string) {
	right = screen.ListTitle("sort "+v.SortKey()+v.Order().Arrow(v.Order().Column != byName), v.problems, v.Filter())
	if b := v.env.Data.Broker; b != nil {
		right += " · " + strconv.Itoa(len(v.rows)) + v.env.Mark(screen.FeedBroker)
	}
	return "Broker", right
}

// SetFilter keeps the queues that pass.
func (v *Broker) SetFilter(text string) error {
	if err := v.SetQuery(text); err != nil {
		return err
	}
	v.rebuild(true)
	return nil
}

// SetOrder orders the list.
func (v *Broker) SetOrder(order screen.Order) {
	if v.Sort(order) {
		v.rebuild(true)
	}
}

// Select puts the cursor on a line of the body.
func (v *Broker) Select(line int) bool { return v.table.Select(line - v.first - 1) }

// Changed takes over new data.
func (v *Broker) Changed(feed screen.Feed) {
	switch feed {
	case screen.FeedBroker, screen.FeedChecks, screen.FeedWorkers:
		v.rebuild(false)
	}
}

// Do carries out an action.
func (v *Broker) Do(action keymap.Action) screen.Effect {
	if screen.MoveTable(v.table, action) {
		return screen.Effect{Handled: true}
	}
	switch action {
	case keymap.Problems:
		v.problems = !v.problems
		v.rebuild(true)
	case keymap.Preview:
		v.preview = !v.preview
	case keymap.Open:
		return v.open()
	default:
		return screen.Effect{}
	}
	return screen.Effect{Handled: true}
}

// open goes to what the queue is for.
func (v *Broker) open() screen.Effect {
	at := v.table.Cursor()
	if at < 0 {
		return screen.Effect{}
	}
	r := v.rows[at]
	switch {
	case r.BrokerQueue.Name == monitor.DeadLetterQueue:
		return screen.Effect{Handled: true, Open: keymap.InDeadLetters}
	case r.worker != "":
		return screen.Effect{Handled: true, Open: keymap.InWorkers, Filter: r.worker}
	case r.orphan:
		return screen.Effect{Handled: true, Note: "The worker of this queue has no row."}
	default:
		return screen.Effect{Handled: true, Note: "No other view shows more of this queue."}
	}
}

// rebuild filters and sorts. Unless the operator asked for it, rows keep their
// order while somebody reads.
func (v *Broker) rebuild(asked bool) {
	b := v.env.Data.Broker
	if b == nil {
		return
	}
	workers, known := v.workers()
	wrong := v.wrong()
	rows := make([]row, 0, len(b.Queues))
	for i := range b.Queues {
		r := judge(&b.Queues[i], workers, known, wrong)
		if v.matches(&r) {
			rows = append(rows, r)
		}
	}
	old := v.keys
	if asked {
		old = nil
	}
	v.rows, v.keys = screen.Arrange(v.env, rows, old, v.compare, func(r *row) string { return r.BrokerQueue.Name })
	v.table.SetRows(v)
}

// workers are the names of the workers by their ids; known is false while there may
// be more of them than were read.
func (v *Broker) workers() (names map[int64]string, known bool) {
	w := v.env.Data.Workers
	if w == nil {
		return nil, false
	}
	names = make(map[int64]string, len(w.List))
	for i := range w.List {
		names[w.List[i].ID] = w.List[i].Name
	}
	return names, !w.More
}

// wrong is what the checks of the wiring say about single queues.
func (v *Broker) wrong() map[string]monitor.Check {
	found := map[string]monitor.Check{}
	if v.env.Data.Checks == nil {
		return found
	}
	for _, c := range v.env.Data.Checks.List {
		if c.Status != monitor.CheckProblem && c.Status != monitor.CheckWarning {
			continue
		}
		for _, name := range c.Objects {
			if before, ok := found[name]; !ok || c.Status.Worst() < before.Status.Worst() {
				found[name] = c
			}
		}
	}
	return found
}

// judge says whose a queue is and what is wrong with it, the worst first.
func judge(q *monitor.BrokerQueue, workers map[int64]string, known bool, wrong map[string]monitor.Check) row {
	r := row{BrokerQueue: *q, state: "active"}
	if q.Worker != nil {
		name, ok := workers[*q.Worker]
		r.worker, r.orphan = name, known && !ok
	}
	ours := q.Worker != nil || strings.HasPrefix(q.Name, "attune.")
	check, checked := wrong[q.Name]
	switch {
	case q.Down():
		r.state, r.note = "failed", "the queue is "+q.State
	case r.orphan && q.Ready > 0 && !q.Notices():
		r.state, r.note = "failed", "no worker row: orphan"
	case checked && check.Status == monitor.CheckProblem:
		r.state, r.note = "failed", strings.TrimPrefix(check.Name, "topology.")+": "+check.Text
	case ours && q.TTL != nil && q.DeadLetterExchange == nil && q.Name != monitor.DeadLetterQueue:
		r.state, r.note = "failed", "what expires is deleted"
	case checked:
		r.state, r.note = "warning", check.Text
	case q.Uncounted:
		r.state, r.note = "scheduled", "not counted yet"
	case q.Name == monitor.DeadLetterQueue && q.Ready > 0 && q.Consumers > 0:
		r.state, r.note = "warning", "dead letters wait"
	case ours && q.Unheard():
		r.state, r.note = "warning", "nobody consumes it"
	case r.orphan && q.Ready > 0:
		r.state, r.note = "idle", "left over, notices about packs"
	case r.orphan:
		r.state, r.note = "idle", "left over, empty"
	case q.Ready > 0 && q.Consumers == 0 && q.Notices():
		r.state, r.note = "idle", "notices about packs, for when its worker runs"
	case q.Idle():
		r.state, r.note = "idle", "unused"
	}
	return r
}

func (v *Broker) matches(r *row) bool {
	if v.problems && r.state != "failed" && r.state != "warning" {
		return false
	}
	return v.Matches(asked{r})
}

func (v *Broker) compare(a, b *row) int {
	var c int
	switch v.Order().Column {
	case byProblem:
		c = cmp.Or(cmp.Compare(severity(a.state), severity(b.state)), monitor.ComparePressing(&a.BrokerQueue, &b.BrokerQueue))
	case byReady:
		c = cmp.Compare(b.Ready, a.Ready)
	case byUnacked:
		c = cmp.Compare(b.Unacked, a.Unacked)
	case byConsumers:
		c = cmp.Compare(b.Consumers, a.Consumers)
	case byIn:
		c = compareRate(a.Published, b.Published)
	case byOut:
		c = compareRate(a.Delivered, b.Delivered)
	case byName:
		return v.Order().Apply(cmp.Compare(a.BrokerQueue.Name, b.BrokerQueue.Name))
	}
	if c != 0 {
		return v.Order().Apply(c)
	}
	return cmp.Compare(a.BrokerQueue.Name, b.BrokerQueue.Name)
}

func severity(state string) int {
	switch state {
	case "failed":
		return 0
	case "warning":
		return 1
	case "idle":
		return 3
	default:
		return 2
	}
}

// compareRate orders the highest first and what is not known last.
func compareRate(a, b *float64) int {
	of := func(rate *float64) float64 {
		if rate == nil {
			return -1
		}
		return *rate
	}
	return cmp.Compare(of(b), of(a))
}

// Len is the number of rows.
func (v *Broker) Len() int { return len(v.rows) }

// Key identifies a row.
func (v *Broker) Key(i int) string { return v.keys[i] }

var (
	_ screen.Screen     = (*Broker)(nil)
	_ screen.Queryable  = (*Broker)(nil)
	_ screen.Sortable   = (*Broker)(nil)
	_ screen.Selectable = (*Broker)(nil)
	_ screen.Tabular    = (*Broker)(nil)
)
