// Package workers is the list of workers, judged by heartbeat, row and broker
// together: when they disagree, the stricter one is shown.
package workers

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/list"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/screen/worker"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// Workers is the view.
type Workers struct {
	*list.List[row]

	env   *screen.Env
	below *worker.Preview
}

// row is a worker with its broker queue, or a queue that no worker owns.
type row struct {
	monitor.Worker

	seen   monitor.Judgement
	queue  *monitor.BrokerQueue
	orphan bool
	note   string
}

// healths are how workers are judged, with how bad that is: the worst first.
var healths = []struct {
	health monitor.WorkerHealth
	rank   int
}{
	{monitor.WorkerActive, 4}, {monitor.WorkerBusy, 3}, {monitor.WorkerStale, 0}, {monitor.WorkerDeaf, 1},
	{monitor.WorkerSuspect, 1}, {monitor.WorkerUnhealthy, 1}, {monitor.WorkerDegraded, 2}, {monitor.WorkerDraining, 2},
	{monitor.WorkerCordoned, 2}, {monitor.WorkerInactive, 5},
}

func healthWords() []string {
	words := make([]string, len(healths))
	for i, h := range healths {
		words[i] = string(h.health)
	}
	return words
}

func rank(r *row) int {
	for _, h := range healths {
		if h.health == r.seen.Health {
			return h.rank
		}
	}
	return 0
}

var fields = []list.Field[row]{
	{
		Column: widget.Column{Width: 1},
		Cell: func(e *screen.Env, r *row) widget.Cell {
			look := e.Theme.Of(string(r.seen.Health))
			return widget.Cell{Text: look.Glyph, Role: look.Role}
		},
	},
	{
		Column: widget.Column{Title: "WORKER", Width: 18, Grow: true, Middle: true},
		Cell:   list.Plain(named),
		Term:   filter.Field{Name: "worker", Kind: filter.Text, Help: "its name or id; a star stands for anything"},
		Texts:  list.TextOf(named), Complete: true,
		AlsoMatches: func(r *row) string { return strconv.FormatInt(r.ID, 10) },
		Sort:        list.Order[row]{Key: 2, Name: "name", Ascending: true, Compare: list.Ascending(named)},
	},
	{
		Column: widget.Column{Title: "STATUS", Width: 9, Watch: true},
		Cell: func(e *screen.Env, r *row) widget.Cell {
			look := e.Theme.Of(string(r.seen.Health))
			return widget.Cell{Text: status(r), Role: look.Role}
		},
		Term: filter.Field{Name: "status", Kind: filter.Word, Values: healthWords(), Help: "how it is judged"},
		Texts: func(_ *screen.Env, r *row) []string {
			if r.orphan {
				return nil
			}
			return []string{status(r)}
		},
		Sort: list.Order[row]{Key: 1, Name: "problem", Compare: list.Ascending(rank)},
	},
	{
		Column: widget.Column{Title: "SLOTS", Width: 7, Right: true, Watch: true}, Cell: slots,
		Sort: list.Order[row]{Key: 3, Name: "slots", Compare: list.Descending(assigned)},
	},
	{
		Column: widget.Column{Title: "HB", Width: 7, Right: true},
		Cell: func(e *screen.Env, r *row) widget.Cell {
			if r.orphan {
				return widget.Cell{Text: "-"}
			}
			return widget.Cell{Text: e.AgeOf(r.Heartbeat), Role: e.AgeHeat(r.Heartbeat, e.Data.StaleAfter())}
		},
		Sort: list.Order[row]{Key: 4, Name: "heartbeat", Compare: list.Ascending(beat)},
	},
	{
		Column: widget.Column{Title: "ROLE", Width: 7, Priority: 4},
		Cell:   list.Plain(func(r *row) string { return r.Role }),
		Term:   filter.Field{Name: "role", Kind: filter.Text, Help: "its role"},
		Texts:  list.TextOf(func(r *row) string { return r.Role }), Complete: true,
	},
	{
		Term:  filter.Field{Name: "host", Kind: filter.Text, Help: "its host"},
		Texts: list.TextOf(func(r *row) string { return r.Host }), Complete: true,
	},
	{
		Term:  filter.Field{Name: "runtime", Kind: filter.Text, Help: "what it runs"},
		Texts: func(_ *screen.Env, r *row) []string { return r.Runtimes }, Complete: true,
	},
	{
		Term:  filter.Field{Name: "version", Kind: filter.Text, Help: "its version"},
		Texts: list.TextOf(func(r *row) string { return r.Version }), Complete: true,
	},
	{
		Term: filter.Field{Name: "slots", Kind: filter.Number, Help: "how many are taken"},
		Number: func(_ *screen.Env, r *row) (float64, bool) {
			return float64(assigned(r)), r.Assigned != nil
		},
	},
	{
		Column: widget.Column{Title: "READY", Width: 6, Right: true, Watch: true, Priority: 2},
		Cell: counted(func(q *monitor.BrokerQueue) int64 { return q.Ready },
			func(p *monitor.WorkerProbe) *int64 { return p.Ready }),
		Term: filter.Field{Name: "ready", Kind: filter.Number, Help: "messages that wait for it"},
		Number: func(_ *screen.Env, r *row) (float64, bool) {
			if r.queue == nil || r.queue.Uncounted {
				return 0, false
			}
			return float64(r.queue.Ready), true
		},
	},
	{
		Column: widget.Column{Title: "UNACK", Width: 6, Right: true, Watch: true, Priority: 5},
		Cell: counted(func(q *monitor.BrokerQueue) int64 { return q.Unacked },
			func(*monitor.WorkerProbe) *int64 { return nil }),
	},
	{
		Column: widget.Column{Title: "CONS", Width: 5, Right: true, Watch: true, Priority: 2},
		Cell: func(e *screen.Env, r *row) widget.Cell {
			cell := counted(func(q *monitor.BrokerQueue) int64 { return q.Consumers },
				func(p *monitor.WorkerProbe) *int64 { return p.Consumers })(e, r)
			return e.Worry(cell.Text, r.seen.Health == monitor.WorkerDeaf)
		},
	},
	{Column: widget.Column{Title: "DONE/m", Width: 6, Right: true, Priority: 6}, Cell: done},
	{
		Column: widget.Column{Title: "SLOTS 15m", Width: 9, Priority: 3},
		Cell: func(e *screen.Env, r *row) widget.Cell {
			return widget.Cell{Text: e.Spark(screen.WorkerSeries(r.ID), 15*time.Minute, 9), Role: theme.Trend}
		},
	},
	{
		Term:   filter.Field{Name: "hb", Kind: filter.Age, Help: "how old its heartbeat is"},
		Number: list.AgeOf(heartbeat),
	},
	{
		Column: widget.Column{Title: "NOTE", Width: 26, Share: 60, Priority: 7},
		Cell:   func(_ *screen.Env, r *row) widget.Cell { return widget.Cell{Text: r.note, Role: theme.Dim} },
		Term:   filter.Field{Name: "note", Kind: filter.Within, Help: "what is said of it"},
		Texts:  list.TextOf(func(r *row) string { return r.note }),
	},
}

func named(r *row) string         { return r.Name }
func heartbeat(r *row) *time.Time { return r.Heartbeat }

// beat is when a worker was heard last; before all others if never.
func beat(r *row) int64 {
	if r.Heartbeat == nil {
		return 0
	}
	return r.Heartbeat.UnixNano()
}

// assigned is how many slots are taken, -1 while that is not known.
func assigned(r *row) int64 {
	if r.Assigned == nil {
		return -1
	}
	return *r.Assigned
}

func status(r *row) string {
	if r.orphan {
		return "-"
	}
	return string(r.seen.Health)
}

func slots(e *screen.Env, r *row) widget.Cell {
	text := widget.Unknown
	switch {
	case r.Assigned != nil:
		text = screen.Slots(*r.Assigned, r.Capacity)
	case r.orphan:
		text = "-"
	}
	return e.Worry(text, r.seen.Health == monitor.WorkerBusy)
}

// counted is a number of a worker's queue as the broker tells it; what the engine saw is better
// than nothing.
func counted(
	of func(*monitor.BrokerQueue) int64, probed func(*monitor.WorkerProbe) *int64,
) func(*screen.Env, *row) widget.Cell {
	return func(e *screen.Env, r *row) widget.Cell {
		if r.queue != nil && !r.queue.Uncounted {
			return widget.Cell{Text: e.Num(of(r.queue)) + e.Mark(screen.FeedBroker)}
		}
		if p := r.Probe; p != nil && p.Valid && p.Ready != nil && p.Consumers != nil {
			if n := probed(p); n != nil {
				return widget.Cell{Text: e.Num(*n)}
			}
		}
		return widget.Cell{Text: widget.Unknown}
	}
}

// doneSpan is over how many minutes it is counted what ends at a worker.
const doneSpan = 5

// done is how many end at a worker in a minute.
func done(e *screen.Env, r *row) widget.Cell {
	past := e.Data.WorkersPast
	text := "0"
	switch w := past.Of(r.ID); {
	case r.orphan:
		text = "-"
	case past == nil || len(past.List) == 0:
		text = widget.Unknown
	case w != nil:
		lived := int(e.Since(r.Created)/time.Minute) + 1
		each := math.Round(w.PerMinute(min(doneSpan, max(1, lived)))*10) / 10
		text = strconv.FormatFloat(each, 'f', -1, 64)
	}
	return widget.Cell{Text: text}
}

// note says in words what is wrong with a worker.
func note(r *row) string {
	switch {
	case r.orphan:
		return "queue without worker row"
	case r.seen.Health == monitor.WorkerStale && r.Heartbeat != nil:
		return fmt.Sprintf("hb stale, %d assigned", max(0, assigned(r)))
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

// New makes the view.
func New(env *screen.Env) *Workers {
	v := &Workers{env: env, below: worker.NewPreview(env)}
	v.List = list.New(env, list.Spec[row]{
		View: keymap.InWorkers, Title: "Workers", Singular: "worker", Plural: "workers",
		Feed: screen.FeedWorkers, RefreshOn: []screen.Feed{screen.FeedBroker}, MoreFeeds: v.needs, Stale: v.behind,
		Loaded: func() bool { return env.Data.Workers != nil }, Rows: v.rows, Fields: fields,
		SearchTexts: func(r *row) []string { return append([]string{r.Name, r.Host, r.Role}, r.Runtimes...) },
		Key:         func(r *row) string { return strconv.FormatInt(r.ID, 10) },
		Name:        named,
		TieBreak:    func(a, b *row) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) },
		IsProblem:   func(r *row) bool { return r.seen.Health != monitor.WorkerActive },
		IsIdle:      func(r *row) bool { return r.seen.Health == monitor.WorkerInactive },
		BelowTable:  v.replicas, Preview: v.preview, PreviewHeight: v.previewHeight,
		EmptyText: []string{" No worker has registered, so nothing runs. Start one:", "   attune-executor worker"},
		Open:      func(r *row) screen.Effect { return screen.OpenWorker(r.ID) },
		Actions: func(r *row) (act.Menu, bool) {
			if r.orphan { // a queue that no worker owns
				return act.Menu{}, false
			}
			return act.ForWorker(&r.Worker, env.Data.Workers.At, env.Data.StaleAfter()), true
		},
		MarkedActions: v.marked,
		Relations: func(r *row) (string, []screen.Relation) {
			return "worker " + r.Name, append([]screen.Relation{{
				Key: "w", Label: "worker", Help: "its heartbeats, what it has, its queue", To: screen.OpenWorker(r.ID),
			}}, screen.WorkerRelations(r.ID)...)
		},
		Export: func(r *row) screen.Thing {
			s := subject(r)
			return s.Thing(s.Worker)
		},
	})
	return v
}

// rows puts each worker beside its broker queue and adds the queues that no worker row owns.
func (v *Workers) rows() []row {
	d, broker := v.env.Data.Workers, v.env.Data.Broker
	rows := make([]row, 0, len(d.List))
	known := map[int64]bool{}
	for i := range d.List {
		r := row{Worker: d.List[i], seen: v.env.Judge(&d.List[i], d.At)}
		if q, ok := broker.Queue(monitor.WorkerQueue(r.ID)); ok {
			r.queue = &q
		}
		r.note = note(&r)
		known[r.ID] = true
		rows = append(rows, r)
	}
	if broker == nil || d.More {
		return rows
	}
	for i := range broker.Queues {
		q := &broker.Queues[i]
		if id, ok := monitor.WorkerOfQueue(q.Name); ok && !known[id] {
			r := row{orphan: true, queue: q, seen: monitor.Judgement{Health: monitor.WorkerStale}}
			r.ID, r.Name = id, fmt.Sprintf("worker %d (no row)", id)
			r.note = note(&r)
			rows = append(rows, r)
		}
	}
	return rows
}

func subject(r *row) worker.Subject {
	return worker.Subject{Worker: r.Worker, Judgement: r.seen, Queue: r.queue, Orphan: r.orphan}
}

// marked is what may be done with marked workers. A queue that no worker owns is skipped when
// that is planned.
func (v *Workers) marked(keys []string) act.Menu {
	targets := screen.Targets(keys)
	for i := range targets {
		targets[i].Name = v.Table().MarkName(targets[i].Name)
	}
	return act.ForMarkedWorkers(targets)
}

// Changed takes over what was read.
func (v *Workers) Changed(feed screen.Feed) {
	v.below.Changed(feed)
	v.List.Changed(feed)
}

func (v *Workers) needs() []screen.Feed {
	feeds := []screen.Feed{screen.FeedWorkersPast}
	if v.Subject() != 0 {
		feeds = append(feeds, screen.FeedWorker)
	}
	return feeds
}

// Subject is the worker that is told of below the list; zero where there is none.
func (v *Workers) Subject() int64 {
	if r := v.Current(); v.PreviewShown() && r != nil && !r.orphan {
		return r.ID
	}
	return 0
}

// behind names what is to be read when another worker is told of than was read last.
func (v *Workers) behind() screen.Feed {
	if id := v.Subject(); id != 0 && worker.Detail(v.env, id) == nil {
		return screen.FeedWorker
	}
	return ""
}

// replicas are those of the engine, where the table leaves room.
func (v *Workers) replicas(w, room int) []string {
	if v.Len() == 0 {
		return nil
	}
	replicas := v.env.ReplicaLines(w-2, room-2)
	if len(replicas) == 0 {
		return nil
	}
	lines := []string{""}
	for _, line := range replicas {
		lines = append(lines, " "+line)
	}
	return lines
}

// wide reports whether the worker under the cursor is told of at length.
func (v *Workers) wide() bool { return v.env.Width >= 120 && v.env.Height >= 25 }

func (v *Workers) previewHeight(w, h int) int {
	switch {
	case !v.PreviewShown():
		return 0
	case v.wide() && w >= 120:
		return h * 2 / 5
	default:
		return min(8, max(0, h-8))
	}
}

// preview says more about the worker under the cursor: all there is room for.
func (v *Workers) preview(w, h int) []string {
	r := v.Current()
	if r == nil {
		return nil
	}
	s := subject(r)
	wide := v.wide() && h > 6
	lines := v.below.Lines(&s, wide, w, h)
	if wide {
		return lines
	}
	return append(lines, v.Gone())
}
