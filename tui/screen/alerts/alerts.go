// Package alerts is the view of what is wrong, what was, and who watches: the alerts
// and the checks that failed in one list, what is known of the one under the cursor,
// all checks, and what was cleared lately.
//
// An empty list is no health by itself: the view always says how old the newest
// evaluation of the rules is, and that nobody evaluates them when that is so.
package alerts

import (
	"strings"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// Alerts is the view.
type Alerts struct {
	env *screen.Env
	screen.Filtered
	screen.Sorted

	table, past *widget.Table
	rows        []row
	keys        []string
	cleared     clearedRows
	problems    bool
	// brief leaves out what stands below the list.
	brief bool
	// onPast is true while what was cleared has the focus.
	onPast bool
	// first and pastFirst are the lines of the body on which the lists begin.
	first, pastFirst int
}

var columns = []widget.Column{
	{Title: "", Width: 1},
	{Title: "LEVEL", Width: 9},
	{Title: "RULE", Width: 20, Middle: true},
	{Title: "DETAIL", Width: 34, Grow: true},
	{Title: "SINCE", Width: 6, Right: true},
	{Title: "SEEN", Width: 4, Right: true},
	{Title: "TARGET", Width: 24, Middle: true, Priority: 1},
	{Title: "TREND", Width: trendWidth, Priority: 2},
}

// trendWidth is the room of a trend, whose span is trendSpan.
const trendWidth = 8

// New makes the view.
func New(env *screen.Env) *Alerts {
	v := &Alerts{
		env: env, table: widget.NewTable(columns), past: widget.NewTable(clearedColumns), Filtered: screen.NewFiltered(fields),
		Sorted: screen.NewSorted(sortKeys...),
	}
	v.past.Focus(false)
	return v
}

// Table is the list, with its marks and columns.
func (v *Alerts) Table() *widget.Table { return v.table }

// Problems reports whether only what means trouble is listed.
func (v *Alerts) Problems() bool { return v.problems }

// View is the name of the screen.
func (v *Alerts) View() screen.View { return keymap.InAlerts }

// Feeds is what the view needs polled: the letters too while an alert is about them,
// since they say where they came from.
func (v *Alerts) Feeds() []screen.Feed {
	feeds := []screen.Feed{screen.FeedAlerts, screen.FeedChecks, screen.FeedQueuesPast}
	if v.aboutLetters() {
		feeds = append(feeds, screen.FeedDeadLetters)
	}
	return feeds
}

// Behind names the letters when an alert is about them and they were not read yet.
func (v *Alerts) Behind() screen.Feed {
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

// Title is the text of the title rule.
func (v *Alerts) Title() (left, right string) {
	if v.env.Data.Alerts == nil {
		return "Alerts", ""
	}
	order := "sort " + v.SortKey() + v.Order().Arrow(v.Order().Column != byRule && v.Order().Column != byTarget)
	parts := append([]string{screen.ListTitle(order, v.problems, v.Filter())}, v.counts()...)
	return "Alerts", strings.Join(parts, " · ") + v.env.Mark(screen.FeedAlerts)
}

// counts says how much there is of each level.
func (v *Alerts) counts() []string {
	by := map[string]int64{}
	for i := range v.rows {
		class := v.rows[i].class()
		if v.env.Quiet.MutedFor(v.rows[i].key, v.env.Clock) > 0 {
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

// SetFilter keeps the alerts that pass, of what was cleared too.
func (v *Alerts) SetFilter(text string) error {
	if err := v.SetQuery(text); err != nil {
		return err
	}
	v.gather(true)
	return nil
}

// SetOrder orders the list.
func (v *Alerts) SetOrder(order screen.Order) {
	if v.Sort(order) {
		v.gather(true)
	}
}

// Select puts the cursor on a line of the body.
func (v *Alerts) Select(line int) bool {
	if v.table.Select(line - v.first - 1) {
		v.focus(false)
		return true
	}
	if v.pastFirst > 0 && v.past.Select(line-v.pastFirst) {
		v.focus(true)
		return true
	}
	return false
}

func (v *Alerts) focus(past bool) {
	v.onPast = past && v.cleared.Len() > 0
	v.table.Focus(!v.onPast)
	v.past.Focus(v.onPast)
}

// Leave takes the focus back from what was cleared.
func (v *Alerts) Leave() bool {
	was := v.onPast
	v.focus(false)
	return was
}

// Changed takes over new data.
func (v *Alerts) Changed(feed screen.Feed) {
	switch feed {
	case screen.FeedAlerts, screen.FeedChecks, screen.FeedOverview, screen.FeedBroker:
		v.gather(false)
	}
}

// Do carries out an action.
func (v *Alerts) Do(action keymap.Action) screen.Effect {
	at := v.focused()
	if screen.MoveTable(at, action) {
		return screen.Effect{Handled: true}
	}
	switch action {
	case keymap.NextPane, keymap.PrevPane:
		v.focus(!v.onPast)
	case keymap.Problems:
		v.problems = !v.problems
		v.gather(true)
	case keymap.Preview:
		v.brief = !v.brief
		v.focus(false)
	case keymap.Acknowledge, keymap.Mute:
		return v.quiet(action)
	case keymap.Open:
		if r := v.current(); r != nil {
			return r.open()
		}
		return screen.Effect{Handled: true, Note: "Nothing needs attention."}
	default:
		return screen.Effect{}
	}
	return screen.Effect{Handled: true}
}

func (v *Alerts) focused() *widget.Table {
	if v.onPast {
		return v.past
	}
	return v.table
}

// current is the row under the cursor, or nil.
func (v *Alerts) current() *row {
	list := v.rows
	if v.onPast {
		list = v.cleared.rows
	}
	if at := v.focused().Cursor(); at >= 0 && at < len(list) {
		return &list[at]
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
		note = "Muted here for " + widget.Short(screen.MuteTime) + ", in the header too; the engine goes on evaluating it."
	default:
		note = "Heard again."
	}
	v.gather(true)
	return screen.Effect{Handled: true, Note: note}
}

// Len is the number of rows.
func (v *Alerts) Len() int { return len(v.rows) }

// Key identifies a row.
func (v *Alerts) Key(i int) string { return v.rows[i].key }

// Cells are the texts of a row.
func (v *Alerts) Cells(i int, into []widget.Cell) []widget.Cell {
	e, r := v.env, &v.rows[i]
	look, word := v.look(r)
	since, seen, trend := "-", "-", "-"
	if a := r.alert; a != nil {
		since, seen = widget.Age(e.Since(a.Since)), widget.Unknown
		if a.Times > 0 {
			seen = e.Num(a.Times)
		}
		trend = e.Spark(e.Data.AlertSeries(a), trendSpan, trendWidth)
	}
	if c := r.check; c != nil && c.Seen != nil { // it may be so for longer than anybody has looked
		since = ">" + widget.Age(e.Since(*c.Seen))
	}
	return append(into,
		widget.Cell{Text: look.Glyph, Role: look.Role}, widget.Cell{Text: word, Role: look.Role}, widget.Cell{Text: r.rule}, widget.Cell{Text: r.text},
		widget.Cell{Text: since}, widget.Cell{Text: seen}, widget.Cell{Text: r.target, Role: theme.Dim}, widget.Cell{Text: trend, Role: look.Role},
	)
}

// look is how the level of a row looks, and the word for it: what was done about it
// here goes before how bad it is, which the sign says too.
func (v *Alerts) look(r *row) (look theme.State, word string) {
	e := v.env
	if r.check != nil {
		return e.CheckLook(r.check.Status), "check"
	}
	look = e.Theme.Of(levelState(r.alert.Severity))
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

var levelWords = map[alerting.Level]string{alerting.LevelCritical: "crit", alerting.LevelWarning: "warn", alerting.LevelInfo: "info"}

func levelState(level alerting.Level) string {
	if level == alerting.LevelInfo {
		return "idle"
	}
	return string(level)
}

var (
	_ screen.Screen     = (*Alerts)(nil)
	_ screen.Selectable = (*Alerts)(nil)
	_ screen.Queryable  = (*Alerts)(nil)
	_ screen.Sortable   = (*Alerts)(nil)
	_ screen.Related    = (*Alerts)(nil)
	_ screen.Follower   = (*Alerts)(nil)
	_ screen.Leaver     = (*Alerts)(nil)
)
