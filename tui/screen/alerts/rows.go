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

// row is an alert or a failed check.
type row struct {
	key, rule, target, text string
	since                   *time.Time

	// Either alert or check is set.
	alert *alerting.Alert
	check *monitor.Check
	// found is true for a finding of the dashboard, which no rule has raised.
	found bool
	// cause names the alert that explains this one; explained alerts are not counted.
	cause string
	// nth counts the occurrences of a cleared alert on its day.
	nth int
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
	return row{
		key: "found\x1f" + f.Text, rule: "-", text: f.Text, target: cmp.Or(f.Filter, "-"), since: &a.Since,
		alert: a, found: true,
	}
}

func alertRow(a *alerting.Alert) row {
	r := row{
		key: screen.AlertKey(a.Rule, a.Target), rule: a.Rule, text: a.Summary, target: a.Target, since: &a.Since,
		alert: a,
	}
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
	r := row{key: "check\x1f" + c.Name, rule: c.Name, text: c.Text, target: "-", since: c.Seen, check: c}
	if len(c.Objects) > 0 {
		r.target = c.Objects[0]
	}
	if n := len(c.Objects); n > 1 {
		r.target += ", +" + strconv.Itoa(n-1)
	}
	return r
}

// class is the group in which the title counts the row.
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

// look is the sign of a row and the text of its level. What the operator did about an alert replaces its level.
func (r *row) look(e *screen.Env) (look theme.State, level string) {
	if r.check != nil {
		return e.CheckLook(r.check.Status), "check"
	}
	look, level = e.Theme.Of(screen.LevelState(r.alert.Severity)), map[alerting.Level]string{
		alerting.LevelCritical: "crit", alerting.LevelWarning: "warn", alerting.LevelInfo: "info",
	}[r.alert.Severity]
	if r.alert.NotEvaluated {
		look.Role = theme.Warn // it may not hold any more
	}
	quiet := ""
	if left := e.Quiet.MutedFor(r.key, e.Clock); left > 0 {
		quiet = "muted " + widget.Short(left)
	} else if e.Quiet.Acked(r.key) {
		quiet = "acked"
	} else if class := r.class(); class == "explained" || class == "pending" {
		quiet = class
	}
	if quiet != "" {
		look.Role, level = theme.Dim, quiet
	}
	return look, level
}

// leads opens the subject of the row.
func (r *row) leads() screen.Effect {
	if r.check != nil {
		return screen.OpenList(screen.View(cmp.Or(r.check.View, string(keymap.InBroker))), r.check.Filter)
	}
	return screen.OpenList(screen.View(r.alert.View), r.alert.Filter)
}

// rows are the open alerts and the failed checks, without alerts behind a worse one of the same target.
func (v *Alerts) rows() []row {
	a := v.env.Data.Alerts
	var rows []row
	causes := map[string]string{}
	for _, f := range v.env.Findings() {
		if causes[screen.AlertKey(f.Rule, f.About)] = f.Cause; f.Rule == "" && f.Target != string(keymap.InAlerts) {
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

// rank orders rows by level: firing alerts, then checks, then info, pending and explained alerts.
func (r *row) rank() int {
	if r.check != nil {
		return 2 + r.check.Status.Worst()
	}
	return map[string]int{"critical": 0, "warning": 1, "info": 4, "pending": 5, "explained": 5}[r.class()]
}

// times is how often the alert fired within a day; 0 if unknown.
func (r *row) times() int64 {
	if r.alert == nil {
		return 0
	}
	return r.alert.Times
}

// state says whether the alert is open, and what the operator did about it.
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

func newCleared(env *screen.Env) *list.Table[row] {
	return list.NewTable(env, keyOf, []list.Field[row]{
		list.Draw("", 6, func(e *screen.Env, r *row) widget.Cell {
			layout := "15:04"
			if e.Since(*r.alert.Cleared) > 20*time.Hour {
				layout = "Jan 02"
			}
			return widget.Cell{Text: r.alert.Cleared.UTC().Format(layout), Role: theme.Dim}
		}),
		list.Text("", 18, ruleOf).Middle(),
		list.Text("", 18, targetOf).Grow().Middle(),
		list.Text("", 13, func(r *row) string {
			return "lasted " + widget.Age(r.alert.Cleared.Sub(r.alert.Since))
		}).Dim(),
		list.Text("", 18, func(r *row) string {
			if r.nth > 1 {
				return "flap, " + phrase.Ordinal(int64(r.nth)) + " that day"
			}
			return ""
		}).Dim().Priority(1),
	})
}

// listCleared lists the cleared alerts that pass the filter, the newest first.
func (v *Alerts) listCleared() {
	recent := v.env.Data.Alerts.Recent
	var rows []row
	for i := range recent {
		if r := alertRow(&recent[i]); v.Matches(&r) {
			r.nth = nthOfDay(recent, i)
			rows = append(rows, r)
		}
	}
	v.past.SetList(rows)
	v.focus(v.onPast)
}

// nthOfDay counts the known occurrences of an alert on its day until this one.
func nthOfDay(list []alerting.Alert, at int) int {
	n, one := 1, &list[at]
	day := one.Since.UTC().Truncate(24 * time.Hour)
	for i := range list {
		other := &list[i]
		if other.Rule == one.Rule && other.Target == one.Target && other.Since.Before(one.Since) &&
			!other.Since.Before(day) {
			n++
		}
	}
	return n
}

// thing is the alert or check of a row for the clipboard and for files.
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
	if r.alert.ID == 0 { // the dashboard evaluated it and has no row
		t.ID, t.Table = name, ""
	}
	return t
}
