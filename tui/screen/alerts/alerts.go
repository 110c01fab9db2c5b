// Package alerts is the view of alerts and failed checks. Below the list it explains the selected row, and
// shows all checks and the alerts that were cleared recently.
//
// An empty list proves no health by itself: the first line always says when the rules were evaluated last, or
// that no replica evaluates them.
package alerts

import (
	"slices"
	"strings"
	"time"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/list"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/widget"
)

// Alerts is the view.
type Alerts struct {
	*list.List[row]

	env *screen.Env
	// past lists cleared alerts, the newest first; onPast is true while it has the focus.
	past   *list.Table[row]
	onPast bool
	// origin, workers and queues explain alerts. They are assessed when data is read.
	origin  origin
	workers map[string]assessed
	queues  map[string]*monitor.Queue
}

// A trend covers trendSpan in trendWidth cells.
const (
	trendSpan  = 15 * time.Minute
	trendWidth = 8
)

var fields = []list.Field[row]{
	list.Draw("", 1, func(e *screen.Env, r *row) widget.Cell {
		look, _ := r.look(e)
		return widget.Cell{Text: look.Glyph, Role: look.Role}
	}),
	list.Term("rule", "its rule, or the name of a check; a star stands for anything", ruleOf),
	list.Draw("LEVEL", 9, func(e *screen.Env, r *row) widget.Cell {
		look, word := r.look(e)
		return widget.Cell{Text: word, Role: look.Role}
	}).
		Texts(func(_ *screen.Env, r *row) []string {
			if r.check != nil {
				return []string{"check"}
			}
			return []string{r.class()}
		}).
		Term("level", "its severity", "critical", "warning", "info", "pending", "explained", "check").Kind(filter.Word).
		SortBy(1, "level", list.Ascending((*row).rank)),
	list.Text("RULE", 20, ruleOf).Middle().Sort(3, "rule"),
	list.Text("DETAIL", 34, func(r *row) string { return r.text }).Grow(),
	list.Age("SINCE", 6, func(r *row) *time.Time { return r.since }).
		Drawn(func(e *screen.Env, r *row) widget.Cell {
			text := e.AgeOf(r.since)
			if r.check != nil && r.since != nil {
				text = ">" + text // the check may have failed before the dashboard saw it
			}
			return widget.Cell{Text: text}
		}).Sort(2, "since"),
	list.Number("SEEN", 4, (*row).times).Sort(5, "seen").
		Drawn(func(e *screen.Env, r *row) widget.Cell {
			switch {
			case r.alert == nil:
				return widget.Cell{Text: "-"}
			case r.alert.Times > 0:
				return widget.Cell{Text: e.Num(r.alert.Times)}
			}
			return widget.Cell{Text: widget.Unknown}
		}),
	list.Text("TARGET", 24, targetOf).Dim().Middle().Priority(1).Sort(4, "target").
		Texts(func(_ *screen.Env, r *row) []string {
			if r.check != nil {
				return r.check.Objects
			}
			return []string{r.target}
		}).Term("target", "its target").Kind(filter.Within).Completed(),
	list.Draw("TREND", trendWidth, func(e *screen.Env, r *row) widget.Cell {
		if r.alert == nil {
			return widget.Cell{Text: "-"}
		}
		look, _ := r.look(e)
		return widget.Cell{Text: e.Spark(e.Data.AlertSeries(r.alert), trendSpan, trendWidth), Role: look.Role}
	}).Priority(2),
	list.Terms("measure", "its measure", func(_ *screen.Env, r *row) []string {
		if r.alert == nil {
			return nil
		}
		return []string{r.alert.Measure}
	}),
	list.Term("view", "the view that enter opens", func(r *row) string { return string(r.leads().Open.View) }),
	list.Terms("state", "open or cleared, acknowledged or muted", func(e *screen.Env, r *row) []string {
		return []string{r.state(e)}
	}, "open", "acked", "muted", "cleared").Kind(filter.Word),
	list.Age("", 0, func(r *row) *time.Time {
		if r.alert == nil {
			return nil
		}
		return r.since
	}).Term("age", "how long it lasts"),
	list.Measure("seen", "how often it fired within a day", func(r *row) (float64, bool) {
		return float64(r.times()), r.times() > 0
	}),
}

func keyOf(r *row) string    { return r.key }
func ruleOf(r *row) string   { return r.rule }
func targetOf(r *row) string { return r.target }

// New makes the view.
func New(env *screen.Env) *Alerts {
	v := &Alerts{env: env, past: newCleared(env)}
	v.List = list.New(env, list.Spec[row]{
		View: keymap.InAlerts, Title: "Alerts", Singular: "alert", Plural: "alerts",
		Feed:      screen.FeedAlerts,
		RefreshOn: []screen.Feed{screen.FeedChecks, screen.FeedOverview, screen.FeedBroker},
		MoreFeeds: func() []screen.Feed {
			feeds := []screen.Feed{screen.FeedChecks, screen.FeedQueuesPast}
			if v.aboutDeadLetters() {
				feeds = append(feeds, screen.FeedDeadLetters)
			}
			return feeds
		},
		Stale: func() screen.Feed {
			d := env.Data
			if v.aboutDeadLetters() && d.DeadLetters == nil && d.Fresh(screen.FeedDeadLetters).Err == nil {
				return screen.FeedDeadLetters
			}
			return ""
		},
		Loaded: func() bool { return env.Data.Alerts != nil }, Rows: v.rows, Fields: fields, Others: v.others,
		SearchTexts: func(r *row) []string { return []string{r.rule, r.text, r.target} },
		Key:         keyOf,
		IsProblem: func(r *row) bool {
			return r.check != nil || r.alert.State == alerting.AlertFiring &&
				r.alert.Severity != alerting.LevelInfo && r.state(env) == "open"
		},
		RowsChanged: v.listCleared, Empty: v.calm,
		NoProblem: "No warning or critical alert is open, except acknowledged and muted ones.",
		Export:    thing,
	})
	v.past.Focus(false)
	return v
}

// aboutDeadLetters reports whether an open alert measures dead letters. Their origin then explains it.
func (v *Alerts) aboutDeadLetters() bool {
	a := v.env.Data.Alerts
	if a == nil && v.env.Data.Overview != nil {
		a = v.env.Data.Overview.Alerts
	}
	return a != nil && slices.ContainsFunc(a.Open, func(one alerting.Alert) bool {
		return strings.HasPrefix(one.Measure, deadLetterMeasures)
	})
}

// deadLetterMeasures is the prefix of the measures of dead letters.
const deadLetterMeasures = "dead_letter"

// Changed judges what explains the alerts, and lists them again.
func (v *Alerts) Changed(feed screen.Feed) {
	switch feed {
	case screen.FeedDeadLetters:
		v.origin = originOf(v.env.Data.DeadLetters)
		v.assess()
	case screen.FeedAlerts, screen.FeedOverview, screen.FeedBroker, screen.FeedWorkers, screen.FeedQueues:
		v.assess()
	default:
	}
	v.List.Changed(feed)
}

// Title is the text of the title rule: the order of the list and its rows by class.
func (v *Alerts) Title() (left, right string) {
	if v.env.Data.Alerts == nil {
		return "Alerts", ""
	}
	by := map[string]int64{}
	for i := range v.VisibleRows() {
		r := &v.VisibleRows()[i]
		class := r.class()
		if v.env.Quiet.MutedFor(r.key, v.env.Clock) > 0 {
			class = "muted"
		}
		by[class]++
	}
	parts := []string{v.Arrangement()}
	for _, class := range []string{"critical", "warning", "info", "pending", "muted", "explained", "checks"} {
		if n := by[class]; n > 0 {
			parts = append(parts, v.env.Num(n)+" "+class)
		}
	}
	if len(by) == 0 {
		parts = append(parts, "none open")
	}
	return "Alerts", strings.Join(parts, " · ") + v.env.Mark(screen.FeedAlerts)
}

// focus has the keys go to the cleared alerts, if there are any, or to the list.
func (v *Alerts) focus(past bool) {
	v.onPast = past && v.past.Len() > 0
	v.Table().Focus(!v.onPast)
	v.past.Focus(v.onPast)
}

// InFirst reports whether the list has the focus.
func (v *Alerts) InFirst() bool { return !v.onPast }

// Leave returns the focus from the cleared alerts to the list.
func (v *Alerts) Leave() bool {
	was := v.onPast
	v.focus(false)
	return was
}

// Do carries out an action.
func (v *Alerts) Do(action keymap.Action) screen.Effect {
	switch action {
	case keymap.NextPane, keymap.PrevPane:
		v.focus(!v.onPast)
	case keymap.Preview:
		v.ShowPreview(!v.PreviewShown())
		v.focus(false)
	case keymap.Acknowledge, keymap.Mute:
		return v.quiet(action)
	case keymap.Open:
		if r := v.current(); r != nil {
			return r.leads()
		}
		return screen.Effect{Handled: true, Note: "Nothing needs attention."}
	default:
		if v.onPast && screen.MoveTable(v.past.Table, action) {
			return screen.Effect{Handled: true}
		}
		return v.List.Do(action)
	}
	return screen.Effect{Handled: true}
}

// current is the row under the cursor, or nil.
func (v *Alerts) current() *row {
	if v.onPast {
		return v.past.Current()
	}
	return v.Current()
}

// quiet acknowledges or mutes the selected alert in this session. The second time it takes that back.
func (v *Alerts) quiet(action keymap.Action) screen.Effect {
	r := v.current()
	if r == nil || r.alert == nil || r.found || r.alert.Cleared != nil {
		return screen.Effect{Handled: true, Note: "Only open alerts can be acknowledged or muted."}
	}
	e := v.env
	var note string
	switch {
	case action == keymap.Acknowledge && e.Quiet.Acknowledge(r.key):
		note = "Acknowledged in this session; it stays open."
	case action == keymap.Acknowledge:
		note = "No longer acknowledged."
	case e.Quiet.Mute(r.key, e.Clock):
		note = "Muted in this session for " + widget.Short(screen.MuteTime) + "; the engine still evaluates it."
	default:
		note = "No longer muted."
	}
	v.Rebuild(true)
	return screen.Effect{Handled: true, Note: note}
}

// others are the cleared alerts and the checks that are well.
func (v *Alerts) others() (rows []row) {
	for i := range v.env.Data.Alerts.Recent {
		rows = append(rows, alertRow(&v.env.Data.Alerts.Recent[i]))
	}
	if c := v.env.Data.Checks; c != nil {
		for i := range c.List {
			rows = append(rows, checkRow(&c.List[i]))
		}
	}
	return rows
}

// Relations lead from the selected alert or check to related items.
func (v *Alerts) Relations() (title string, related []screen.Relation, ok bool) {
	r := v.current()
	if r == nil {
		return "", nil, false
	}
	queue := screen.Relation{Key: "q", Label: "queue", Not: "it is about none"}
	worker := screen.Relation{Key: "w", Label: "worker", Not: "it is about none"}
	executions := screen.Relation{Key: "x", Label: "executions", Not: "it is about none by name"}
	deadLetters := screen.Relation{
		Key: "d", Label: "dead letters", Help: "all", To: screen.OpenList(keymap.InDeadLetters, ""),
	}
	switch a := r.alert; {
	case a == nil:
	case a.Of == "queue":
		action, _, _ := strings.Cut(a.Target, " ")
		queue.Leads(a.Target, screen.OpenList(keymap.InQueues, action))
		executions.Leads("of "+action, screen.OpenList(keymap.InExecutions, "action:"+action))
		deadLetters.Leads("of "+action, screen.OpenList(keymap.InDeadLetters, "action:"+action))
	case a.Of == "worker":
		quoted := filter.Quote(a.Target)
		worker.Leads(a.Target, screen.OpenList(keymap.InWorkers, quoted))
		executions.Leads("assigned to "+a.Target, screen.OpenList(keymap.InExecutions, "worker:"+quoted))
		deadLetters.Leads("from "+a.Target, screen.OpenList(keymap.InDeadLetters, "from:"+quoted))
	}
	opens := r.leads()
	help := strings.TrimSpace(string(opens.Open.View) + "  " + opens.Open.Filter)
	return r.rule, []screen.Relation{
		{Key: "t", Label: "target", Help: help, To: opens},
		queue, worker, executions, deadLetters,
		{
			Key: "m", Label: "broker", Help: "queues and wiring, " + monitor.DeadLetterQueue + " among them",
			To: screen.OpenList(keymap.InBroker, ""),
		},
	}, true
}
