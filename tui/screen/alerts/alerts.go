// Package alerts is the view of what is wrong, what was, and who watches: the alerts
// and the checks that failed in one list, what is known of the one under the cursor,
// all checks, and what was cleared lately.
//
// An empty list is no health by itself: the view always says how old the newest
// evaluation of the rules is, and that nobody evaluates them when that is so.
package alerts

import (
	"cmp"
	"strings"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/list"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// Alerts is the view.
type Alerts struct {
	*list.List[row]

	env *screen.Env
	// past are the alerts that have ended, the newest first; onPast is true while they have the
	// focus.
	past   *list.Table[cleared]
	onPast bool
	// letters is where most of the newest dead letters came from.
	letters origin
}

// trendWidth is the room of a trend, whose span is trendSpan.
const trendWidth = 8

var fields = []list.Field[row]{
	{
		Column: widget.Column{Width: 1},
		Cell: func(e *screen.Env, r *row) widget.Cell {
			look, _ := r.look(e)
			return widget.Cell{Text: look.Glyph, Role: look.Role}
		},
	},
	{
		Term: filter.Field{
			Name: "rule", Kind: filter.Text, Help: "its rule, or the name of a check; a star stands for anything",
		},
		Texts: list.TextOf(ruleOf), Complete: true,
	},
	{
		Column: widget.Column{Title: "LEVEL", Width: 9},
		Cell: func(e *screen.Env, r *row) widget.Cell {
			look, word := r.look(e)
			return widget.Cell{Text: word, Role: look.Role}
		},
		Term: filter.Field{
			Name: "level", Kind: filter.Word, Help: "how bad it is",
			Values: []string{"critical", "warning", "info", "pending", "explained", "check"},
		},
		Texts: list.TextOf(func(r *row) string {
			if r.check != nil {
				return "check"
			}
			return r.class()
		}),
		Sort: list.Order[row]{Key: 1, Name: "level", Compare: list.Ascending((*row).rank)},
	},
	{
		Column: widget.Column{Title: "RULE", Width: 20, Middle: true}, Cell: list.Plain(ruleOf),
		Sort: list.Order[row]{Key: 3, Name: "rule", Ascending: true, Compare: list.Ascending(ruleOf)},
	},
	{
		Column: widget.Column{Title: "DETAIL", Width: 34, Grow: true},
		Cell:   list.Plain(func(r *row) string { return r.text }),
	},
	{
		Column: widget.Column{Title: "SINCE", Width: 6, Right: true},
		Cell:   func(e *screen.Env, r *row) widget.Cell { return widget.Cell{Text: r.since(e)} },
		Sort: list.Order[row]{Key: 2, Name: "since", Compare: func(e *screen.Env, x, y *row) int {
			return cmp.Compare(y.age(e), x.age(e))
		}},
	},
	{
		Column: widget.Column{Title: "SEEN", Width: 4, Right: true},
		Cell: func(e *screen.Env, r *row) widget.Cell {
			switch {
			case r.alert == nil:
				return widget.Cell{Text: "-"}
			case r.alert.Times > 0:
				return widget.Cell{Text: e.Num(r.alert.Times)}
			}
			return widget.Cell{Text: widget.Unknown}
		},
		Sort: list.Order[row]{Key: 5, Name: "seen", Compare: list.Descending((*row).times)},
	},
	{
		Column: widget.Column{Title: "TARGET", Width: 24, Middle: true, Priority: 1},
		Cell:   list.Dim(func(r *row) string { return r.target }),
		Term:   filter.Field{Name: "target", Kind: filter.Within, Help: "what it is about"},
		Texts: func(_ *screen.Env, r *row) []string {
			if r.check != nil {
				return r.check.Objects
			}
			return []string{r.target}
		},
		Sort: list.Order[row]{
			Key: 4, Name: "target", Ascending: true, Compare: list.Ascending(func(r *row) string { return r.target }),
		},
	},
	{
		Column: widget.Column{Title: "TREND", Width: trendWidth, Priority: 2},
		Cell: func(e *screen.Env, r *row) widget.Cell {
			if r.alert == nil {
				return widget.Cell{Text: "-"}
			}
			look, _ := r.look(e)
			return widget.Cell{Text: e.Spark(e.Data.AlertSeries(r.alert), trendSpan, trendWidth), Role: look.Role}
		},
	},
	{
		Term: filter.Field{Name: "measure", Kind: filter.Text, Help: "what is measured"},
		Texts: func(_ *screen.Env, r *row) []string {
			if r.alert == nil {
				return nil
			}
			return []string{r.alert.Measure}
		},
		Complete: true,
	},
	{
		Term:  filter.Field{Name: "view", Kind: filter.Text, Help: "the view that it leads to"},
		Texts: list.TextOf(func(r *row) string { return string(r.open().Open.View) }), Complete: true,
	},
	{
		Term: filter.Field{
			Name: "state", Kind: filter.Word, Values: []string{"open", "acked", "muted", "cleared"},
			Help: "whether it lasts, and what was done about it here",
		},
		Texts: func(e *screen.Env, r *row) []string { return []string{r.state(e)} },
	},
	{
		Term:   filter.Field{Name: "age", Kind: filter.Age, Help: "since when it lasts"},
		Number: func(e *screen.Env, r *row) (float64, bool) { return r.age(e).Seconds(), r.alert != nil },
	},
	{
		Term:   filter.Field{Name: "seen", Kind: filter.Number, Help: "how often it fired within a day"},
		Number: func(_ *screen.Env, r *row) (float64, bool) { return float64(r.times()), r.times() > 0 },
	},
}

func ruleOf(r *row) string { return r.rule }

// New makes the view.
func New(env *screen.Env) *Alerts {
	v := &Alerts{env: env, past: newCleared(env)}
	v.List = list.New(env, list.Spec[row]{
		View: keymap.InAlerts, Title: "Alerts", Singular: "alert", Plural: "alerts",
		Feed:      screen.FeedAlerts,
		RefreshOn: []screen.Feed{screen.FeedChecks, screen.FeedOverview, screen.FeedBroker},
		MoreFeeds: v.needs, Stale: v.behind,
		Loaded: func() bool { return env.Data.Alerts != nil }, Rows: v.rows, Fields: fields, Completions: v.known,
		SearchTexts: func(r *row) []string { return []string{r.rule, r.text, r.target} },
		Key:         func(r *row) string { return r.key },
		IsProblem:   v.troubles,
		RowsChanged: v.gatherCleared,
		Export:      thing,
	})
	v.past.Focus(false)
	return v
}

// needs are the checks, and the letters too while an alert is about them, since they say where
// they came from.
func (v *Alerts) needs() []screen.Feed {
	feeds := []screen.Feed{screen.FeedChecks, screen.FeedQueuesPast}
	if v.aboutLetters() {
		feeds = append(feeds, screen.FeedDeadLetters)
	}
	return feeds
}

// behind names the letters when an alert is about them and they were not read yet.
func (v *Alerts) behind() screen.Feed {
	d := v.env.Data
	if v.aboutLetters() && d.DeadLetters == nil && d.Fresh(screen.FeedDeadLetters).Err == nil {
		return screen.FeedDeadLetters
	}
	return ""
}

func (v *Alerts) aboutLetters() bool {
	a := v.env.Data.Alerts
	if a == nil && v.env.Data.Overview != nil {
		a = v.env.Data.Overview.Alerts
	}
	if a == nil {
		return false
	}
	for i := range a.Open {
		if strings.HasPrefix(a.Open[i].Measure, letterMeasures) {
			return true
		}
	}
	return false
}

// letterMeasures is how the measures of dead letters begin.
const letterMeasures = "dead_letter"

// Changed takes over new data.
func (v *Alerts) Changed(feed screen.Feed) {
	if feed == screen.FeedDeadLetters {
		v.letters = originOf(v.env.Data.DeadLetters)
	}
	v.List.Changed(feed)
}

// Title is the text of the title rule.
func (v *Alerts) Title() (left, right string) {
	if v.env.Data.Alerts == nil {
		return "Alerts", ""
	}
	parts := append([]string{v.Arrangement()}, v.counts()...)
	return "Alerts", strings.Join(parts, " · ") + v.env.Mark(screen.FeedAlerts)
}

// counts says how much there is of each level.
func (v *Alerts) counts() []string {
	by := map[string]int64{}
	for i := range v.VisibleRows() {
		r := &v.VisibleRows()[i]
		class := r.class()
		if v.env.Quiet.MutedFor(r.key, v.env.Clock) > 0 {
			class = "muted"
		}
		by[class]++
	}
	var parts []string
	for _, class := range classes {
		if n := by[class]; n > 0 {
			parts = append(parts, v.env.Num(n)+" "+class)
		}
	}
	if len(parts) == 0 {
		return []string{"none open"}
	}
	return parts
}

// Select puts the cursor on a line of the body.
func (v *Alerts) Select(line int) bool {
	if v.env.Data.Alerts == nil {
		return false
	}
	_, at := v.draw(v.env.Width, v.env.Height)
	if v.Table().Select(line - at.first - 1) {
		v.focus(false)
		return true
	}
	if at.past > 0 && v.past.Select(line-at.past) {
		v.focus(true)
		return true
	}
	return false
}

func (v *Alerts) focus(past bool) {
	v.onPast = past && v.past.Len() > 0
	v.Table().Focus(!v.onPast)
	v.past.Focus(v.onPast)
}

// Leave takes the focus back from what was cleared.
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
			return r.open()
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
	if !v.onPast {
		return v.Current()
	}
	if c := v.past.Current(); c != nil {
		return &c.row
	}
	return nil
}

// quiet acknowledges the alert under the cursor, or mutes it; the same again takes
// that back. Nothing but this session knows of it.
func (v *Alerts) quiet(action keymap.Action) screen.Effect {
	r := v.current()
	if r == nil || r.alert == nil || r.found || r.alert.Cleared != nil {
		return screen.Effect{Handled: true, Note: "Only alerts that are open can be acknowledged or muted."}
	}
	e := v.env
	note := "No longer acknowledged."
	switch {
	case action == keymap.Acknowledge && e.Quiet.Acknowledge(r.key):
		note = "Acknowledged in this session; it stays open."
	case action == keymap.Acknowledge:
	case e.Quiet.Mute(r.key, e.Clock):
		note = "Muted here for " + widget.Short(screen.MuteTime) +
			", in the header too; the engine goes on evaluating it."
	default:
		note = "Heard again."
	}
	v.Rebuild(true)
	return screen.Effect{Handled: true, Note: note}
}

// look is how the level of a row looks, and the word for it: what was done about it
// here goes before how bad it is, which the sign says too.
func (r *row) look(e *screen.Env) (look theme.State, word string) {
	if r.check != nil {
		return e.CheckLook(r.check.Status), "check"
	}
	look = e.Theme.Of(screen.LevelState(r.alert.Severity))
	word = levelWords[r.alert.Severity]
	if r.alert.State == alerting.AlertPending {
		look.Role, word = theme.Dim, "pending"
	}
	if r.cause != "" {
		look.Role, word = theme.Dim, "explained"
	}
	if e.Quiet.Acked(r.key) {
		look.Role, word = theme.Dim, "acked"
	}
	if left := e.Quiet.MutedFor(r.key, e.Clock); left > 0 {
		look.Role, word = theme.Dim, "muted "+widget.Short(left)
	}
	return look, word
}

var levelWords = map[alerting.Level]string{
	alerting.LevelCritical: "crit", alerting.LevelWarning: "warn", alerting.LevelInfo: "info",
}

// known lists the values of a field that were read, whatever the filter in place.
func (v *Alerts) known(field string) []string {
	var known screen.Distinct
	d := v.env.Data
	add := func(r row) {
		switch field {
		case "rule":
			known.Add(r.rule)
		case "view":
			known.Add(string(r.open().Open.View))
		case "measure":
			if r.alert != nil {
				known.Add(r.alert.Measure)
			}
		case "target":
			if r.alert != nil {
				known.Add(r.alert.Target)
			}
		}
	}
	if d.Alerts != nil {
		for _, list := range [][]alerting.Alert{d.Alerts.Open, d.Alerts.Recent} {
			for i := range list {
				add(alertRow(&list[i]))
			}
		}
	}
	if d.Checks != nil {
		for i := range d.Checks.List {
			add(checkRow(&d.Checks.List[i]))
		}
	}
	return known.List()
}

// Relations is what the alert or check under the cursor has to do with.
func (v *Alerts) Relations() (title string, related []screen.Relation, ok bool) {
	r := v.current()
	if r == nil {
		return "", nil, false
	}
	name, kind := "", ""
	if r.alert != nil {
		name, kind = r.alert.Target, r.alert.Of
	}
	queue := screen.Relation{Key: "q", Label: "queue", Not: "it is about none"}
	worker := screen.Relation{Key: "w", Label: "worker", Not: "it is about none"}
	executions := screen.Relation{Key: "x", Label: "executions", Not: "it is about none by name"}
	letters := screen.Relation{
		Key: "d", Label: "dead letters", Help: "all", To: screen.OpenList(keymap.InDeadLetters, ""),
	}
	switch kind {
	case "queue":
		action, _, _ := strings.Cut(name, " ")
		queue.Leads(name, screen.OpenList(keymap.InQueues, action))
		executions.Leads("of "+action, screen.OpenList(keymap.InExecutions, "action:"+action))
		letters.Leads("of "+action, screen.OpenList(keymap.InDeadLetters, "action:"+action))
	case "worker":
		quoted := filter.Quote(name)
		worker.Leads(name, screen.OpenList(keymap.InWorkers, quoted))
		executions.Leads("given to "+name, screen.OpenList(keymap.InExecutions, "worker:"+quoted))
		letters.Leads("on their way to "+name, screen.OpenList(keymap.InDeadLetters, "from:"+quoted))
	}
	opens := r.open()
	help := strings.TrimSpace(string(opens.Open.View) + "  " + opens.Open.Filter)
	return r.rule, []screen.Relation{
		{Key: "t", Label: "target", Help: help, To: opens}, queue, worker, executions, letters,
		{
			Key: "m", Label: "broker", Help: "queues and wiring, " + monitor.DeadLetterQueue + " among them",
			To: screen.OpenList(keymap.InBroker, ""),
		},
	}, true
}
