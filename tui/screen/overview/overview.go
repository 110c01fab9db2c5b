// Package overview is the first view: the whole installation on one page, and
// what needs attention.
package overview

import (
	"strings"
	"time"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// Overview is the view. Its cursor walks through the findings and, where there is
// room for them, through the lists beside them.
type Overview struct {
	env    *screen.Env
	cursor int
	part   part
	places [parts]place
	shown  shown
	// firstFinding is the body line of the first finding as last drawn, perFinding how
	// many lines one takes, and firstShown which it is.
	firstFinding, perFinding, firstShown int
	judged                               judged
}

// judged are the workers as they were judged last, and by what.
type judged struct {
	of     *alerting.Overview
	broker *monitor.Broker
	totals monitor.WorkerTotals
	list   []monitor.Worker
}

// workers are the workers of the overview, judged once for each thing read.
func (o *Overview) workers() (monitor.WorkerTotals, []monitor.Worker) {
	if j, d := &o.judged, o.env.Data; j.of != d.Overview || j.broker != o.env.Heard() {
		j.of, j.broker = d.Overview, o.env.Heard()
		j.totals, j.list = j.of.Judged(j.broker)
	}
	return o.judged.totals, o.judged.list
}

// New makes the view.
func New(env *screen.Env) *Overview { return &Overview{env: env, perFinding: 1} }

// View is the name of the screen.
func (o *Overview) View() screen.View { return keymap.InOverview }

// Feeds is what the view needs polled: itself first, and the checks.
func (o *Overview) Feeds() []screen.Feed {
	feeds := []screen.Feed{screen.FeedOverview, screen.FeedChecks, screen.FeedPast}
	if o.trends() {
		feeds = append(feeds, screen.FeedQueuesPast, screen.FeedWorkersPast)
	}
	return feeds
}

// trends reports whether there is room for the trends of queues and workers.
func (o *Overview) trends() bool { return o.env.Width >= 120 && o.env.Height >= 25 }

// Behind names what the trends begin with, until it was read.
func (o *Overview) Behind() screen.Feed {
	switch {
	case !o.trends() || o.env.Data.Overview == nil: // what is now comes first
		return ""
	case o.env.Data.QueuesPast == nil:
		return screen.FeedQueuesPast
	case o.env.Data.WorkersPast == nil:
		return screen.FeedWorkersPast
	default:
		return ""
	}
}

// Title is the text of the title rule.
func (o *Overview) Title() (left, right string) { return "Overview", "" }

// Changed keeps the cursor inside the findings.
func (o *Overview) Changed(screen.Feed) { o.move(0) }

// Do moves the cursor through the findings and opens what they point at.
func (o *Overview) Do(action keymap.Action) screen.Effect {
	switch action {
	case keymap.RowDown:
		o.step(1)
	case keymap.RowUp:
		o.step(-1)
	case keymap.Top:
		o.step(-far)
	case keymap.Bottom:
		o.step(far)
	case keymap.NextPane, keymap.PrevPane:
		if !o.trends() {
			return screen.Effect{Handled: true, Note: "The lists beside what needs attention are in windows of 120 columns and more."}
		}
		o.turn(map[keymap.Action]part{keymap.NextPane: 1, keymap.PrevPane: -1}[action])
	case keymap.Open:
		if of := o.here(); of != findings {
			return o.enter(of)
		}
		return o.open()
	default:
		return screen.Effect{}
	}
	return screen.Effect{Handled: true}
}

// far is further than any list is long.
const far = 1 << 20

func (o *Overview) move(n int) {
	o.cursor = max(0, min(o.cursor+n, len(o.env.Findings())-1))
}

func (o *Overview) open() screen.Effect {
	found := o.env.Findings()
	if o.cursor >= len(found) {
		_, note := o.env.Calm()
		return screen.Effect{Handled: true, Note: note}
	}
	f := found[o.cursor]
	here := f.Target == "" || screen.View(f.Target) == o.View()
	if here && f.Rule != "" {
		return screen.OpenRow(keymap.InAlerts, screen.AlertKey(f.Rule, f.About))
	}
	if here {
		return screen.Effect{Handled: true, Note: "No view has more of this than stands here."}
	}
	return screen.OpenList(screen.View(f.Target), f.Filter)
}

// Select puts the cursor on the finding drawn at a line.
func (o *Overview) Select(line int) bool {
	at := o.firstShown + (line-o.firstFinding)/o.perFinding
	if line < o.firstFinding || at >= len(o.env.Findings()) {
		return false
	}
	o.cursor, o.part = at, findings
	return true
}

// Render draws the view.
func (o *Overview) Render(w, h int) []string {
	if o.env.Data.Overview == nil && o.env.Data.Broker == nil {
		return append(o.env.Missing(screen.FeedOverview, "the overview", w),
			o.env.Missing(screen.FeedBroker, "the broker", w)...)
	}
	switch {
	case w >= 120 && h >= 25:
		return o.wide(w, h)
	case w < 76 || h < 17:
		return o.small(w, h)
	}
	return o.narrow(w, h)
}

// small is for windows in which the blocks find no room: a line with the numbers, and
// what needs attention.
func (o *Overview) small(w, h int) []string {
	e := o.env
	line := " done " + e.DonePerMinute() + "  fail " + o.failRate() + "  dlq " + o.deadDepth()
	if ov := e.Data.Overview; ov != nil {
		mark := e.Mark(screen.FeedOverview)
		line = " queued " + e.Num(ov.Queues.Queued) + mark + "  running " + e.Num(ov.Queues.Active) + mark + " " + line
	}
	lines := []string{
		widget.Cut(line, w),
		" " + widget.Spread(e.Paint(theme.Dim, "NEEDS ATTENTION"), e.Paint(theme.Dim, "enter = jump"), w-2),
	}
	o.firstFinding, o.perFinding = len(lines), 1
	return append(lines, o.findings(w, h-len(lines))...)
}

func (o *Overview) narrow(w, h int) []string {
	lw := w / 2
	lines := []string{o.throughputLine(w), ""}
	if engine := o.env.EngineLine(w - 2); engine != "" {
		lines[1] = " " + engine // in the place of the empty line
	}
	beside := func(left, right []string) []string {
		return widget.Beside(left, right, lw, w-lw, max(len(left), len(right)), "")
	}
	lines = append(append(lines, beside(o.queueBlock(), o.workerBlock())...), o.itemsLine(w)) // or an empty line
	lines = append(lines, beside(o.stateBlock(), o.brokerBlock(w-lw))...)
	lines = append(lines, "", " "+widget.Spread(o.env.Paint(theme.Dim, "NEEDS ATTENTION"), o.env.Paint(theme.Dim, "enter = jump"), w-2))
	o.firstFinding, o.perFinding = len(lines), 1
	return append(lines, o.findings(w, h-len(lines))...)
}

// attentionRoom is what the findings of the wide view need at least.
const attentionRoom = 12

func (o *Overview) wide(w, h int) []string {
	lw := w * 82 / 140
	rw := w - lw - 2
	left := o.leftPane(lw-1, h)
	right := append(o.workerTable(rw), "")
	// What needs attention keeps room for some findings of three lines each.
	if replicas := o.env.ReplicaLines(rw, min(7, h-len(right)-attentionRoom)); len(replicas) > 0 {
		right = append(append(right, replicas...), "")
	}
	right = append(right, widget.Spread(o.title(findings, screen.FeedOverview, "NEEDS ATTENTION"), o.env.Paint(theme.Dim, "enter = jump"), rw-1))
	n := len(o.env.Findings())
	o.perFinding = linesEach(n, h-len(right)-len(o.env.CheckSummary(rw-1, "")))
	if o.perFinding == spacious {
		right = append(right, "")
	}
	o.firstFinding = len(right)
	checks := o.env.CheckBlock(rw-1, h-len(right)-max(spacious, o.perFinding*n))
	room := max(0, h-len(right)-len(checks))
	drawn := o.longFindings(rw)
	if o.perFinding == 1 {
		drawn = o.findings(rw, room)
	}
	right = append(append(right, widget.Fit(drawn, rw, room)...), checks...)
	return widget.Beside(left, right, lw, rw, h, o.env.Paint(theme.Dim, "│")+" ")
}

// spacious is how many lines a finding has where there is room: its text, its hint, and
// an empty line.
const spacious = 3

// linesEach is how many lines each of n findings has in so many lines, of which one is
// left empty above spacious ones. Seeing all of them is worth more than their hints.
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

// throughputLine is one line with the rates.
func (o *Overview) throughputLine(w int) string {
	e := o.env
	label := " THROUGHPUT /min 60m "
	rates := "  done " + e.DonePerMinute() + "   fail " + o.failRate() + "   dlq " + o.deadDepth()
	room := min(max(8, w-widget.Width(label)-widget.Width(rates)-2), 60)
	values := e.Ended(screen.EvenCells(room), func(minute *monitor.PastMinute) float64 { return minute.Done })
	return e.Paint(theme.Dim, label) + widget.Spark(screen.Counted(values), room, &e.Theme.Glyphs) + rates
}

func (o *Overview) failRate() string {
	if ov := o.env.Data.Overview; ov != nil && ov.Recent.FailedLastMinute != nil {
		return o.env.Count(*ov.Recent.FailedLastMinute) + "/m" + o.env.Mark(screen.FeedOverview)
	}
	return widget.Unknown
}

func (o *Overview) deadDepth() string {
	q, ok := o.env.Data.Broker.Queue(monitor.DeadLetterQueue)
	if !ok {
		return widget.Unknown
	}
	return o.env.BrokerNum(q, q.Ready) + o.env.Mark(screen.FeedBroker)
}

// number right-aligns a number of the overview feed with its mark.
func (o *Overview) number(text string) string {
	const width = 8
	return widget.Right(text+o.env.Mark(screen.FeedOverview), width)
}

func (o *Overview) queueBlock() []string {
	e, ov := o.env, o.env.Data.Overview
	if ov == nil {
		return []string{" " + e.Paint(theme.Dim, "QUEUES ") + widget.Unknown}
	}
	q := ov.Queues
	oldest, name := "-", "nobody waits"
	if top, ok := longestWait(ov); ok {
		oldest, name = e.AgeOf(top.Oldest), widget.Cut(widget.Clean(screen.QueueName(&top)), 20)
	}
	return []string{
		" " + e.Head(screen.FeedOverview, "QUEUES") + "  " + e.Num(q.Busy) + " busy of " + e.Num(q.Queues),
		"   queued " + o.number(e.Num(q.Queued)) + "  " + e.Spark(screen.SeriesQueued, 15*time.Minute, 7) + " " + e.Change(screen.SeriesQueued, 5*time.Minute) + "/5m",
		"   running" + o.number(e.Num(q.Active)) + "  · " + e.Num(q.Slots) + " limited slots",
		"   oldest " + o.number(oldest) + "  " + name,
	}
}

// itemsLine counts the items that wait in work queues; empty where there are none.
func (o *Overview) itemsLine(w int) string {
	e, ov := o.env, o.env.Data.Overview
	if ov == nil || len(ov.WorkQueues) == 0 {
		return ""
	}
	items, oldest := monitor.SumWorkQueues(ov.WorkQueues)
	where := widget.CutMiddle(widget.Clean(ov.WorkQueues[0].Ref), 24)
	if n := len(ov.WorkQueues); n > 1 {
		where = e.Num(int64(n)) + " queues"
	}
	return widget.Cut(" "+e.Head(screen.FeedOverview, "WORK QUEUES")+"  "+e.Paint(theme.Warn, e.Theme.Glyphs.Warning)+" "+
		e.Count(items)+" items wait in "+where+", not dispatched, oldest "+e.AgeOf(&oldest), w)
}

func longestWait(ov *alerting.Overview) (monitor.Queue, bool) {
	var top monitor.Queue
	for _, q := range ov.Top {
		if q.Oldest != nil && (top.Oldest == nil || q.Oldest.Before(*top.Oldest)) {
			top = q
		}
	}
	return top, top.Oldest != nil
}

func (o *Overview) workerBlock() []string {
	e, ov := o.env, o.env.Data.Overview
	if ov == nil {
		return []string{e.Paint(theme.Dim, "WORKERS ") + widget.Unknown}
	}
	t, list := o.workers()
	worst, beat := "", "-"
	for _, w := range list {
		if e.Judge(&w, ov.At).Health == monitor.WorkerStale && worst == "" {
			worst = widget.CutMiddle(widget.Clean(w.Name), 16) + " " + e.AgeOf(w.Heartbeat)
		}
	}
	if at := oldestBeat(ov); at != nil {
		beat = e.AgeOf(at)
	}
	line := func(state, word string, n int64, more string) string {
		s := e.Theme.Of(state)
		return "  " + e.Paint(s.Role, s.Glyph) + " " + e.Num(n) + " " + widget.Left(word, 9) + " " + more
	}
	return []string{
		e.Head(screen.FeedOverview, "WORKERS") + "  " + e.Num(t.Total) + e.Mark(screen.FeedOverview) + o.kept(t, "  "),
		line("active", "active", t.Active, "slots "+e.Num(t.Assigned)+"/"+e.Num(t.Capacity)),
		line("busy", "busy", t.Busy, "oldest hb "+beat),
		line("stale", "stale", t.Stale, worst),
	}
}

// kept counts the workers that are neither active nor busy nor stale, if there are any.
func (o *Overview) kept(t monitor.WorkerTotals, before string) string {
	var kinds []string
	for _, kind := range []struct {
		word string
		n    int64
	}{
		{"deaf", t.Deaf},
		{"suspect", t.Suspect},
		{"unhealthy", t.Unhealthy},
		{"degraded", t.Degraded},
		{"cordoned", t.Cordoned},
		{"inactive", t.Inactive},
	} {
		if kind.n > 0 {
			kinds = append(kinds, o.env.Num(kind.n)+" "+kind.word)
		}
	}
	if len(kinds) == 0 {
		return ""
	}
	return before + strings.Join(kinds, " · ")
}

func oldestBeat(ov *alerting.Overview) *time.Time {
	var at *time.Time
	for _, w := range ov.WorkerList {
		if w.Heartbeat != nil && w.Status == "active" && (at == nil || w.Heartbeat.Before(*at)) {
			at = w.Heartbeat
		}
	}
	return at
}

func (o *Overview) stateBlock() []string {
	e, ov := o.env, o.env.Data.Overview
	if ov == nil {
		return []string{" " + e.Paint(theme.Dim, "EXECUTIONS ") + widget.Unknown}
	}
	line := func(state string, n monitor.Count, more string) string {
		s := e.Theme.Of(state)
		return "   " + e.Paint(s.Role, s.Glyph) + " " + widget.Left(state, 10) + o.number(e.Count(n)) + more
	}
	return []string{
		" " + e.Head(screen.FeedOverview, "EXECUTIONS") + e.Paint(theme.Dim, "  last "+widget.Short(ov.Recent.Window)),
		line("completed", ov.Recent.Completed, ""),
		line("failed", ov.Recent.Failed, ""),
		line("timeout", ov.Recent.Timeout, ""),
		line("scheduled", ov.Live.Stuck, "  >"+widget.Short(ov.Live.StuckAfter)+" stuck"),
	}
}

func (o *Overview) brokerBlock(w int) []string {
	e, b := o.env, o.env.Data.Broker
	if b == nil {
		lines := []string{e.Head(screen.FeedBroker, "BROKER") + "  " + widget.Unknown}
		if err := e.Data.Fresh(screen.FeedBroker).Err; err != nil {
			lines = append(lines, "  "+widget.Cut(widget.Clean(err.Error()), w-3))
		}
		return lines
	}
	mark := e.Mark(screen.FeedBroker)
	ready, unacked := totals(b)
	lines := []string{
		e.Head(screen.FeedBroker, "BROKER"),
		"  ready " + widget.Left(e.Num(ready)+mark, 10) + " unacked " + e.Num(unacked) + mark,
	}
	if q, ok := b.Queue(monitor.DeadLetterQueue); ok {
		lines = append(lines, "  "+monitor.DeadLetterQueue+"  "+e.BrokerNum(q, q.Ready)+mark+"  "+e.Change(screen.SeriesDead, 5*time.Minute)+"/5m")
	} else {
		lines = append(lines, "  "+e.Paint(theme.Warn, "▲ no "+monitor.DeadLetterQueue))
	}
	alarms := "none"
	if b.AlarmsUnknown != "" {
		alarms = widget.Unknown
	}
	if len(b.Alarms) > 0 {
		alarms = e.Paint(theme.Bad, "■ "+widget.Clean(strings.Join(b.Alarms, " ")))
	}
	return append(lines, "  alarms "+alarms+"   blocked "+o.blocked(b), o.wiring(w))
}

// blocked says whether the broker keeps clients from publishing.
func (o *Overview) blocked(b *monitor.Broker) string {
	switch {
	case b.BlockedUnknown != "":
		return widget.Unknown
	case len(b.Blocked) > 0:
		return o.env.Paint(theme.Bad, "■ "+o.env.Num(int64(len(b.Blocked))))
	default:
		return "no"
	}
}

// wiring is one line about whether dead letters find their way.
func (o *Overview) wiring(w int) string {
	lines := o.env.CheckSummary(w-3, "topology.")
	return " " + strings.TrimPrefix(lines[len(lines)-1], "   ")
}

func totals(b *monitor.Broker) (ready, unacked int64) {
	for _, q := range b.Queues {
		ready += q.Ready
		unacked += q.Unacked
	}
	return ready, unacked
}
