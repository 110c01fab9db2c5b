// Package queues is the list of admission queues: how many executions wait, for how long, and whether the queue
// drains.
package queues

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/list"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/screen/queue"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// Queues is the view.
type Queues struct {
	*list.List[row]

	env  *screen.Env
	pane *queue.Preview
}

// row is a queue with its state and the reason of it.
type row struct {
	monitor.Queue

	name, state, note string
	// late is true if the head waits longer than HeadWaitLimit.
	late bool
}

var fields = []list.Field[row]{
	list.Sign(func(r *row) string { return r.state }),
	list.Text("ACTION / GROUP", 22, func(r *row) string { return r.name }).Grow().Middle().
		Texts(func(_ *screen.Env, r *row) []string { return []string{r.ActionRef} }).
		Term("action", "its action; a star stands for anything").SortBy(5, "name", list.Ascending(named)),
	list.Terms("group", "a value of its group, such as tenant=acme", func(_ *screen.Env, r *row) []string {
		_, group, _ := strings.Cut(r.name, " ")
		return append(strings.Split(group, ", "), r.Group)
	}),
	list.Term("state", "its state", func(r *row) string { return r.state }, "active", "idle", "warning", "paused").
		Kind(filter.Word),
	list.Number("QUEUED", 8, func(r *row) int64 { return r.Queued }).Watch().
		In(func(_ *screen.Env, r *row) theme.Role {
			if r.Limit == nil || *r.Limit == 0 {
				return theme.Plain
			}
			return theme.Heat(float64(r.Queued) / float64(depthLimits**r.Limit))
		}).
		Term("queued", "how many wait").Sort(2, "queued"),
	list.Number("RUN/MAX", 8, func(r *row) int64 { return r.Active }).Watch().
		Drawn(func(e *screen.Env, r *row) widget.Cell {
			return e.Worry(screen.Slots(r.Active, r.Limit), r.Full() && r.Queued > 0)
		}).
		Term("running", "how many hold a slot").Sort(3, "running"),
	list.Measure("limit", "its slots", func(r *row) (float64, bool) { return list.Maybe(r.Limit) }),
	list.Age("HEAD", 7, func(r *row) *time.Time { return r.Oldest }).
		In(func(e *screen.Env, r *row) theme.Role { return e.AgeHeat(r.Oldest, monitor.HeadWaitLimit) }).
		Term("head", "how long its head waits").Sort(1, "head"),
	list.Number("DONE", 8, completed).Priority(2).
		Drawn(func(e *screen.Env, r *row) widget.Cell {
			return widget.Cell{Text: e.PerMinute(screen.QueueDone(r.ID))}
		}).Sort(4, "done"),
	list.Draw("Δ1m", 6, func(e *screen.Env, r *row) widget.Cell {
		return widget.Cell{Text: e.Change(screen.QueueSeries(r.ID), time.Minute)}
	}).Right().Priority(3),
	list.Draw("ETA", 7, empties).Right().Priority(6),
	list.Number("TOTAL", 9, completed).Priority(5),
	list.Spark("15m", 7, func(r *row) string { return screen.QueueSeries(r.ID) }).Priority(4),
	list.Text("NOTE", 22, func(r *row) string { return r.note }).Dim().Share(60).Priority(7).
		Texts(func(_ *screen.Env, r *row) []string { return []string{r.note, sourceNote(&r.Queue)} }).
		Term("note", "its note").Kind(filter.Within),
}

// depthLimits is how many times its limit a queue may hold until its depth is painted as a warning.
const depthLimits = 100

func named(r *row) string    { return r.Queue.Name() }
func completed(r *row) int64 { return r.Completed }

// New makes the view.
func New(env *screen.Env) *Queues {
	v := &Queues{env: env, pane: queue.NewPreview(env)}
	v.List = list.New(env, list.Spec[row]{
		View: keymap.InQueues, Title: "Queues  per action, FIFO", Singular: "queue", Plural: "queues",
		Feed: screen.FeedQueues,
		MoreFeeds: func() []screen.Feed {
			if v.PreviewID() == 0 {
				return []screen.Feed{screen.FeedQueuesPast}
			}
			return []screen.Feed{screen.FeedQueuesPast, screen.FeedQueue, screen.FeedLine}
		},
		Stale: func() screen.Feed {
			if id := v.PreviewID(); id != 0 {
				return queue.Unread(env, id)
			}
			return ""
		},
		Loaded: func() bool { return env.Data.Queues != nil }, Rows: v.rows, Fields: fields,
		SearchTexts: func(r *row) []string { return []string{r.Queue.Name(), r.name} },
		Key:         func(r *row) string { return strconv.FormatInt(r.ID, 10) },
		Name:        func(r *row) string { return r.name },
		TieBreak:    func(a, b *row) int { return cmp.Compare(named(a), named(b)) },
		IsProblem:   func(r *row) bool { return r.Paused || r.Blocked != "" || r.late },
		IsIdle:      func(r *row) bool { return r.state == "idle" },
		Footer:      v.summary, Preview: v.preview,
		EmptyText: []string{
			" No queue exists yet. The first execution of an action makes one:",
			"   attune-executor run core.echo -p message=hello",
		},
		Open: func(r *row) screen.Effect {
			if !recorded(r) {
				return screen.OpenList(keymap.InExecutions, "action:"+r.ActionRef)
			}
			return screen.OpenQueue(r.ID)
		},
		MarkedActions: v.marked,
		Actions:       func(r *row) (act.Menu, bool) { return act.ForQueue(&r.Queue), true },
		Relations: func(r *row) (string, []screen.Relation) {
			return "queue " + r.name, append([]screen.Relation{{
				Key: "q", Label: "queue", Help: "its slot holders and waiting executions",
				To: screen.OpenQueue(r.ID),
			}}, screen.ActionRelations(r.ActionRef)...)
		},
		Export: func(r *row) screen.Thing { return screen.QueueThing(&r.Queue, r.Queue) },
		More:   func() bool { return env.Data.Queues != nil && env.Data.Queues.More },
	})
	return v
}

// Changed takes over new data.
func (v *Queues) Changed(feed screen.Feed) {
	v.pane.Changed(feed)
	v.List.Changed(feed)
}

func (v *Queues) rows() []row {
	read := v.env.Data.Queues.List
	rows := make([]row, len(read))
	for i := range read {
		rows[i] = assess(v.env, &read[i])
	}
	return rows
}

// assess finds the state of a queue, the worst first.
func assess(e *screen.Env, q *monitor.Queue) row {
	r := row{Queue: *q, name: screen.QueueName(q), state: "active", note: sourceNote(q)}
	r.late = q.Oldest != nil && e.Since(*q.Oldest) > monitor.HeadWaitLimit
	switch {
	case q.Paused:
		r.state, r.note = "paused", "paused"
		if q.PausedBy != "" {
			r.note += " by " + q.PausedBy
		}
		if q.PauseReason != "" {
			r.note += " " + q.PauseReason
		}
	case q.Blocked != "":
		r.state, r.note = "warning", q.Blocked
		if q.BlockedUntil != nil && q.BlockedUntil.After(e.Now) {
			r.note += ", again in " + widget.Short(q.BlockedUntil.Sub(e.Now))
		}
	case r.late:
		r.state, r.note = "warning", "head waits long"
	case q.Queued == 0 && q.Active == 0:
		r.state = "idle"
	}
	return r
}

// sourceNote names the source of the limit, and counts executions outside the normal lane.
func sourceNote(q *monitor.Queue) string {
	note := ""
	switch q.LimitFrom.Kind {
	case monitor.LimitPolicy:
		note = "limit of a deleted policy"
		if q.LimitFrom.Policy != "" {
			note = "limit of " + q.LimitFrom.Policy
		}
	case monitor.LimitOverride:
		note = "limit set by hand"
	case monitor.LimitAdaptive:
		note = "limit adapted"
	}
	var lanes []string
	if q.QueuedHigh > 0 {
		lanes = append(lanes, strconv.FormatInt(q.QueuedHigh, 10)+" high")
	}
	if q.QueuedLow > 0 {
		lanes = append(lanes, strconv.FormatInt(q.QueuedLow, 10)+" low")
	}
	if len(lanes) > 0 {
		note = strings.TrimPrefix(note+", "+strings.Join(lanes, " "), ", ")
	}
	return note
}

// empties is when the queue will be empty, as its page says.
func empties(e *screen.Env, r *row) widget.Cell {
	switch x := r.Empties; {
	case r.Queued == 0:
		return widget.Cell{Text: "-"}
	case r.Paused:
		return widget.Cell{Text: "never"}
	case x == nil || x.At == nil:
		return widget.Cell{Text: widget.Unknown}
	default:
		return widget.Cell{Text: widget.Age(max(x.At.Sub(e.Now), 0))}
	}
}

// DatabaseFilter is a text that each matching queue has in its name. With it the database searches among more
// queues than the list reads.
func (v *Queues) DatabaseFilter() monitor.QueueFilter {
	query := v.Query()
	if query.Empty() || len(query.Any) > 1 {
		return monitor.QueueFilter{}
	}
	for _, t := range query.Any[0] {
		plain := !t.Not && t.Regex == nil && len(t.Values) == 1 && !strings.ContainsAny(t.Values[0], "* ")
		if plain && (t.Field == "" || t.Field == "action") {
			return monitor.QueueFilter{Text: t.Values[0]}
		}
	}
	return monitor.QueueFilter{}
}

// PreviewID is the queue shown in the preview, 0 if none.
func (v *Queues) PreviewID() int64 {
	if r := v.Current(); r != nil && recorded(r) && v.PreviewLines(v.env.Width, v.env.Height) > 0 {
		return r.ID
	}
	return 0
}

// recorded reports whether the database has a row for the queue. Without one it has no page.
func recorded(r *row) bool { return r.LimitFrom.Kind != "" }

// Title is the text of the title rule.
func (v *Queues) Title() (left, right string) {
	left, right = v.List.Title()
	if d := v.env.Data.Queues; d != nil && d.More {
		right = v.Arrangement() + " · " + strconv.Itoa(v.Len()) + "+, busiest" + v.env.Mark(screen.FeedQueues)
	}
	return left, right
}

// marked is the menu of marked queues. A queue that has left the data is known by its number and name.
func (v *Queues) marked(keys []string) act.Menu {
	targets := screen.Targets(keys)
	known := v.env.Data.Queues.List
	for i := range targets {
		t := &targets[i]
		t.Name = v.Table().MarkName(t.Name)
		if at := slices.IndexFunc(known, func(q monitor.Queue) bool { return q.ID == t.ID }); at >= 0 {
			t.Action, t.Group = known[at].ActionRef, known[at].Group
		}
	}
	return act.ForMarked("queue", targets)
}

func (v *Queues) summary(int) []string {
	e, t, mark := v.env, v.env.Data.Queues.Totals, v.env.Mark(screen.FeedQueues)
	counts := " " + e.Num(t.Queues) + mark + " queues · " + e.Num(t.Queued) + mark + " queued · " +
		e.Num(t.Active) + mark + " running"
	if t.Slots > 0 {
		counts += " · " + e.Plural(t.Slots, "limited slot", "limited slots")
	}
	return []string{
		counts + v.Gone(),
		e.Dim(" head = wait of the oldest queued execution; Δ1m = net change in a minute"),
	}
}

func (v *Queues) preview(w, h int) []string {
	r := v.Current()
	if r == nil {
		return nil
	}
	e, note := v.env, r.note
	if source := sourceNote(&r.Queue); source != "" && source != note {
		note = strings.TrimPrefix(note+" · "+source, " · ")
	}
	of := "queue " + strconv.FormatInt(r.ID, 10) + " · action " + strconv.FormatInt(r.ActionID, 10)
	lines := []string{
		e.Rule("preview: "+r.name, of, w),
		" " + e.State(r.state) + "  " + widget.Clean(note),
		" waiting " + e.Num(r.Queued) + "   running " + screen.Slots(r.Active, r.Limit) + "   head " +
			e.AgeOf(r.Oldest) + "   ever enqueued " + e.Num(r.Enqueued) + "   ever completed " + e.Num(r.Completed),
	}
	if id := v.PreviewID(); id != 0 {
		return append(lines, v.pane.Lines(id, w, h-len(lines))...)
	}
	lines = append(lines, "", " "+e.Dim("DEPTH, last 60 min"))
	depth := e.Data.History.Trend(screen.QueueSeries(r.ID), time.Hour, e.Points(min(60, w-10)))
	lines = append(lines, widget.Chart(depth, min(w, 70), 6, e.Theme)...)
	return append(lines, " "+e.Dim("enter shows its limits, holders and waiting executions"))
}
