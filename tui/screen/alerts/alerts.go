// Package alerts is the view of what is wrong, what was, and who watches.
//
// An empty list is no health by itself: the view always says how old the newest
// evaluation of the rules is, and that nobody evaluates them when that is so.
package alerts

import (
	"strings"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// Alerts is the view.
type Alerts struct {
	env   *screen.Env
	table *widget.Table
	rows  []monitor.Alert
	first int
	// acked are the alerts that were seen in this session, muted those out of the
	// way until a time, by their keys.
	acked map[string]bool
	muted map[string]time.Time
}

// muteTime is how long a muted alert stays out of the way.
const muteTime = 15 * time.Minute

var columns = []widget.Column{
	{Title: "", Width: 1},
	{Title: "SINCE", Width: 7, Right: true},
	{Title: "STATE", Width: 9},
	{Title: "SUMMARY", Width: 30, Grow: true},
	{Title: "RULE", Width: 24, Priority: 1},
	{Title: "SEVERITY", Width: 8, Priority: 2},
}

// New makes the view.
func New(env *screen.Env) *Alerts {
	return &Alerts{env: env, table: widget.NewTable(columns), acked: map[string]bool{}, muted: map[string]time.Time{}}
}

// Table is the list, with its marks and columns.
func (v *Alerts) Table() *widget.Table { return v.table }

// View is the name of the screen.
func (v *Alerts) View() screen.View { return keymap.InAlerts }

// Feeds is what the view needs polled.
func (v *Alerts) Feeds() []screen.Feed { return []screen.Feed{screen.FeedAlerts} }

// Title is the text of the title rule.
func (v *Alerts) Title() (left, right string) {
	a := v.env.Data.Alerts
	if a == nil {
		return "Alerts", ""
	}
	quiet := int64(0)
	for _, rule := range a.Rules {
		if rule.State == monitor.RuleQuiet {
			quiet++
		}
	}
	return "Alerts", v.env.Num(int64(len(a.Rules))) + " rules, " + v.env.Num(quiet) + " quiet" + v.env.Mark(screen.FeedAlerts)
}

// Select puts the cursor on a line of the body.
func (v *Alerts) Select(line int) bool { return v.table.Select(line - v.first - 1) }

// Changed takes over new data: what is open, then what has ended lately. Alerts
// behind a worse one about the same are left out.
func (v *Alerts) Changed(feed screen.Feed) {
	a := v.env.Data.Alerts
	if feed != screen.FeedAlerts || a == nil {
		return
	}
	v.rows = nil
	for _, list := range [][]monitor.Alert{a.Open, a.Recent} {
		for i := range list {
			if !list[i].Behind {
				v.rows = append(v.rows, list[i])
			}
		}
	}
	v.table.SetRows(v)
}

// Do carries out an action.
func (v *Alerts) Do(action keymap.Action) screen.Effect {
	if screen.MoveTable(v.table, action) {
		return screen.Effect{Handled: true}
	}
	at := v.table.Cursor()
	switch action {
	case keymap.Acknowledge, keymap.Mute:
		return v.quiet(action, at)
	case keymap.Open:
	default:
		return screen.Effect{}
	}
	if at < 0 {
		return screen.Effect{Handled: true, Note: "Nothing needs attention."}
	}
	return screen.Effect{Handled: true, Open: screen.View(v.rows[at].View), Filter: v.rows[at].Filter}
}

// quiet acknowledges the alert under the cursor, or mutes it; the same again takes
// that back. Nothing but this screen of this session knows of it.
func (v *Alerts) quiet(action keymap.Action, at int) screen.Effect {
	if at < 0 || v.rows[at].Cleared != nil {
		return screen.Effect{Handled: true, Note: "Only what is open can be acknowledged or muted."}
	}
	key := v.Key(at)
	switch {
	case action == keymap.Acknowledge && v.acked[key]:
		delete(v.acked, key)
		return screen.Effect{Handled: true, Note: "No longer acknowledged."}
	case action == keymap.Acknowledge:
		v.acked[key] = true
		return screen.Effect{Handled: true, Note: "Acknowledged in this session; it stays open."}
	case v.isMuted(key):
		delete(v.muted, key)
		return screen.Effect{Handled: true, Note: "Heard again."}
	default:
		v.muted[key] = v.env.Clock.Add(muteTime)
		return screen.Effect{Handled: true, Note: "Muted here for " + widget.Short(muteTime) + "; the engine goes on evaluating it."}
	}
}

func (v *Alerts) isMuted(key string) bool { return v.env.Clock.Before(v.muted[key]) }

// word is the state of a row, with what was done about it here.
func (v *Alerts) word(row int) string {
	key := v.Key(row)
	switch {
	case v.rows[row].Cleared != nil:
		return v.rows[row].State
	case v.isMuted(key):
		return "muted " + widget.Short(v.muted[key].Sub(v.env.Clock))
	case v.acked[key]:
		return "seen"
	default:
		return v.rows[row].State
	}
}

// Len is the number of rows.
func (v *Alerts) Len() int { return len(v.rows) }

// Key identifies a row.
func (v *Alerts) Key(row int) string {
	r := &v.rows[row]
	if r.Cleared != nil {
		return r.Rule + "\x1f" + r.Target + "\x1f" + r.Since.String()
	}
	return r.Rule + "\x1f" + r.Target
}

// Cells are the texts of a row.
func (v *Alerts) Cells(row int, into []widget.Cell) []widget.Cell {
	e, r := v.env, &v.rows[row]
	look := e.Theme.Of(levelState(r.Severity))
	role, begin := look.Role, r.Since
	if r.State != monitor.AlertFiring {
		role = theme.Dim
	}
	if r.Cleared != nil {
		begin = *r.Cleared
	}
	return append(into,
		widget.Cell{Text: look.Glyph, Role: role},
		widget.Cell{Text: widget.Age(e.Since(begin))},
		widget.Cell{Text: v.word(row), Role: role},
		widget.Cell{Text: r.Summary},
		widget.Cell{Text: r.Rule, Role: theme.Dim},
		widget.Cell{Text: string(r.Severity), Role: role},
	)
}

func levelState(level monitor.Level) string {
	if level == monitor.LevelInfo {
		return "idle"
	}
	return string(level)
}

// detailLines is how many lines the chosen alert takes.
const detailLines = 6

// Render draws the view.
func (v *Alerts) Render(w, h int) []string {
	e, a := v.env, v.env.Data.Alerts
	if a == nil {
		return e.Missing(screen.FeedAlerts, "the alerts")
	}
	lines := append(v.evaluation(a, w), "")
	v.first = len(lines)
	if len(v.rows) == 0 {
		if a.Evaluated {
			return append(lines, " "+e.Paint(theme.Good, "✓")+" "+e.Paint(theme.Dim, "Nothing needs attention, and nothing did lately."))
		}
		return append(lines, " "+e.Paint(theme.Dim, "Nothing that could be looked at needs attention."))
	}
	details := 0
	if h-len(lines) >= detailLines+5 {
		details = detailLines
	}
	room := h - len(lines) - details
	lines = append(lines, widget.Fit(v.table.Lines(w, room, e.Theme), w, room)...)
	return append(lines, v.details(a, w, details)...)
}

// evaluation is the line about who watches.
func (v *Alerts) evaluation(a *monitor.Alerts, w int) []string {
	e := v.env
	if a.Evaluated && a.EvaluatedAt != nil {
		line := " " + e.Paint(theme.Dim, "evaluated ") + widget.Age(e.Since(*a.EvaluatedAt)) + e.Paint(theme.Dim, " ago by the engine")
		unknown := 0
		for _, rule := range a.Rules {
			if rule.State == monitor.RuleUnknown {
				unknown++
			}
		}
		if unknown > 0 {
			line += "   " + e.Paint(theme.Warn, "▲ "+e.Num(int64(unknown))+" rules cannot be evaluated")
		}
		return []string{line}
	}
	var lines []string
	for _, text := range wrap(widget.Clean(a.Note), w-4) {
		lines = append(lines, " "+e.Paint(theme.Warn, "▲ "+text))
	}
	return lines
}

// details says more about the alert under the cursor.
func (v *Alerts) details(a *monitor.Alerts, w, h int) []string {
	at := v.table.Cursor()
	if h == 0 || at < 0 || at >= len(v.rows) {
		return nil
	}
	e, r := v.env, &v.rows[at]
	lines := []string{e.Rule(r.Rule, span(e, r), w)}
	add := func(label, text string) {
		if text == "" {
			return
		}
		for i, part := range wrap(widget.Clean(text), w-10) {
			if i > 0 {
				label = ""
			}
			lines = append(lines, " "+e.Paint(theme.Dim, widget.Left(label, 8))+part)
		}
	}
	add("what", r.Summary)
	if r.NotEvaluated {
		add("", "not evaluated since "+r.Seen.UTC().Format("15:04:05Z"))
	}
	add("do", r.Hint)
	for _, rule := range a.Rules {
		if rule.Name == r.Rule {
			held := ""
			if rule.For > 0 {
				held = " for " + widget.Short(rule.For)
			}
			add("rule", rule.Measure+" "+rule.Limit+held)
			add("means", rule.Why)
		}
	}
	return widget.Fit(lines, w, h)
}

func span(e *screen.Env, r *monitor.Alert) string {
	since := "since " + r.Since.UTC().Format("2006-01-02 15:04:05Z")
	if r.Cleared != nil {
		return since + " until " + r.Cleared.UTC().Format("15:04:05Z") + ", lasted " + widget.Age(r.Cleared.Sub(r.Since))
	}
	return since + ", " + widget.Age(e.Since(r.Since))
}

// wrap breaks a text into lines of at most w cells.
func wrap(text string, w int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && widget.Width(line)+1+widget.Width(word) > w {
			lines = append(lines, line)
			line = ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

var (
	_ screen.Screen     = (*Alerts)(nil)
	_ screen.Selectable = (*Alerts)(nil)
)
