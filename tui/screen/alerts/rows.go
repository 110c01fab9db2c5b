package alerts

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/list"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// row is an alert, or a check that did not come out well.
type row struct {
	key, rule, target, text string

	// One of these is set.
	alert *alerting.Alert
	check *monitor.Check
	// found is true of what no rule has raised: the dashboard found it.
	found bool
	// cause explains the row, so that it is not counted; empty if nothing does.
	cause string
}

// foundRow is a finding that no rule has raised.
func foundRow(f *alerting.Finding, at time.Time) row {
	a := &alerting.Alert{
		Severity: f.Level, State: alerting.AlertFiring, Summary: f.Text, Hint: f.Hint, Since: at,
		View: f.Target, Filter: f.Filter,
	}
	if f.Since != nil {
		a.Since = *f.Since
	}
	return row{key: "found\x1f" + f.Text, rule: "-", text: f.Text, alert: a, found: true, target: cmp.Or(f.Filter, "-")}
}

func alertRow(a *alerting.Alert) row {
	r := row{key: screen.AlertKey(a.Rule, a.Target), rule: a.Rule, text: a.Summary, alert: a, target: a.Target}
	switch {
	case a.Of != "":
		r.target = a.Of + " " + a.Target
	case a.View == string(keymap.InDeadLetters):
		r.target = "dlq " + monitor.DeadLetterQueue
	case a.Target == "" && a.View != string(keymap.InOverview):
		r.target = a.View
	case a.Target == "":
		r.target = "-"
	}
	if a.Cleared != nil {
		r.key += "\x1f" + a.Since.String()
	}
	return r
}

func checkRow(c *monitor.Check) row {
	r := row{key: "check\x1f" + c.Name, rule: c.Name, text: c.Text, check: c, target: "-"}
	if len(c.Objects) > 0 {
		r.target = c.Objects[0]
	}
	if n := len(c.Objects); n > 1 {
		r.target += ", +" + strconv.Itoa(n-1)
	}
	return r
}

// The classes of rows, as the title counts them.
var classes = []string{"critical", "warning", "info", "pending", "muted", "explained", "checks"}

func (r *row) class() string {
	switch {
	case r.check != nil:
		return "checks"
	case r.cause != "":
		return "explained"
	case r.alert.State == alerting.AlertPending:
		return "pending"
	default:
		return string(r.alert.Severity)
	}
}

// open turns to what the row is about.
func (r *row) open() screen.Effect {
	if r.check != nil {
		return screen.OpenList(screen.View(cmp.Or(r.check.View, string(keymap.InBroker))), r.check.Filter)
	}
	return screen.OpenList(screen.View(r.alert.View), r.alert.Filter)
}

// rows are what is open, then the checks that failed. Alerts behind a worse one about the same
// are left out.
func (v *Alerts) rows() []row {
	a := v.env.Data.Alerts
	var rows []row
	causes := map[string]string{}
	for _, f := range v.env.Findings() {
		if causes[screen.AlertKey(f.Rule, f.About)] = f.Cause; f.Rule == "" {
			rows = append(rows, foundRow(&f, a.At))
		}
	}
	for i := range a.Open {
		if r := alertRow(&a.Open[i]); !a.Open[i].Behind {
			r.cause = causes[r.key]
			rows = append(rows, r)
		}
	}
	if c := v.env.Data.Checks; c != nil {
		for i := range c.List {
			if s := c.List[i].Status; s == monitor.CheckProblem || s == monitor.CheckWarning {
				rows = append(rows, checkRow(&c.List[i]))
			}
		}
	}
	return rows
}

// troubles reports whether a row is to be seen while only problems are: what fires,
// matters, and was neither acknowledged nor muted.
func (v *Alerts) troubles(r *row) bool {
	e := v.env
	return r.check != nil || r.alert.State == alerting.AlertFiring && r.alert.Severity != alerting.LevelInfo &&
		!e.Quiet.Acked(r.key) && e.Quiet.MutedFor(r.key, e.Clock) == 0
}

// rank orders rows by how bad they are: what fires before the checks, and those
// before what may come or hardly matters.
func (r *row) rank() int {
	if r.check != nil {
		return 2 + r.check.Status.Worst()
	}
	switch {
	case r.alert.State == alerting.AlertPending, r.cause != "":
		return 5
	case r.alert.Severity == alerting.LevelCritical:
		return 0
	case r.alert.Severity == alerting.LevelWarning:
		return 1
	default:
		return 4
	}
}

func (r *row) times() int64 {
	if r.alert == nil {
		return 0
	}
	return r.alert.Times
}

// age is since when a row is there; of a check it is since when it was seen.
func (r *row) age(e *screen.Env) time.Duration {
	switch {
	case r.alert == nil && r.check.Seen == nil:
		return 0
	case r.alert == nil:
		return e.Since(*r.check.Seen)
	}
	return e.Since(r.alert.Since)
}

// since is that in words: a check may have failed for longer than anybody has looked.
func (r *row) since(e *screen.Env) string {
	switch {
	case r.alert == nil && r.check.Seen == nil:
		return "-"
	case r.alert == nil:
		return ">" + widget.Age(r.age(e))
	}
	return widget.Age(r.age(e))
}

// state is whether it lasts, and what was done about it here.
func (r *row) state(e *screen.Env) string {
	switch {
	case r.alert != nil && r.alert.Cleared != nil:
		return "cleared"
	case e.Quiet.MutedFor(r.key, e.Clock) > 0:
		return "muted"
	case e.Quiet.Acked(r.key):
		return "acked"
	default:
		return "open"
	}
}

// cleared is an alert that has ended, and which time of its day it was.
type cleared struct {
	row

	nth int
}

func newCleared(env *screen.Env) *list.Table[cleared] {
	return list.NewTable(env, func(c *cleared) string { return c.key }, []list.Field[cleared]{
		{
			Column: widget.Column{Width: 6},
			Cell: func(e *screen.Env, c *cleared) widget.Cell {
				layout := "15:04"
				if e.Since(*c.alert.Cleared) > 20*time.Hour {
					layout = "Jan 02"
				}
				return widget.Cell{Text: c.alert.Cleared.UTC().Format(layout), Role: theme.Dim}
			},
		},
		{
			Column: widget.Column{Width: 18, Middle: true},
			Cell:   list.Plain(func(c *cleared) string { return c.alert.Rule }),
		},
		{
			Column: widget.Column{Width: 18, Grow: true, Middle: true},
			Cell:   list.Plain(func(c *cleared) string { return c.target }),
		},
		{
			Column: widget.Column{Width: 13},
			Cell: list.Dim(func(c *cleared) string {
				return "lasted " + widget.Age(c.alert.Cleared.Sub(c.alert.Since))
			}),
		},
		{
			Column: widget.Column{Width: 18, Priority: 1},
			Cell: list.Dim(func(c *cleared) string {
				if c.nth > 1 {
					return "flap, " + phrase.Ordinal(int64(c.nth)) + " that day"
				}
				return ""
			}),
		},
	})
}

// gatherCleared lists what has ended and passes the filter, the newest first.
func (v *Alerts) gatherCleared() {
	recent := v.env.Data.Alerts.Recent
	var rows []cleared
	for i := range recent {
		if r := alertRow(&recent[i]); v.Matches(&r) {
			rows = append(rows, cleared{row: r, nth: nthOfDay(recent, i)})
		}
	}
	v.past.SetList(rows)
	v.focus(v.onPast)
}

// nthOfDay is which time an alert fired on its day, as far as those before it are
// known.
func nthOfDay(list []alerting.Alert, at int) int {
	n, one := 1, &list[at]
	for i := range list {
		other := &list[i]
		sameDay := other.Since.UTC().Truncate(24 * time.Hour).Equal(one.Since.UTC().Truncate(24 * time.Hour))
		if other.Rule == one.Rule && other.Target == one.Target && sameDay && other.Since.Before(one.Since) {
			n++
		}
	}
	return n
}

// thing is the alert or the check of a row.
func thing(r *row) screen.Thing {
	if r.check != nil {
		return screen.Thing{
			Name: "check " + r.check.Name, ID: r.check.Name, Value: *r.check, Command: []string{"doctor"},
		}
	}
	if r.found {
		return screen.Thing{Name: "finding", ID: r.text, Value: *r.alert, Command: []string{"alerts", "list"}}
	}
	name := strings.TrimSuffix(r.alert.Rule+" "+r.alert.Target, " ")
	t := screen.Numbered("alert", r.alert.ID, "", "alert", *r.alert)
	t.Name, t.Command = "alert "+name, []string{"alerts", "list"}
	if r.alert.ID == 0 { // judged by the dashboard itself, which writes none
		t.ID, t.Table = name, ""
	}
	return t
}
