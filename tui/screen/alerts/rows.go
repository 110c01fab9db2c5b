package alerts

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/keymap"
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
		Severity: f.Level, State: alerting.AlertFiring, Summary: f.Text, Hint: f.Hint, Since: at, View: f.Target, Filter: f.Filter,
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
		return screen.Effect{Handled: true, Open: screen.View(cmp.Or(r.check.View, string(keymap.InBroker))), Filter: r.check.Filter}
	}
	return screen.Effect{Handled: true, Open: screen.View(r.alert.View), Filter: r.alert.Filter}
}

// What the list can be sorted by.
const (
	byLevel = iota
	bySince
	byRule
	byTarget
	bySeen
)

var sortKeys = []string{"level", "since", "rule", "target", "seen"}

// gather makes the rows anew: what is open, then the checks that failed. Alerts
// behind a worse one about the same are left out. Nothing moves while the operator
// reads, unless it was asked for.
func (v *Alerts) gather(asked bool) {
	a := v.env.Data.Alerts
	if a == nil {
		return
	}
	var rows []row
	add := func(r row) {
		if v.Matches(asking{v, &r}) && v.troubles(&r) {
			rows = append(rows, r)
		}
	}
	causes := map[string]string{}
	for _, f := range v.env.Findings() {
		if causes[screen.AlertKey(f.Rule, f.About)] = f.Cause; f.Rule == "" {
			add(foundRow(&f, a.At))
		}
	}
	for i := range a.Open {
		if r := alertRow(&a.Open[i]); !a.Open[i].Behind {
			r.cause = causes[r.key]
			add(r)
		}
	}
	rows = append(rows, v.failedChecks()...)
	old := v.keys
	if asked {
		old = nil
	}
	v.rows, v.keys = screen.Arrange(v.env, rows, old, v.compare, func(r *row) string { return r.key })
	v.table.SetRows(v)
	v.gatherCleared(a)
}

// failedChecks are the checks that found something, the worst first.
func (v *Alerts) failedChecks() []row {
	var rows []row
	c := v.env.Data.Checks
	if c == nil {
		return nil
	}
	for i := range c.List {
		if s := c.List[i].Status; s != monitor.CheckProblem && s != monitor.CheckWarning {
			continue
		}
		if r := checkRow(&c.List[i]); v.Matches(asking{v, &r}) {
			rows = append(rows, r)
		}
	}
	return rows
}

// troubles reports whether a row is to be seen while only problems are: what fires,
// matters, and was neither acknowledged nor muted.
func (v *Alerts) troubles(r *row) bool {
	e := v.env
	return !v.problems || r.alert.State == alerting.AlertFiring && r.alert.Severity != alerting.LevelInfo &&
		!e.Quiet.Acked(r.key) && e.Quiet.MutedFor(r.key, e.Clock) == 0
}

func (v *Alerts) compare(x, y *row) int {
	var c int
	switch v.Order().Column {
	case bySince:
		c = cmp.Compare(v.age(y), v.age(x))
	case byRule:
		c = strings.Compare(x.rule, y.rule)
	case byTarget:
		c = strings.Compare(x.target, y.target)
	case bySeen:
		c = cmp.Compare(y.times(), x.times())
	default:
		c = x.rank() - y.rank()
	}
	return v.Order().Apply(c)
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
func (v *Alerts) age(r *row) time.Duration {
	switch {
	case r.alert == nil && r.check.Seen == nil:
		return 0
	case r.alert == nil:
		return v.env.Since(*r.check.Seen)
	}
	return v.env.Since(r.alert.Since)
}

// clearedRows are the alerts that have ended, the newest first.
type clearedRows struct {
	env  *screen.Env
	rows []row
	// nth is which time of its day each was.
	nth []int
}

var clearedColumns = []widget.Column{
	{Title: "", Width: 6},
	{Title: "", Width: 18, Middle: true},
	{Title: "", Width: 18, Grow: true, Middle: true},
	{Title: "", Width: 13},
	{Title: "", Width: 18, Priority: 1},
}

func (v *Alerts) gatherCleared(a *alerting.Alerts) {
	v.cleared = clearedRows{env: v.env}
	for i := range a.Recent {
		if r := alertRow(&a.Recent[i]); v.Matches(asking{v, &r}) {
			v.cleared.rows = append(v.cleared.rows, r)
			v.cleared.nth = append(v.cleared.nth, nthOfDay(a.Recent, i))
		}
	}
	v.past.SetRows(&v.cleared)
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

// Len is the number of rows.
func (c *clearedRows) Len() int { return len(c.rows) }

// Key identifies a row.
func (c *clearedRows) Key(i int) string { return c.rows[i].key }

// Cells are the texts of a row.
func (c *clearedRows) Cells(i int, into []widget.Cell) []widget.Cell {
	a := c.rows[i].alert
	at, note := a.Cleared.UTC().Format("15:04"), ""
	if c.env.Since(*a.Cleared) > 20*time.Hour {
		at = a.Cleared.UTC().Format("Jan 02")
	}
	if n := c.nth[i]; n > 1 {
		note = "flap, " + act.Ordinal(int64(n)) + " that day"
	}
	return append(into, widget.Cell{Text: at, Role: theme.Dim}, widget.Cell{Text: a.Rule}, widget.Cell{Text: c.rows[i].target},
		widget.Cell{Text: "lasted " + widget.Age(a.Cleared.Sub(a.Since)), Role: theme.Dim}, widget.Cell{Text: note, Role: theme.Dim})
}
