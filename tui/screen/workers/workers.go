// Package workers is the list of workers. Heartbeat, row and broker decide about the health of a worker; if
// they disagree, the worst of them is shown.
package workers

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/monitor"
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

	env  *screen.Env
	pane *worker.Preview
}

// row is a worker with its broker queue, or a queue that no worker owns.
type row struct {
	worker.Assessed

	note string
}

// ranks order workers by their health, the worst first.
var ranks = map[monitor.WorkerHealth]int{
	monitor.WorkerStale: 0, monitor.WorkerDeaf: 1, monitor.WorkerSuspect: 1, monitor.WorkerUnhealthy: 1,
	monitor.WorkerDegraded: 2, monitor.WorkerDraining: 2, monitor.WorkerCordoned: 2, monitor.WorkerBusy: 3,
	monitor.WorkerActive: 4, monitor.WorkerInactive: 5,
}

var fields = []list.Field[row]{
	list.Sign(func(r *row) string { return string(r.Seen.Health) }),
	list.Text("WORKER", 18, named).Grow().Middle().Sort(2, "name").
		Term("worker", "its name or id; a star stands for anything").
		Also(func(r *row) string { return strconv.FormatInt(r.ID, 10) }),
	list.Text("HEALTH", 9, status).Watch().
		In(func(e *screen.Env, r *row) theme.Role { return e.Theme.Of(string(r.Seen.Health)).Role }).
		Term("status", "its health", "active", "busy", "stale", "deaf", "suspect", "unhealthy", "degraded", "draining",
			"cordoned", "inactive").Kind(filter.Word),
	list.Order(1, "problem", list.Ascending(func(r *row) int { return ranks[r.Seen.Health] })),
	list.Number("SLOTS", 7, assigned).Watch().Drawn(slots).Sort(3, "slots"),
	list.Age("HB", 7, func(r *row) *time.Time { return r.Heartbeat }).
		In(func(e *screen.Env, r *row) theme.Role { return e.AgeHeat(r.Heartbeat, e.Data.StaleAfter()) }).
		SortBy(4, "heartbeat", list.Ascending(func(r *row) int64 {
			if r.Heartbeat == nil {
				return 0 // before all others
			}
			return r.Heartbeat.UnixNano()
		})),
	list.Text("ROLE", 7, func(r *row) string { return r.Role }).Priority(4).Term("role", "its role"),
	list.Term("host", "its host", func(r *row) string { return r.Host }),
	list.Terms("runtime", "one of its runtimes", func(_ *screen.Env, r *row) []string { return r.Runtimes }),
	list.Term("version", "its version", func(r *row) string { return r.Version }),
	list.Measure("slots", "how many are taken", func(r *row) (float64, bool) {
		return float64(assigned(r)), r.Assigned != nil
	}),
	counted("READY", 6, func(q *monitor.BrokerQueue) int64 { return q.Ready },
		func(p *monitor.WorkerProbe) *int64 { return p.Ready }).Priority(2).
		Known(func(r *row) (float64, bool) {
			if r.Queue == nil || r.Queue.Uncounted {
				return 0, false
			}
			return float64(r.Queue.Ready), true
		}).Term("ready", "messages ready in its queue"),
	counted("UNACK", 6, func(q *monitor.BrokerQueue) int64 { return q.Unacked },
		func(*monitor.WorkerProbe) *int64 { return nil }).Priority(5),
	counted("CONS", 5, func(q *monitor.BrokerQueue) int64 { return q.Consumers },
		func(p *monitor.WorkerProbe) *int64 { return p.Consumers }).Priority(2).
		Worry(func(_ *screen.Env, r *row) bool { return r.Seen.Health == monitor.WorkerDeaf }),
	list.Draw("DONE/m", 6, done).Right().Priority(6),
	list.Spark("SLOTS 15m", 9, func(r *row) string { return screen.WorkerSeries(r.ID) }).Priority(3),
	list.Age("", 0, func(r *row) *time.Time { return r.Heartbeat }).Term("hb", "how old its heartbeat is"),
	list.Text("NOTE", 26, func(r *row) string { return r.note }).Dim().Share(60).Priority(7).
		Term("note", "its note").Kind(filter.Within),
}

func named(r *row) string { return r.Name }

// assigned is the number of slots taken, -1 if unknown.
func assigned(r *row) int64 {
	if r.Assigned == nil {
		return -1
	}
	return *r.Assigned
}

func status(r *row) string {
	if r.Orphan {
		return "-"
	}
	return string(r.Seen.Health)
}

func slots(e *screen.Env, r *row) widget.Cell {
	text := widget.Unknown
	switch {
	case r.Assigned != nil:
		text = screen.Slots(*r.Assigned, r.Capacity)
	case r.Orphan:
		text = "-"
	}
	return e.Worry(text, r.Seen.Health == monitor.WorkerBusy)
}

// counted is a number of a worker's queue: of the broker, or else of the last probe of the engine.
func counted(
	title string, width int, of func(*monitor.BrokerQueue) int64, probed func(*monitor.WorkerProbe) *int64,
) list.Field[row] {
	return list.Draw(title, width, func(e *screen.Env, r *row) widget.Cell {
		if r.Queue != nil && !r.Queue.Uncounted {
			return widget.Cell{Text: e.Num(of(r.Queue)) + e.Mark(screen.FeedBroker)}
		}
		if p := r.Probe; p != nil && p.Valid && p.Ready != nil && p.Consumers != nil {
			if n := probed(p); n != nil {
				return widget.Cell{Text: e.Num(*n)}
			}
		}
		return widget.Cell{Text: widget.Unknown}
	}).Right().Watch()
}

// done is the average number of executions that ended at a worker per minute.
func done(e *screen.Env, r *row) widget.Cell {
	const span = 5 // minutes
	past := e.Data.WorkersPast
	text := "0"
	switch w := past.Of(r.ID); {
	case r.Orphan:
		text = "-"
	case past == nil || len(past.List) == 0:
		text = widget.Unknown
	case w != nil:
		age := int(e.Since(r.Created)/time.Minute) + 1
		text = strconv.FormatFloat(math.Round(w.PerMinute(min(span, max(1, age)))*10)/10, 'f', -1, 64)
	}
	return widget.Cell{Text: text}
}

// New makes the view.
func New(env *screen.Env) *Workers {
	v := &Workers{env: env, pane: worker.NewPreview(env)}
	v.List = list.New(env, list.Spec[row]{
		View: keymap.InWorkers, Title: "Workers", Singular: "worker", Plural: "workers",
		Feed: screen.FeedWorkers, RefreshOn: []screen.Feed{screen.FeedBroker},
		MoreFeeds: func() []screen.Feed {
			if v.PreviewID() == 0 {
				return []screen.Feed{screen.FeedWorkersPast}
			}
			return []screen.Feed{screen.FeedWorkersPast, screen.FeedWorker}
		},
		Stale: func() screen.Feed {
			if id := v.PreviewID(); id != 0 && worker.Detail(env, id) == nil {
				return screen.FeedWorker
			}
			return ""
		},
		Loaded: func() bool { return env.Data.Workers != nil }, Rows: v.rows, Fields: fields,
		SearchTexts: func(r *row) []string { return append([]string{r.Name, r.Host, r.Role}, r.Runtimes...) },
		Key:         func(r *row) string { return strconv.FormatInt(r.ID, 10) },
		Name:        named,
		TieBreak:    func(a, b *row) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) },
		IsProblem:   func(r *row) bool { return r.Seen.Health != monitor.WorkerActive },
		IsIdle:      func(r *row) bool { return r.Seen.Health == monitor.WorkerInactive },
		BelowTable:  v.replicas, Preview: v.preview, PreviewHeight: v.previewHeight,
		EmptyText: []string{" No worker has registered, so nothing runs. Start one:", "   attune-executor worker"},
		Open:      func(r *row) screen.Effect { return screen.OpenWorker(r.ID) },
		Actions: func(r *row) (act.Menu, bool) {
			if r.Orphan {
				return act.Menu{}, false
			}
			return act.ForWorker(&r.Worker, env.Data.Workers.At, env.Data.StaleAfter()), true
		},
		MarkedActions: func(keys []string) act.Menu {
			targets := screen.Targets(keys) // the plan skips queues without a worker
			for i := range targets {
				targets[i].Name = v.Table().MarkName(targets[i].Name)
			}
			return act.ForMarked("worker", targets)
		},
		Relations: func(r *row) (string, []screen.Relation) {
			return "worker " + r.Name, append([]screen.Relation{{
				Key: "w", Label: "worker", Help: "its heartbeats, executions and queue", To: screen.OpenWorker(r.ID),
			}}, screen.WorkerRelations(r.ID)...)
		},
		Export: func(r *row) screen.Thing { return r.Thing(r.Worker) },
	})
	return v
}

// rows are the workers with their broker queues, and the queues that no worker owns.
func (v *Workers) rows() []row {
	d := v.env.Data.Workers
	rows := make([]row, 0, len(d.List))
	queues := v.env.Data.Broker.WorkerQueues()
	add := func(j worker.Assessed) {
		r := row{Assessed: j, note: "queue without worker row"}
		if !j.Orphan {
			r.note = j.Note(j.Seen)
		}
		rows = append(rows, r)
	}
	for i := range d.List {
		w := &d.List[i]
		add(worker.Assessed{Worker: *w, Seen: v.env.Assess(w, d.At), Queue: queues[w.ID]})
		delete(queues, w.ID)
	}
	if d.More {
		return rows
	}
	for _, id := range slices.Sorted(maps.Keys(queues)) {
		add(worker.Assessed{
			Worker: monitor.Worker{ID: id, Name: fmt.Sprintf("worker %d (no row)", id)},
			Seen:   monitor.Assessment{Health: monitor.WorkerStale}, Queue: queues[id], Orphan: true,
		})
	}
	return rows
}

// Changed takes over new data.
func (v *Workers) Changed(feed screen.Feed) {
	v.pane.Changed(feed)
	v.List.Changed(feed)
}

// PreviewID is the worker shown in the preview, 0 if none.
func (v *Workers) PreviewID() int64 {
	if r := v.Current(); v.PreviewShown() && r != nil && !r.Orphan {
		return r.ID
	}
	return 0
}

// replicas lists the replicas of the engine if the table leaves room.
func (v *Workers) replicas(w, room int) []string {
	if v.Len() == 0 {
		return nil
	}
	replicas := v.env.ReplicaLines(w-2, room-2)
	if len(replicas) == 0 {
		return nil
	}
	return append([]string{""}, screen.Indented(replicas)...)
}

// wide reports whether the preview shows more than facts.
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

func (v *Workers) preview(w, h int) []string {
	r := v.Current()
	if r == nil {
		return nil
	}
	wide := v.wide() && h > 6
	lines := v.pane.Lines(&r.Assessed, wide, w, h)
	if wide {
		return lines
	}
	return append(lines, v.Gone())
}
