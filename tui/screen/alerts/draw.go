package alerts

import (
	"cmp"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// Render draws the view.
func (v *Alerts) Render(w, h int) []string {
	if v.env.Data.Alerts == nil {
		return v.env.Missing(screen.FeedAlerts, "the alerts", w)
	}
	lines, _ := v.draw(w, h)
	return lines
}

// Places are the list and the cleared alerts.
func (v *Alerts) Places(w, h int) screen.Places {
	if v.env.Data.Alerts == nil {
		return nil
	}
	_, places := v.draw(w, h)
	return places
}

// draw draws the view and says where its lists are.
func (v *Alerts) draw(w, h int) ([]string, screen.Places) {
	lines := v.evaluation(v.env.Data.Alerts, w)
	rest := h - len(lines)
	details, checks, past := v.share(w, rest)
	blocks := append(v.details(w, details), v.checkBlock(w, checks)...)
	recent := v.pastBlock(w, past)
	at := screen.Place{Table: v.Table(), Top: len(lines), W: w, Focus: func() { v.focus(false) }}
	at.H = min(max(2, rest-len(blocks)-len(recent)), max(v.Len()+2, 3))
	lines = append(append(lines, v.list(w, at.H)...), blocks...)
	places := screen.Places{at}
	if len(recent) > 0 { // its title stands in the place of the header
		places = append(places, screen.Place{
			Table: v.past.Table, Top: len(lines), W: w, H: past, Focus: func() { v.focus(true) },
		})
	}
	return append(lines, recent...), places
}

// share distributes the lines below the evaluation. In a small window the list keeps the larger part.
func (v *Alerts) share(w, rest int) (details, checks, past int) {
	if !v.PreviewShown() {
		return 0, 0, 0
	}
	if rest >= 12 {
		details = min(7, rest-8)
	}
	if rest >= 15 {
		past = min(v.past.Len()+1, 3)
	}
	if w >= 100 && rest >= 26 {
		past = min(v.past.Len()+1, 6)
		checks = min(10, rest-details-past-6)
	}
	if v.onPast {
		past = min(v.past.Len()+1, max(past, rest/2))
	}
	if past == 1 {
		past = 0
	}
	return details, checks, past
}

// list is the table, or the reason why it is empty.
func (v *Alerts) list(w, h int) []string {
	if v.Len() > 0 {
		return widget.Fit(v.Table().Lines(w, h, v.env.Theme), w, h)
	}
	return widget.Fit(v.Nothing(), w, h)
}

// calm says that nothing needs attention.
func (v *Alerts) calm() []string {
	e := v.env
	text := " " + e.Dim("Nothing that could be checked needs attention.")
	if e.Data.Alerts.Evaluated {
		sign, calm := e.Calm()
		text = " " + sign + " " + e.Dim(calm)
	}
	return []string{text, " " + e.Dim("Each rule whose condition holds is listed here: attune-executor alerts rules")}
}

// evaluation says who evaluated the rules, and when.
func (v *Alerts) evaluation(a *alerting.Alerts, w int) []string {
	e := v.env
	if a.Evaluated && a.EvaluatedAt != nil {
		unknown, quiet := 0, 0
		for _, rule := range a.Rules {
			switch rule.State {
			case alerting.RuleUnknown:
				unknown++
			case alerting.RuleQuiet:
				quiet++
			}
		}
		line := " " + e.Dim("evaluated ") + e.AgeOf(a.EvaluatedAt) + e.Dim(" ago by the engine · ") +
			e.Num(int64(len(a.Rules))) + e.Dim(" rules, ") + e.Num(int64(quiet)) + e.Dim(" quiet")
		if unknown > 0 {
			line += "   " + e.Paint(theme.Warn, "▲ "+e.Plural(int64(unknown), "rule", "rules")+" cannot be evaluated")
		}
		return []string{widget.Cut(line, w)}
	}
	var lines []string
	for _, text := range widget.Wrap(widget.Clean(a.Note), w-4) {
		lines = append(lines, " "+e.Paint(theme.Warn, "▲ "+text))
	}
	return lines
}

// checkBlock lists all checks, the worst first.
func (v *Alerts) checkBlock(w, h int) []string {
	if h < 3 {
		return nil
	}
	e := v.env
	note := "read-only"
	if every := e.Data.Fresh(screen.FeedChecks).Every; every > 0 {
		note += ", every " + widget.Short(every)
	}
	lines := []string{e.Rule("checks"+e.Mark(screen.FeedChecks)+"  "+note, "L operation log", w)}
	return append(lines, screen.Indented(screen.Indented(e.CheckLines(w-2, h-1, "")))...)
}

// pastBlock lists the recently cleared alerts.
func (v *Alerts) pastBlock(w, h int) []string {
	if h < 2 {
		return nil
	}
	e := v.env
	hint := "tab goes there"
	if v.onPast {
		hint = "tab back"
	}
	lines := []string{e.PaneRule(v.onPast, "recently cleared", hint, w)}
	return append(lines, widget.Fit(v.past.Lines(w, h, e.Theme)[1:], w, h-1)...)
}

const labelWidth = 10

// details explain the selected row in at most h lines.
func (v *Alerts) details(w, h int) []string {
	e, r := v.env, v.current()
	if h < 3 || r == nil {
		return nil
	}
	var lines []string
	facts := func(list ...screen.Fact) {
		lines = append(lines, screen.Indented(e.Facts(list, labelWidth, w-2))...)
	}
	look, _ := r.look(e)
	if c := r.check; c != nil {
		state := look.Glyph + " " + string(c.Status)
		if c.Seen != nil {
			state += " since " + c.Seen.UTC().Format("15:04:05Z") + " at least"
		}
		lines = append(lines, e.Rule(r.rule, state, w))
		about := strings.Join(c.Objects, ", ")
		facts(screen.Fact{Name: "found", Text: c.Text}, screen.Fact{Name: "try", Text: c.Fix},
			screen.Fact{Name: "about", Text: about})
		return lines[:min(len(lines), h)]
	}
	a := r.alert
	title := strings.TrimSpace(a.Rule + " " + a.Target)
	if r.found {
		title = widget.Clean(a.Summary)
	}
	lines = append(lines, e.Rule(title, look.Glyph+" "+v.span(a), w))
	var rule *alerting.AlertRule
	rules := e.Data.Alerts.Rules
	if at := slices.IndexFunc(rules, func(one alerting.AlertRule) bool { return one.Name == a.Rule }); at >= 0 {
		rule = &rules[at]
		held := rule.Measure + " " + rule.Limit
		if rule.For > 0 {
			held += " for " + widget.Short(rule.For)
		}
		facts(screen.Fact{Name: "rule", Text: held})
	}
	if !r.found {
		lines = append(lines, v.value(a, rule, w))
	}
	facts(screen.Fact{Name: "likely", Text: cmp.Or(r.cause, v.likely(a, rule))})
	if a.NotEvaluated {
		facts(screen.Fact{Text: "not evaluated since " + a.Seen.UTC().Format("15:04:05Z")})
	}
	facts(screen.Fact{Name: "try", Text: v.advice(a)}, screen.Fact{Name: "found", Text: a.Hint})
	return lines[:min(len(lines), h)]
}

// value is the last value of an alert with its trend and threshold.
func (v *Alerts) value(a *alerting.Alert, rule *alerting.AlertRule, w int) string {
	e := v.env
	text := cmp.Or(widget.Clean(a.Shown), widget.Unknown)
	if a.Cleared == nil {
		points := 24
		if w < 100 {
			points = trendWidth
		}
		text += "    " + e.Spark(e.Data.AlertSeries(a), trendSpan, points)
	}
	line := " " + e.Label("value", labelWidth) + text
	if rule != nil {
		line += "    " + e.Dim("threshold ") + widget.Clean(rule.Limit)
	}
	return widget.Cut(line, w)
}

// span says when an alert began, and when it was cleared.
func (v *Alerts) span(a *alerting.Alert) string {
	layout := "15:04:05Z"
	if v.env.Since(a.Since).Hours() > 20 {
		layout = "2006-01-02 15:04:05Z"
	}
	since := string(a.Severity) + " since " + a.Since.UTC().Format(layout)
	if a.Cleared != nil {
		until := a.Cleared.UTC().Format("15:04:05Z")
		return since + " until " + until + ", lasted " + widget.Age(a.Cleared.Sub(a.Since))
	}
	return since + ", " + v.env.AgeOf(&a.Since)
}
