package overview

import (
	"slices"
	"strings"
	"time"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

func (o *Overview) leftPane(w, h int) []string {
	e := o.env
	title := "THROUGHPUT  executions/min, last 60 min"
	if p := e.Data.Past; p != nil && p.Estimated {
		title += " (estimated)"
	}
	lines := []string{" " + e.Head(screen.FeedOverview, title)}
	values := e.Ended(e.Points(w-8), func(minute *monitor.PastMinute) float64 { return minute.Done })
	lines = append(lines, widget.Chart(values, w, 5, e.Theme)...)
	lines = append(lines, e.Paint(theme.Dim, widget.TimeAxis(e.Now.Add(-time.Hour), e.Now, w)), "       done "+e.DonePerMinute()+"   failed "+o.failRate()+
		"   dead letters on the broker "+o.env.Change(screen.SeriesDead, 5*time.Minute)+"/5m")
	lines = append(lines, o.pastLines(w)...)
	lines = append(lines, "")
	states := o.stateLines(w)
	broker := o.brokerLines(w, 6)
	room := h - len(lines) - len(states) - len(broker) - 2
	lines = append(lines, o.queueLines(w, max(4, room))...)
	lines = append(lines, "")
	lines = append(lines, states...)
	lines = append(lines, "")
	return append(lines, broker...)
}

// pastLines are what failed and was dead-lettered in the minutes that have passed;
// none where nobody recorded it.
func (o *Overview) pastLines(w int) []string {
	e := o.env
	p := e.Data.Past
	if p == nil || len(p.Minutes) == 0 {
		return nil
	}
	half := w/2 - 4
	line := func(word, drawn string) string { return "  " + e.Paint(theme.Dim, widget.Left(word, 13)) + drawn }
	total := 0.0
	for i := range p.Minutes {
		total += p.Minutes[i].Failed
	}
	cells := screen.EvenCells(half - 20)
	failed := e.Ended(cells, func(minute *monitor.PastMinute) float64 { return minute.Failed })
	dead := line("dlq depth", e.Spark(screen.SeriesDead, time.Hour, max(4, half-13)))
	if p.Letters {
		n := screen.EvenCells(half - 20)
		waited := e.Ended(n, func(minute *monitor.PastMinute) float64 { return minute.Waiting })
		now := e.Num(int64(p.Minutes[len(p.Minutes)-1].Waiting))
		dead = line("dlq waiting", widget.Spark(screen.Counted(waited), n, &e.Theme.Glyphs)+" "+now)
	}
	return []string{
		widget.Left(line("failed 60m", widget.Spark(screen.Counted(failed), cells, &e.Theme.Glyphs)+" "+e.Num(int64(total))), half+4) + dead,
	}
}

// queueLines are the queues whose head waits longest.
func (o *Overview) queueLines(w, h int) []string {
	e, ov := o.env, o.env.Data.Overview
	lines := []string{" " + widget.Spread(o.title(topQueues, screen.FeedOverview, "TOP ACTION QUEUES"), e.Paint(theme.Dim, "by head wait ↓"), w-8)}
	if ov == nil {
		return append(lines, " "+widget.Unknown)
	}
	name := max(10, w-43)
	lines = append(lines, e.Paint(theme.Dim, " "+widget.Left("ACTION / GROUP", name)+"   QUEUED  RUN/MAX    HEAD TREND 15m"))
	top := o.top()
	top = top[:min(len(top), max(0, h-len(lines)))]
	o.draw(topQueues, keysOf(top, queueKey))
	for _, q := range top {
		line := widget.Left(widget.CutMiddle(widget.Clean(screen.QueueName(&q)), name), name) +
			widget.Right(e.Num(q.Queued), 9) + widget.Right(screen.Slots(q.Active, q.Limit), 9) +
			widget.Right(e.AgeOf(q.Oldest), 8) + " " + e.Spark(screen.QueueSeries(q.ID), 15*time.Minute, 12)
		lines = append(lines, o.line(topQueues, queueKey(&q), "", line, w-1))
	}
	if len(ov.Top) == 0 {
		lines = append(lines, " "+e.Paint(theme.Dim, "No queue exists yet. Make one: attune-executor run core.echo -p message=hello"))
	}
	return lines
}

// compareWait orders the longest wait first and those without one last.
func compareWait(a, b *time.Time) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	default:
		return a.Compare(*b)
	}
}

func (o *Overview) stateLines(w int) []string {
	e, ov := o.env, o.env.Data.Overview
	if ov == nil {
		return []string{" " + e.Paint(theme.Dim, "EXECUTION STATES ") + widget.Unknown}
	}
	mark := e.Mark(screen.FeedOverview)
	pairs := func(list ...string) string { return "  " + strings.Join(list, "  ") }
	one := func(name string, c monitor.Count) string { return name + " " + e.Count(c) + mark }
	lines := append([]string{
		" " + e.Head(screen.FeedOverview, "EXECUTION STATES") + e.Paint(theme.Dim, "  now, and ended of those requested in the last "+widget.Short(ov.Recent.Window)),
		pairs(one("requested", ov.Live.Requested), one("scheduling", ov.Live.Scheduling), one("scheduled", ov.Live.Scheduled),
			one("running", ov.Live.Running), one("canceling", ov.Live.Canceling)),
		pairs(one("completed", ov.Recent.Completed), one("failed", ov.Recent.Failed), one("timeout", ov.Recent.Timeout),
			one("cancelled", ov.Recent.Cancelled), one("abandoned", ov.Recent.Abandoned)),
	}, o.reasons(w)...)
	if items := o.itemsLine(w); items != "" {
		lines = append(lines, items)
	}
	return lines
}

// reasons are why executions ended badly, as many as find room in a line; none where
// that is not known.
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

func (o *Overview) brokerLines(w, rows int) []string {
	e, b := o.env, o.env.Data.Broker
	if b == nil {
		return o.brokerBlock(w)
	}
	name := max(20, w-47)
	lines := []string{
		" " + o.title(brokerQueues, screen.FeedBroker, "BROKER") + "   " + widget.Clean(b.Node) + "  " + widget.Clean(b.Version) + "   vhost " + widget.Clean(b.VHost),
		e.Paint(theme.Dim, " "+widget.Left("QUEUE", name)+"     READY   UNACK    CONS AGE HEAD"),
	}
	list := slices.Clone(b.Queues)
	slices.SortStableFunc(list, func(x, y monitor.BrokerQueue) int { return monitor.ComparePressing(&x, &y) })
	list = list[:min(rows-2, len(list))]
	brokerKey := func(q *monitor.BrokerQueue) string { return q.Name }
	o.draw(brokerQueues, keysOf(list, brokerKey))
	for _, q := range list {
		line := widget.Left(widget.CutMiddle(widget.Clean(q.Name), name), name) +
			widget.Right(e.BrokerNum(q, q.Ready), 10) + widget.Right(e.BrokerNum(q, q.Unacked), 8) + widget.Right(e.BrokerNum(q, q.Consumers), 8) +
			widget.Right(o.headAge(&q), 9)
		lines = append(lines, o.line(brokerQueues, q.Name, "", line, w-1))
	}
	return lines
}

// headAge is how old what is at the head of a queue is: when it was sent, where
// messages say so, else since when the worker's oldest lies unstarted, as the engine
// saw it.
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
	e, ov := o.env, o.env.Data.Overview
	if ov == nil {
		return o.workerBlock()
	}
	t, list := o.workers()
	lines := []string{
		o.title(workers, screen.FeedOverview, "WORKERS") + "  " + e.Num(t.Active) + " active · " + e.Num(t.Busy) + " busy · " + e.Num(t.Stale) + " stale",
	}
	if kept := o.kept(t, strings.Repeat(" ", len("WORKERS  "))); kept != "" {
		lines = append(lines, kept)
	}
	lines = append(lines, e.Paint(theme.Dim, widget.Left("  WORKER", w-26)+"  SLOTS      HB TREND"))
	o.draw(workers, keysOf(list, workerKey))
	for _, wk := range list {
		health := e.Judge(&wk, ov.At).Health
		s := e.Theme.Of(string(health))
		taken := widget.Unknown
		if wk.Assigned != nil {
			taken = screen.Slots(*wk.Assigned, wk.Capacity)
		}
		trend := e.Spark(screen.WorkerSeries(wk.ID), 15*time.Minute, 8)
		if health != monitor.WorkerActive && health != monitor.WorkerBusy {
			trend = string(health) // the sign is given its word
		}
		line := widget.Left(widget.CutMiddle(widget.Clean(wk.Name), w-28), w-28) +
			widget.Right(taken, 7) + widget.Right(e.AgeOf(wk.Heartbeat), 8) + " " + trend
		lines = append(lines, o.line(workers, workerKey(&wk), e.Paint(s.Role, s.Glyph), line, w-2))
	}
	if len(list) == 0 {
		lines = append(lines, "No worker has registered. Start one with: attune-executor worker")
	}
	return lines
}

func (o *Overview) findings(w, h int) []string {
	e := o.env
	found := e.Findings()
	if len(found) == 0 {
		sign, text := e.Calm()
		return []string{" " + sign + " " + e.Paint(theme.Dim, text)}
	}
	room := h
	if len(found) > h {
		room = h - 1
	}
	var lines []string
	o.firstShown = o.scrolled(len(found), room)
	for i, f := range found[o.firstShown:min(o.firstShown+max(room, 0), len(found))] {
		text := widget.Clean(f.Text)
		if f.Hint != "" {
			text += ", " + widget.Clean(f.Hint)
		}
		lines = append(lines, o.finding(o.firstShown+i, f, text, w))
	}
	if len(found) > len(lines) {
		lines = append(lines, e.Paint(theme.Dim, "   … "+e.Num(int64(len(found)-len(lines)))+" more"))
	}
	return lines
}

// scrolled is the first of n findings to draw where room of them find place, so that
// the cursor is in sight.
func (o *Overview) scrolled(n, room int) int {
	return max(0, min(o.cursor-room+1, n-room))
}

// finding draws one finding on one line, with the cursor if it is there.
func (o *Overview) finding(i int, f alerting.Finding, text string, w int) string {
	e := o.env
	since := ""
	if f.Since != nil {
		since = widget.Short(e.Since(*f.Since))
	}
	look := e.Theme.Of(levelState(f.Level))
	if f.Cause != "" { // it stands below what explains it
		look = theme.State{Glyph: "└", Role: theme.Dim}
	}
	if i == o.cursor && o.here() == findings {
		line := e.Theme.Glyphs.Cursor + look.Glyph + " " + widget.Spread(widget.Cut(text, w-10), since, w-4) + " "
		return e.Paint(theme.Cursor, widget.Left(line, w))
	}
	return " " + e.Paint(look.Role, look.Glyph) + " " + widget.Spread(widget.Cut(text, w-10), since, w-4)
}

func levelState(level alerting.Level) string {
	if level == alerting.LevelInfo {
		return "idle"
	}
	return string(level)
}

// longFindings are all findings with their hints.
func (o *Overview) longFindings(w int) []string {
	e := o.env
	found := e.Findings()
	if len(found) == 0 {
		sign, text := e.Calm()
		return []string{sign + " " + e.Paint(theme.Dim, text)}
	}
	var lines []string
	o.firstShown = 0
	for i, f := range found {
		one := []string{o.finding(i, f, widget.Clean(f.Text), w), "    " + widget.Cut(widget.Clean(f.Hint), w-5), ""}
		lines = append(lines, one[:o.perFinding]...)
	}
	return lines
}
