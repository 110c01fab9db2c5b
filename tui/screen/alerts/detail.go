package alerts

import (
	"cmp"
	"strings"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// labelWidth is the room of the labels in the details.
const labelWidth = 10

// details says more about the row under the cursor, in at most h lines.
func (v *Alerts) details(w, h int) []string {
	r := v.current()
	if h < 3 || r == nil {
		return nil
	}
	if r.check != nil {
		return v.ofCheck(r, w, h)
	}
	e, a := v.env, r.alert
	look, _ := r.look(v.env)
	title := strings.TrimSpace(a.Rule + " " + a.Target)
	if r.found {
		title = widget.Clean(a.Summary)
	}
	lines := []string{e.Rule(title, look.Glyph+" "+v.span(a), w)}
	add := func(label, text string) { lines = append(lines, v.labelled(label, text, w)...) }
	rule := v.rule(a.Rule)
	if rule != nil {
		held := rule.Measure + " " + rule.Limit
		if rule.For > 0 {
			held += " for " + widget.Short(rule.For)
		}
		add("rule", held)
	}
	if !r.found {
		lines = append(lines, v.value(a, rule, w))
	}
	add("likely", cmp.Or(r.cause, v.likely(a, rule)))
	if a.NotEvaluated {
		add("", "not evaluated since "+a.Seen.UTC().Format("15:04:05Z"))
	}
	add("try", v.try(a))
	add("found", a.Hint)
	return lines[:min(len(lines), h)]
}

// labelled is a text behind a label, in as many lines as it needs; none without one.
func (v *Alerts) labelled(label, text string, w int) []string {
	var lines []string
	for i, part := range widget.Wrap(widget.Clean(text), max(w-labelWidth-2, 1)) {
		if i > 0 {
			label = ""
		}
		lines = append(lines, " "+v.env.Paint(theme.Dim, widget.Left(label, labelWidth))+part)
	}
	if text == "" {
		return nil
	}
	return lines
}

func (v *Alerts) rule(name string) *alerting.AlertRule {
	rules := v.env.Data.Alerts.Rules
	for i := range rules {
		if rules[i].Name == name {
			return &rules[i]
		}
	}
	return nil
}

// value is what was measured last, how it went, and where the threshold is.
func (v *Alerts) value(a *alerting.Alert, rule *alerting.AlertRule, w int) string {
	e := v.env
	text := widget.Clean(a.Shown)
	if text == "" {
		text = widget.Unknown
	}
	if a.Cleared == nil {
		points := 24
		if w < 100 {
			points = trendWidth
		}
		text += "    " + e.Spark(e.Data.AlertSeries(a), trendSpan, points)
	}
	line := " " + e.Paint(theme.Dim, widget.Left("value", labelWidth)) + text
	if rule != nil {
		line += "    " + e.Paint(theme.Dim, "threshold ") + widget.Clean(rule.Limit)
	}
	return widget.Cut(line, w)
}

// span says since when an alert is there, and until when it was.
func (v *Alerts) span(a *alerting.Alert) string {
	since := string(a.Severity) + " since " + a.Since.UTC().Format("15:04:05Z")
	if v.env.Since(a.Since).Hours() > 20 {
		since = string(a.Severity) + " since " + a.Since.UTC().Format("2006-01-02 15:04:05Z")
	}
	if a.Cleared != nil {
		return since + " until " + a.Cleared.UTC().Format("15:04:05Z") + ", lasted " + widget.Age(a.Cleared.Sub(a.Since))
	}
	return since + ", " + widget.Age(v.env.Since(a.Since))
}

// ofCheck says what a check found, and what to do.
func (v *Alerts) ofCheck(r *row, w, h int) []string {
	look := v.env.CheckLook(r.check.Status)
	state := look.Glyph + " " + string(r.check.Status)
	if at := r.check.Seen; at != nil {
		state += " since " + at.UTC().Format("15:04:05Z") + " at least"
	}
	lines := []string{v.env.Rule(r.rule, state, w)}
	lines = append(lines, v.labelled("found", r.check.Text, w)...)
	lines = append(lines, v.labelled("try", r.check.Fix, w)...)
	lines = append(lines, v.labelled("about", strings.Join(r.check.Objects, ", "), w)...)
	return lines[:min(len(lines), h)]
}
