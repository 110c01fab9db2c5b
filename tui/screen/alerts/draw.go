package alerts

import (
	"time"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// trendSpan is how far back the trends look.
const trendSpan = 15 * time.Minute

// Render draws the view.
func (v *Alerts) Render(w, h int) []string {
	e, a := v.env, v.env.Data.Alerts
	if a == nil {
		return e.Missing(screen.FeedAlerts, "the alerts", w)
	}
	lines := v.evaluation(a, w)
	v.first, v.pastFirst = len(lines), 0
	rest := h - len(lines)
	details, checks, past := v.share(w, rest)
	blocks := v.details(w, details)
	blocks = append(blocks, v.checkBlock(w, checks)...)
	recent := v.pastBlock(w, past)
	room := max(2, rest-len(blocks)-len(recent))
	lines = append(lines, v.list(a, w, min(room, max(v.Len()+2, 3)))...)
	lines = append(lines, blocks...)
	if len(recent) > 0 {
		v.pastFirst = len(lines) + 1
	}
	return append(lines, recent...)
}

// share says how many lines the blocks below the list may take of those that are
// left. The list keeps the larger part of a small window.
func (v *Alerts) share(w, rest int) (details, checks, past int) {
	if !v.Previewed() {
		return 0, 0, 0
	}
	if rest >= 12 {
		details = min(7, rest-8)
	}
	if rest >= 15 {
		past = min(v.cleared.Len()+1, 3)
	}
	if w >= 100 && rest >= 26 {
		past = min(v.cleared.Len()+1, 6)
		checks = min(10, rest-details-past-6)
	}
	if v.onPast {
		past = min(v.cleared.Len()+1, max(past, rest/2))
	}
	if past == 1 {
		past = 0
	}
	return details, checks, past
}

// list is the table, or why there is nothing in it.
func (v *Alerts) list(a *alerting.Alerts, w, h int) []string {
	e := v.env
	if v.Len() > 0 {
		return widget.Fit(v.Table().Lines(w, h, e.Theme), w, h)
	}
	if v.Filter() != "" || v.Problems() {
		return widget.Fit([]string{"", " " + e.Paint(theme.Dim, "Nothing that is open matches; esc clears the filter, z shows all.")}, w, h)
	}
	text := " " + e.Paint(theme.Dim, "Nothing that could be looked at needs attention.")
	if a.Evaluated {
		sign, calm := e.Calm()
		text = " " + sign + " " + e.Paint(theme.Dim, calm)
	}
	rules := "Each rule whose condition holds is listed here: attune-executor alerts rules"
	return widget.Fit([]string{"", text, " " + e.Paint(theme.Dim, rules)}, w, h)
}

// evaluation is the line about who watches.
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
		line := " " + e.Paint(theme.Dim, "evaluated ") + widget.Age(e.Since(*a.EvaluatedAt)) + e.Paint(theme.Dim, " ago by the engine · ") +
			e.Num(int64(len(a.Rules))) + e.Paint(theme.Dim, " rules, ") + e.Num(int64(quiet)) + e.Paint(theme.Dim, " quiet")
		if unknown > 0 {
			line += "   " + e.Paint(theme.Warn, "▲ "+e.Num(int64(unknown))+" rules cannot be evaluated")
		}
		return []string{widget.Cut(line, w)}
	}
	var lines []string
	for _, text := range widget.Wrap(widget.Clean(a.Note), w-4) {
		lines = append(lines, " "+e.Paint(theme.Warn, "▲ "+text))
	}
	return lines
}

// checkBlock is every check, the worst first.
func (v *Alerts) checkBlock(w, h int) []string {
	if h < 3 {
		return nil
	}
	e := v.env
	every := e.Data.Fresh(screen.FeedChecks).Every
	note := "read-only"
	if every > 0 {
		note += ", every " + widget.Short(every)
	}
	lines := []string{e.Rule("checks"+e.Mark(screen.FeedChecks)+"  "+note, "L operation log", w)}
	for _, line := range e.CheckLines(w-2, h-1, "") {
		lines = append(lines, "  "+line)
	}
	return lines
}

// pastBlock is what was cleared lately.
func (v *Alerts) pastBlock(w, h int) []string {
	if h < 2 {
		return nil
	}
	e := v.env
	hint := "tab goes there"
	if v.onPast {
		hint = "tab back"
	}
	lines := []string{e.Rule("recently cleared", hint, w)}
	return append(lines, widget.Fit(v.past.Lines(w, h, e.Theme)[1:], w, h-1)...)
}
