// Package workers is the list of workers, judged by heartbeat, row and broker
// together: when they disagree, the stricter one is shown.
package workers

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/screen/worker"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// The columns a list can be sorted by, in the order of the picker.
const (
	byProblem = iota
	byName
	bySlots
	byBeat
)

var sortKeys = []string{"problem", "name", "slots", "heartbeat"}

// Workers is the view.
type Workers struct {
	env   *screen.Env
	table *widget.Table
	rows  []row
	keys  []string
	screen.Filtered
	screen.Sorted

	problems bool
	preview  bool
}

// row is a worker with its broker queue, or a queue that no worker owns.
type row struct {
	monitor.Worker
	seen   monitor.Judgement
	queue  *monitor.BrokerQueue
	orphan bool
}

var columns = []widget.Column{
	{Title: "", Width: 1},
	{Title: "WORKER", Width: 18, Grow: true, Middle: true},
	{Title: "STATUS", Width: 9, Watch: true},
	{Title: "SLOTS", Width: 7, Right: true, Watch: true},
	{Title: "HB", Width: 7, Right: true},
	{Title: "ROLE", Width: 7, Priority: 4},
	{Title: "READY", Width: 6, Right: true, Watch: true, Priority: 2},
	{Title: "UNACK", Width: 6, Right: true, Watch: true, Priority: 5},
	{Title: "CONS", Width: 5, Right: true, Watch: true, Priority: 2},
	{Title: "DONE/m", Width: 6, Right: true, Priority: 6},
	{Title: "SLOTS 15m", Width: 9, Priority: 3},
	{Title: "NOTE", Width: 26, Share: 60, Priority: 7},
}

// New makes the view.
func New(env *screen.Env) *Workers {
	return &Workers{env: env, table: widget.NewTable(columns), preview: true, Filtered: screen.NewFiltered(fields), Sorted: screen.NewSorted(sortKeys...)}
}

// Table is the list, with its marks and columns.
func (v *Workers) Table() *widget.Table { return v.table }

// Problems reports whether only what means trouble is listed.
func (v *Workers) Problems() bool { return v.problems }

// View is the name of the screen.
func (v *Workers) View() screen.View { return keymap.InWorkers }

// Feeds is what the view needs polled.
func (v *Workers) Feeds() []screen.Feed {
	feeds := []screen.Feed{screen.FeedWorkers, screen.FeedWorkersPast}
	if v.Subject() != 0 {
		feeds = append(feeds, screen.FeedWorker)
	}
	return feeds
}

// Title is the text of the title rule.
func (v *Workers) Title() (left, right string) {
	right = screen.ListTitle("sort "+v.SortKey()+v.Order().Arrow(v.Order().Column != byName), v.problems, v.Filter())
	if v.env.Data.Workers != nil {
		right += " · " + strconv.Itoa(len(v.rows)) + v.env.Mark(screen.FeedWorkers)
	}
	return "Workers", right
}

// SetFilter keeps the workers that pass.
func (v *Workers) SetFilter(text string) error {
	if err := v.SetQuery(text); err != nil {
		return err
	}
	v.rebuild(true)
	return nil
}

// SetOrder orders the list.
func (v *Workers) SetOrder(order screen.Order) {
	if v.Sort(order) {
		v.rebuild(true)
	}
}

// Select puts the cursor on a line of the body.
func (v *Workers) Select(line int) bool { return v.table.Select(line - 1) }

// Changed takes over new data.
func (v *Workers) Changed(feed screen.Feed) {
	if feed == screen.FeedWorkers || feed == screen.FeedBroker {
		v.rebuild(false)
	}
}

// Do carries out an action.
func (v *Workers) Do(action keymap.Action) screen.Effect {
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

func (v *Workers) open() screen.Effect {
	at := v.table.Cursor()
	if at < 0 {
		return screen.Effect{Handled: true}
	}
	return screen.OpenWorker(v.rows[at].ID)
}

func (v *Workers) rebuild(asked bool) {
	d := v.env.Data.Workers
	if d == nil {
		return
	}
	rows := v.join(d)
	rows = slices.DeleteFunc(rows, func(r row) bool { return !v.matches(r) })
	old := v.keys
	if asked {
		old = nil
	}
	v.rows, v.keys = screen.Arrange(v.env, rows, old, v.compare, func(r *row) string { return strconv.FormatInt(r.ID, 10) })
	v.table.SetRows(v)
}

// join puts each worker beside its broker queue and adds the queues that no
// worker row owns.
func (v *Workers) join(d *monitor.Workers) []row {
	rows := make([]row, 0, len(d.List))
	known := map[int64]bool{}
	for _, w := range d.List {
		r := row{Worker: w, seen: v.env.Judge(&w, d.At)}
		if q, ok := v.env.Data.Broker.Queue(monitor.WorkerQueue(w.ID)); ok {
			r.queue = &q
		}
		known[w.ID] = true
		rows = append(rows, r)
	}
	if v.env.Data.Broker == nil || d.More {
		return rows
	}
	for _, q := range v.env.Data.Broker.Queues {
		if id, ok := monitor.WorkerOfQueue(q.Name); ok && !known[id] {
			rows = append(rows, row{
				orphan: true, queue: &q, seen: monitor.Judgement{Health: monitor.WorkerStale},
				Worker: monitor.Worker{ID: id, Name: fmt.Sprintf("worker %d (no row)", id)},
			})
		}
	}
	return rows
}

func (v *Workers) matches(r row) bool {
	if v.problems && r.seen.Health == monitor.WorkerActive {
		return false
	}
	return v.Matches(asked{v, r})
}

var severity = map[monitor.WorkerHealth]int{
	monitor.WorkerStale: 0, monitor.WorkerDeaf: 1, monitor.WorkerSuspect: 1, monitor.WorkerUnhealthy: 1, monitor.WorkerDegraded: 2, monitor.WorkerDraining: 2, monitor.WorkerCordoned: 2,
	monitor.WorkerBusy: 3, monitor.WorkerActive: 4, monitor.WorkerInactive: 5,
}

func (r row) severity() int { return severity[r.seen.Health] }

func (v *Workers) compare(a, b *row) int {
	var c int
	switch v.Order().Column {
	case byProblem:
		c = cmp.Compare(a.severity(), b.severity())
	case bySlots:
		c = cmp.Compare(value(b.Assigned), value(a.Assigned))
	case byBeat:
		c = compareBeat(a.Heartbeat, b.Heartbeat)
	case byName:
		c = cmp.Compare(a.Name, b.Name)
	}
	if c != 0 {
		return v.Order().Apply(c)
	}
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
}

func value(n *int64) int64 {
	if n == nil {
		return -1
	}
	return *n
}

func compareBeat(a, b *time.Time) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	default:
		return a.Compare(*b)
	}
}

// Len is the number of rows.
func (v *Workers) Len() int { return len(v.rows) }

// Key identifies a row.
func (v *Workers) Key(i int) string { return v.keys[i] }

// Name is what people call a row.
func (v *Workers) Name(i int) string { return v.rows[i].Name }

// Cells are the texts of a row.
func (v *Workers) Cells(i int, into []widget.Cell) []widget.Cell {
	e, r := v.env, v.rows[i]
	look := e.Theme.Of(string(r.seen.Health))
	status, slots := string(r.seen.Health), widget.Unknown
	if r.orphan {
		status, slots = "-", "-"
	}
	if r.Assigned != nil {
		slots = screen.Slots(*r.Assigned, r.Capacity)
	}
	ready, unacked, consumers := widget.Unknown, widget.Unknown, widget.Unknown
	if r.queue != nil && !r.queue.Uncounted {
		mark := e.Mark(screen.FeedBroker)
		ready, unacked, consumers = e.Num(r.queue.Ready)+mark, e.Num(r.queue.Unacked)+mark, e.Num(r.queue.Consumers)+mark
	} else if p := r.Probe; p != nil && p.Valid && p.Ready != nil && p.Consumers != nil { // what the engine saw is better than nothing
		ready, consumers = e.Num(*p.Ready), e.Num(*p.Consumers)
	}
	return append(into,
		widget.Cell{Text: look.Glyph, Role: look.Role},
		widget.Cell{Text: r.Name},
		widget.Cell{Text: status, Role: look.Role},
		e.Worry(slots, r.seen.Health == monitor.WorkerBusy),
		e.Worry(e.AgeOf(r.Heartbeat), r.seen.Health == monitor.WorkerStale && !r.orphan),
		widget.Cell{Text: r.Role},
		widget.Cell{Text: ready},
		widget.Cell{Text: unacked},
		e.Worry(consumers, r.seen.Health == monitor.WorkerDeaf),
		widget.Cell{Text: v.done(r)},
		widget.Cell{Text: e.Spark(screen.WorkerSeries(r.ID), 15*time.Minute, 9), Role: theme.Dim},
		widget.Cell{Text: v.note(r), Role: theme.Dim},
	)
}

// doneSpan is over how many minutes it is counted what ends at a worker.
const doneSpan = 5

// done is how many end at a worker in a minute.
func (v *Workers) done(r row) string {
	past := v.env.Data.WorkersPast
	switch w := past.Of(r.ID); {
	case r.orphan:
		return "-"
	case past == nil || len(past.List) == 0:
		return widget.Unknown
	case w == nil:
		return "0"
	default:
		lived := int(v.env.Since(r.Created)/time.Minute) + 1
		return strconv.FormatFloat(math.Round(w.PerMinute(min(doneSpan, max(1, lived)))*10)/10, 'f', -1, 64)
	}
}

// note says in words what is wrong with a worker.
func (v *Workers) note(r row) string {
	switch {
	case r.orphan:
		return "queue without worker row"
	case r.seen.Health == monitor.WorkerStale && r.Heartbeat != nil:
		return fmt.Sprintf("hb stale, %d assigned", max(0, value(r.Assigned)))
	case r.seen.Health == monitor.WorkerDeaf:
		return "consumes nothing"
	case r.seen.Health == monitor.WorkerUnhealthy:
		return strings.TrimSpace("no new work: " + r.seen.Why)
	case r.seen.Health == monitor.WorkerDegraded:
		return strings.TrimSpace("used last: " + r.seen.Why)
	case r.seen.Health == monitor.WorkerStale, r.seen.Health == monitor.WorkerSuspect:
		return r.seen.Why
	case r.seen.Health == monitor.WorkerCordoned:
		return strings.TrimSpace("cordoned " + r.CordonReason)
	case r.seen.Health == monitor.WorkerBusy:
		return "at capacity"
	default:
		return ""
	}
}

// Render draws the view.
func (v *Workers) Render(w, h int) []string {
	e, d := v.env, v.env.Data.Workers
	if d == nil {
		return e.Missing(screen.FeedWorkers, "the workers", w)
	}
	if len(v.rows) == 0 {
		return v.empty()
	}
	detail := min(8, max(0, h-8))
	if v.wide() && w >= 120 {
		detail = h * 2 / 5
	}
	if !v.preview {
		detail = 0
	}
	table := v.table.Lines(w, h-detail, e.Theme)
	if replicas := e.ReplicaLines(w-2, h-detail-len(table)-2); len(replicas) > 0 { // where the table leaves room
		table = append(table, "")
		for _, line := range replicas {
			table = append(table, " "+line)
		}
	}
	lines := widget.Fit(table, w, h-detail)
	if detail > 0 {
		lines = append(lines, widget.Fit(v.detail(w, detail), w, detail)...)
	}
	return lines
}

func (v *Workers) empty() []string {
	switch {
	case v.Filter() != "":
		return []string{"", " No worker matches /" + widget.Clean(v.Filter()) + ".  esc clears the filter"}
	case v.problems:
		return []string{"", " " + v.env.Paint(theme.Good, "✓") + " No worker has a problem.  z shows all"}
	default:
		return []string{"", " No worker has registered, so nothing runs. Start one:", "   attune-executor worker"}
	}
}

// detail says more about the worker under the cursor: all there is room for.
func (v *Workers) detail(w, h int) []string {
	e, r := v.env, v.rows[max(0, v.table.Cursor())]
	s := v.subject(r)
	if v.wide() && h > 6 {
		return worker.Pane(e, &s, w, h)
	}
	lines := append([]string{worker.Rule(e, &s, w)}, worker.Facts(e, &s)...)
	return append(lines, e.GoneNote(v.table, "the worker under the cursor"))
}

func (v *Workers) subject(r row) worker.Subject {
	return worker.Subject{Worker: r.Worker, Judgement: r.seen, Queue: r.queue, Orphan: r.orphan}
}

// wide reports whether the worker under the cursor is told of at length.
func (v *Workers) wide() bool { return v.preview && v.env.Width >= 120 && v.env.Height >= 25 }

// Subject is the worker that is told of beside or below the list; zero where there is none.
func (v *Workers) Subject() int64 {
	if at := v.table.Cursor(); v.preview && at >= 0 && !v.rows[at].orphan {
		return v.rows[at].ID
	}
	return 0
}

// Behind names what is to be read when another worker is told of than was read last.
func (v *Workers) Behind() screen.Feed {
	if id := v.Subject(); id != 0 && worker.Detail(v.env, id) == nil {
		return screen.FeedWorker
	}
	return ""
}
