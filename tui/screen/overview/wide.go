package overview

import (
	"slices"
	"time"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

func (o *Overview) wide(w, h int) ([]string, page) {
	var at page
	lw, rw := screen.Halves(w)
	left := o.leftPane(lw-1, h)
	right := append(o.known("WORKERS", func() []string { return o.workerTable(rw) }), "")
	if replicas := o.env.ReplicaLines(rw, min(7, h-len(right)-attentionRoom)); len(replicas) > 0 {
		right = append(append(right, replicas...), "")
	}
	right = append(right, widget.Spread(o.title(findings, screen.FeedOverview, "NEEDS ATTENTION"),
		o.env.Dim("enter = jump"), rw-1))
	n := o.Len()
	at.each = linesEach(n, h-len(right)-len(o.env.CheckSummary(rw-1, "")))
	if at.each == spacious {
		right = append(right, "")
	}
	at.first = len(right)
	checks := o.env.CheckBlock(rw-1, h-len(right)-max(spacious, at.each*n))
	room := max(0, h-len(right)-len(checks))
	drawn := o.longFindings(rw, at.each)
	if at.each == 1 {
		drawn, at.shown = o.findings(rw, room)
	}
	return o.env.Beside(left, append(append(right, widget.Fit(drawn, rw, room)...), checks...), w, h), at
}

const (
	// attentionRoom is the least number of lines for the findings.
	attentionRoom = 12
	// spacious findings have three lines: text, hint, and an empty line.
	spacious = 3
)

// linesEach is the height of each of n findings. Showing all of them is worth more than their hints. An empty
// line stands above spacious ones.
func linesEach(n, room int) int {
	switch {
	case spacious*n < room:
		return spacious
	case 2*n <= room:
		return 2
	default:
		return 1
	}
}

func (o *Overview) leftPane(w, h int) []string {
	e := o.env
	title := "THROUGHPUT  executions/min, last 60 min"
	uncounted := func(m monitor.PastMinute) bool { return m.Uncounted }
	if p := e.Data.Past; p != nil && slices.ContainsFunc(p.Minutes, uncounted) {
		title += screen.Gaps
	}
	lines := []string{" " + e.Head(screen.FeedOverview, title)}
	values := e.Ended(e.Points(w-8), func(minute *monitor.PastMinute) float64 { return minute.Done })
	lines = append(lines, widget.Chart(values, w, 5, e.Theme)...)
	lines = append(lines, e.Dim(widget.TimeAxis(e.Now.Add(-time.Hour), e.Now, w)),
		"       done "+e.DonePerMinute()+"   failed "+o.failRate()+
			"   dead letters on the broker "+e.Change(screen.SeriesDead, 5*time.Minute)+"/5m")
	lines = append(append(lines, o.pastLine(w)...), "")
	states := o.known(" EXECUTION STATES", func() []string { return o.stateLines(w) })
	broker := o.brokerLines(w, 6)
	room := h - len(lines) - len(states) - len(broker) - 2
	lines = append(append(lines, o.queueLines(w, max(4, room))...), "")
	return append(append(append(lines, states...), ""), broker...)
}

// pastLine shows failures and dead letters of the last hour; nothing if they are not recorded.
func (o *Overview) pastLine(w int) []string {
	e, p := o.env, o.env.Data.Past
	if p == nil || len(p.Minutes) == 0 {
		return nil
	}
	half := w/2 - 4
	cells := screen.EvenCells(half - 20)
	spark := func(of func(*monitor.PastMinute) float64) string {
		return widget.Spark(screen.Counted(e.Ended(cells, of)), cells, &e.Theme.Glyphs) + " "
	}
	total := 0.0
	for i := range p.Minutes {
		total += p.Minutes[i].Failed
	}
	failed := "  " + e.Label("failed 60m", 13) +
		spark(func(minute *monitor.PastMinute) float64 { return minute.Failed }) + e.Num(int64(total))
	dead := "  " + e.Label("dlq depth", 13) + e.Spark(screen.SeriesDead, time.Hour, max(4, half-13))
	if p.DeadLetters {
		dead = "  " + e.Label("dlq waiting", 13) +
			spark(func(minute *monitor.PastMinute) float64 { return minute.Waiting }) +
			e.Num(int64(p.Minutes[len(p.Minutes)-1].Waiting))
	}
	return []string{widget.Left(failed, half+4) + dead}
}

// queueLines are the queues with the longest waits.
func (o *Overview) queueLines(w, h int) []string {
	e, ov := o.env, o.env.Data.Overview
	title := o.title(topQueues, screen.FeedOverview, "TOP ACTION QUEUES")
	lines := []string{" " + widget.Spread(title, e.Dim("by head wait ↓"), w-8)}
	if ov == nil {
		return append(lines, " "+widget.Unknown)
	}
	lines = append(lines, o.queues.Lines(w-3, min(o.queues.Len()+1, max(1, h-1)), e.Theme)...)
	if len(ov.Top) == 0 {
		hint := "No queue exists yet. Make one: attune-executor run core.echo -p message=hello"
		lines = append(lines, " "+e.Dim(hint))
	}
	return lines
}

func (o *Overview) stateLines(w int) []string {
	e, ov := o.env, o.env.Data.Overview
	mark := e.Mark(screen.FeedOverview)
	one := func(name string, c monitor.Count) string { return "  " + name + " " + e.Count(c) + mark }
	live, recent := &ov.Live, &ov.Recent
	lines := append([]string{
		" " + e.Head(screen.FeedOverview, "EXECUTION STATES") +
			e.Dim("  now, and what ended in the last "+widget.Short(recent.Window)),
		one("requested", live.Requested) + one("scheduling", live.Scheduling) + one("scheduled", live.Scheduled) +
			one("running", live.Running) + one("canceling", live.Canceling),
		one("completed", recent.Completed) + one("failed", recent.Failed) + one("timeout", recent.Timeout) +
			one("cancelled", recent.Cancelled) + one("abandoned", recent.Abandoned),
	}, o.reasons(w)...)
	if items := o.itemsLine(w); items != "" {
		lines = append(lines, items)
	}
	return lines
}

// reasons counts failures by reason in one line; nothing if they are unknown.
func (o *Overview) reasons(w int) []string {
	list := o.env.Data.Overview.Recent.Reasons
	if len(list) == 0 {
		return nil
	}
	const named = 2
	line, rest := "  failed by reason: ", int64(0)
	room := (w - widget.Width(line) - 12) / min(len(list), named)
	for i, r := range list {
		if i >= named && len(list) > named+1 {
			rest += r.Count
			continue
		}
		if i > 0 {
			line += " · "
		}
		count := " " + o.env.Num(r.Count)
		line += widget.Cut(widget.Clean(r.Reason), max(8, room-widget.Width(count)-3)) + count
	}
	if rest > 0 {
		line += " · other " + o.env.Num(rest)
	}
	return []string{widget.Cut(line, w)}
}

func (o *Overview) brokerLines(w, h int) []string {
	e, b := o.env, o.env.Data.Broker
	if b == nil {
		return screen.Indented(o.brokerBlock(w - 1))
	}
	lines := []string{" " + o.title(brokerQueues, screen.FeedBroker, "BROKER") + "   " + widget.Clean(b.Node) + "  " +
		widget.Clean(b.Version) + "   vhost " + widget.Clean(b.VHost)}
	return append(lines, o.broker.Lines(w-11, min(o.broker.Len()+1, h-1), e.Theme)...)
}

// headAge is the age of the first message of a queue. The broker knows it if messages carry a timestamp; else
// the probe knows the oldest unstarted execution of the worker.
func (o *Overview) headAge(q *monitor.BrokerQueue) string {
	switch {
	case q.Ready == 0 && !q.Uncounted:
		return "-"
	case q.Head != nil:
		return o.env.AgeOf(q.Head)
	}
	if id, ok := monitor.WorkerOfQueue(q.Name); ok && o.env.Data.Overview != nil {
		for _, w := range o.env.Data.Overview.WorkerList {
			if w.ID == id && w.Probe != nil && w.Probe.Valid && w.Probe.Oldest != nil {
				return o.env.AgeOf(w.Probe.Oldest)
			}
		}
	}
	return widget.Unknown
}

func (o *Overview) workerTable(w int) []string {
	e, t, n := o.env, o.totals, o.workers.Len()
	lines := []string{
		o.title(workers, screen.FeedOverview, "WORKERS") + "  " + e.Num(t.Active) + " active · " +
			e.Num(t.Busy) + " full · " + e.Num(t.Stale) + " stale",
	}
	if others := o.others(t, widget.Blank(len("WORKERS  "))); others != "" {
		lines = append(lines, others)
	}
	lines = append(lines, o.workers.Lines(w, n+1, e.Theme)...)
	if n == 0 {
		lines = append(lines, "No worker has registered. Start one with: attune-executor worker")
	}
	return lines
}

// findings are the findings around the cursor, a line each, and the index of the first.
func (o *Overview) findings(w, h int) (lines []string, first int) {
	e, found := o.env, o.env.Findings()
	if len(found) == 0 {
		sign, text := e.Calm()
		return []string{" " + sign + " " + e.Dim(text)}, 0
	}
	room := h
	if len(found) > h {
		room = h - 1
	}
	first = max(0, min(o.cursor-room+1, len(found)-room)) // the cursor stays visible
	for i, f := range found[first:min(first+max(room, 0), len(found))] {
		text := widget.Clean(f.Text)
		if f.Hint != "" {
			text += ", " + widget.Clean(f.Hint)
		}
		lines = append(lines, o.finding(first+i, f, text, w))
	}
	if len(found) > len(lines) {
		lines = append(lines, e.Dim("   … "+e.Num(int64(len(found)-len(lines)))+" more"))
	}
	return lines, first
}

// finding draws a finding on one line, with the cursor if it is on it.
func (o *Overview) finding(i int, f alerting.Finding, text string, w int) string {
	e := o.env
	since := ""
	if f.Since != nil {
		since = widget.Short(e.Since(*f.Since))
	}
	text = widget.Spread(widget.Cut(text, w-10), since, w-4)
	look := e.Theme.Of(screen.LevelState(f.Level))
	if f.Cause != "" { // it stands below its cause
		look = theme.State{Glyph: "└", Role: theme.Dim}
	}
	if i == o.cursor && o.here() == findings {
		return e.Paint(theme.Cursor, widget.Left(e.Theme.Glyphs.Cursor+look.Glyph+" "+text+" ", w))
	}
	mark := " "
	if i == o.cursor {
		mark = e.Dim(e.Theme.Glyphs.Rest)
	}
	return mark + e.Paint(look.Role, look.Glyph) + " " + text
}

// longFindings are all findings with their hints, each in so many lines.
func (o *Overview) longFindings(w, each int) []string {
	e, found := o.env, o.env.Findings()
	if len(found) == 0 {
		sign, text := e.Calm()
		return []string{sign + " " + e.Dim(text)}
	}
	var lines []string
	for i, f := range found {
		one := []string{o.finding(i, f, widget.Clean(f.Text), w), "    " + widget.Cut(widget.Clean(f.Hint), w-5), ""}
		lines = append(lines, one[:each]...)
	}
	return lines
}
