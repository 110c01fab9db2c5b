package workflows

import (
	"strings"
	"time"
)

// chartWidth is how many cells the times of a workflow are drawn in.
const chartWidth = 26

// frame is from when to when the chart reaches: the life of the workflow so far.
func (t *tree) frame() (from, to time.Time) {
	from, to = t.of.Created, t.env.Now
	if t.of.StartedAt != nil {
		from = *t.of.StartedAt
	}
	if t.of.FinishedAt != nil {
		to = *t.of.FinishedAt
	}
	return from, to
}

// scale is the title of the chart.
func (t *tree) scale() string {
	from, to := t.frame()
	layout := "15:04"
	if to.Sub(from) < 10*time.Minute {
		layout = "15:04:05"
	}
	return from.UTC().Format(layout) + " → " + to.UTC().Format(layout)
}

// bar draws when what a line stands for waited and ran. What still goes on ends in an
// arrow, what failed in its sign.
func (t *tree) bar(n *node, w int) string {
	from, to := t.span(n)
	if from.IsZero() {
		return ""
	}
	begin, end := t.frame()
	whole := max(end.Sub(begin), time.Second)
	at := func(when time.Time) int {
		return min(max(int(int64(when.Sub(begin))*int64(w)/int64(whole)), 0), w)
	}
	start, stop := at(from), at(to)
	start = min(start, w-1)
	stop = max(stop, start+1)
	waited, full := start, "█"
	if c := n.execution(); c != nil {
		waited = min(at(c.Created), start)
		if c.StartedAt == nil {
			full = "░"
		}
	}
	body := strings.Repeat("░", start-waited) + strings.Repeat(full, stop-start)
	sign := ""
	switch c := n.execution(); {
	case c != nil && running(c), c == nil && n.task.FinishedAt == nil:
		sign = t.env.Theme.Glyphs.Cursor
	case n.status() == "failed", n.status() == "timeout", n.status() == "abandoned":
		sign = t.env.Theme.Glyphs.Failed
	}
	if sign != "" {
		runes := []rune(body)
		body = string(runes[:len(runes)-1]) + sign
	}
	return strings.Repeat(" ", waited) + body
}
