package deadletters

import (
	"time"

	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// smallest is the least room below the facts in which the list does not need all of it.
const smallest = 10

// Render draws the view.
func (v *DeadLetters) Render(w, h int) []string {
	e, d := v.env, v.env.Data.DeadLetters
	if d == nil {
		return e.Missing(screen.FeedDeadLetters, "the dead letters", w)
	}
	lines := append(v.depth(d), v.ledger(d)...)
	if d.Running != "" {
		lines = append(lines,
			" "+e.Paint(theme.Warn, widget.Cut("▲ an operator acts on them: "+widget.Clean(d.Running), max(1, w-2))))
	}
	v.first = len(lines)
	under := v.selected(w)
	if h-len(lines) < smallest && len(under) > 0 { // the list comes first
		under = under[1:2]
		if v.Table().Marks() > 0 {
			under[0] = v.counts(w)
		}
	}
	var groups []string
	chart := 0
	if v.PreviewShown() {
		groups = v.groupLines(w, h-len(lines)-len(under))
	}
	if v.PreviewShown() && h-len(lines)-len(under)-len(groups) > 14 {
		chart = 6
	}
	room := max(2, h-len(lines)-len(under)-len(groups)-chart)
	if v.Len() > 0 {
		lines = append(lines, widget.Fit(v.Table().Lines(w, room, e.Theme), w, room)...)
	} else {
		lines = append(lines, widget.Fit(append([]string{""}, v.nothing(d, w)...), w, room)...)
	}
	lines = append(append(lines, under...), groups...)
	return append(lines, v.chart(w, chart)...)
}

// selected is what there is to say about the letter under the cursor.
func (v *DeadLetters) selected(w int) []string {
	e, r := v.env, v.Current()
	if r == nil {
		return nil
	}
	decided := r.Decision
	if r.Open() {
		decided = "waits for a person"
	} else if r.DecidedBy != "" {
		decided += " by " + r.DecidedBy
	}
	if r.Detail != "" {
		decided += ": " + r.Detail
	}
	said := decided + " · " + r.Verdict.Why
	return []string{e.Rule(r.name(), "attune-executor dlq show "+r.key(), w),
		" " + widget.Cut(widget.Clean(r.verdict.sign+" "+said), max(1, w-2)), v.counts(w)}
}

// counts says what a requeue of the marked would do.
func (v *DeadLetters) counts(w int) string {
	n := v.Table().Marks()
	if n == 0 {
		if more := v.more(); more != "" {
			return v.env.Paint(theme.Dim,
				widget.Cut(" "+v.env.Num(int64(v.Len()))+" listed, "+widget.Clean(more), max(1, w-1)))
		}
		return ""
	}
	var by [blocked + 1]int
	for _, r := range v.chosen() {
		by[r.verdict.class]++
	}
	e := v.env
	text := " " + e.Num(int64(n)) + " marked: " + e.Num(int64(by[requeue])) + " can be requeued, " +
		e.Num(int64(by[stale])) + " stale, " +
		e.Num(int64(by[blocked])) + " blocked, " + e.Num(int64(by[other])) + " other"
	return e.Paint(theme.Accent, widget.Cut(text, max(1, w-1)))
}

func (v *DeadLetters) chart(w, h int) []string {
	if h < 3 {
		return nil
	}
	e, n := v.env, v.env.Points(min(120, w-10))
	values, ok := e.Waited(n)
	lines := []string{e.Rule("waiting for a person, 60 min", "", w)}
	if !ok { // without a ledger only the broker knows
		values = e.Data.History.Trend(screen.SeriesDead, time.Hour, n)
		lines = []string{e.Rule("depth 60 min", e.Change(screen.SeriesDead, 5*time.Minute)+" in 5m", w)}
	}
	return append(lines, widget.Chart(values, min(w, 130), h-1, e.Theme)...)
}
