// Package overview is the first view: the whole installation on one page, and
// what needs attention.
package overview

import (
	"slices"
	"strings"
	"time"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/list"
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
	judged judged
	// top are the queues whose head waits longest, pressing those of the broker that need help,
	// both first.
	top      []queue
	pressing []monitor.BrokerQueue
}

// queue is an action queue with the name that people read.
type queue struct {
	monitor.Queue

	name string
}

// judged are the workers as they were judged, and by what.
type judged struct {
	of     *alerting.Overview
	broker *monitor.Broker
	totals monitor.WorkerTotals
	list   []monitor.Worker
	health []monitor.WorkerHealth
}

// workers are the workers of the overview, judged when they were read, or now where the broker
// has fallen silent since.
func (o *Overview) workers() *judged {
	d, heard := o.env.Data, o.env.Heard()
	if o.judged.of == d.Overview && o.judged.broker == heard {
		return &o.judged
	}
	c := judged{of: d.Overview, broker: heard}
	c.totals, c.list = c.of.Judged(heard)
	for i := range c.list {
		c.health = append(c.health, o.env.Judge(&c.list[i], c.of.At).Health)
	}
	return &c
}

// New makes the view.
func New(env *screen.Env) *Overview { return &Overview{env: env} }

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

// Changed takes over new data and keeps the cursor inside the findings.
func (o *Overview) Changed(feed screen.Feed) {
	d := o.env.Data
	if feed == screen.FeedOverview && d.Overview != nil {
		o.top = nil
		for _, q := range d.Overview.Top {
			o.top = append(o.top, queue{Queue: q, name: widget.Clean(screen.QueueName(&q))})
		}
		wait := list.OldestFirst(func(q *queue) *time.Time { return q.Oldest })
		slices.SortStableFunc(o.top, func(a, b queue) int { return wait(o.env, &a, &b) })
	}
	if feed == screen.FeedBroker && d.Broker != nil {
		o.pressing = slices.Clone(d.Broker.Queues)
		slices.SortStableFunc(o.pressing, func(x, y monitor.BrokerQueue) int { return monitor.ComparePressing(&x, &y) })
	}
	if d.Overview != nil {
		o.judged = *o.workers()
	}
	o.move(0)
}

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
			return screen.Effect{
				Handled: true, Note: "The lists beside what needs attention are in windows of 120 columns and more.",
			}
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

// Len is the number of findings.
func (o *Overview) Len() int { return len(o.env.Findings()) }

// Key identifies a finding.
func (o *Overview) Key(i int) string { return o.env.Findings()[i].Text }

// Thing is a finding.
func (o *Overview) Thing(i int) screen.Thing {
	f := o.env.Findings()[i]
	return screen.Thing{Name: "finding", ID: f.Text, Value: f, Command: []string{"alerts", "list"}}
}

// Shows is what the cursor is on.
func (o *Overview) Shows() (screen.Thing, bool) {
	if of := o.here(); of != findings {
		return o.thing(of)
	}
	if o.cursor >= o.Len() {
		return screen.Thing{}, false
	}
	return o.Thing(o.cursor), true
}

// Select puts the cursor on the finding drawn at a line.
func (o *Overview) Select(line int) bool {
	_, page := o.draw(o.env.Width, o.env.Height)
	at := page.shown + (line-page.first)/max(1, page.each)
	if line < page.first || at >= o.Len() {
		return false
	}
	o.cursor, o.part = at, findings
	return true
}

// page is what was drawn where: the keys of the rows of each part, and of the findings the body
// line of the first, how many lines one takes, and which the first is.
type page struct {
	keys               [parts][]string
	first, each, shown int
}

// Render draws the view.
func (o *Overview) Render(w, h int) []string {
	lines, _ := o.draw(w, h)
	return lines
}

// draw draws the view and says what is where.
func (o *Overview) draw(w, h int) ([]string, page) {
	if o.env.Data.Overview == nil && o.env.Data.Broker == nil {
		return append(o.env.Missing(screen.FeedOverview, "the overview", w),
			o.env.Missing(screen.FeedBroker, "the broker", w)...), page{}
	}
	if w >= 120 && h >= 25 {
		return o.wide(w, h)
	}
	lines := o.narrow(w)
	if w < 76 || h < 17 {
		lines = o.small(w)
	}
	attention := widget.Spread(o.env.Dim("NEEDS ATTENTION"), o.env.Dim("enter = jump"), w-2)
	lines = append(lines, " "+attention)
	at := page{first: len(lines), each: 1}
	var drawn []string
	drawn, at.shown = o.findings(w, h-len(lines))
	return append(lines, drawn...), at
}

// small is for windows in which the blocks find no room: a line with the numbers.
func (o *Overview) small(w int) []string {
	e := o.env
	line := " done " + e.DonePerMinute() + "  fail " + o.failRate() + "  dlq " + o.deadDepth()
	if ov := e.Data.Overview; ov != nil {
		mark := e.Mark(screen.FeedOverview)
		line = " queued " + e.Num(ov.Queues.Queued) + mark + "  running " + e.Num(ov.Queues.Active) + mark + " " + line
	}
	return []string{widget.Cut(line, w)}
}

func (o *Overview) narrow(w int) []string {
	lw := w / 2
	lines := []string{o.throughputLine(w), ""}
	if engine := o.env.EngineLine(w - 2); engine != "" {
		lines[1] = " " + engine // in the place of the empty line
	}
	beside := func(left, right []string) []string {
		return widget.Beside(left, right, lw, w-lw, max(len(left), len(right)), "")
	}
	lines = append(append(lines, beside(o.queueBlock(), o.workerBlock())...), o.itemsLine(w)) // or an empty line
	return append(append(lines, beside(o.stateBlock(), o.brokerBlock(w-lw))...), "")
}

// throughputLine is one line with the rates.
func (o *Overview) throughputLine(w int) string {
	e := o.env
	label := " THROUGHPUT /min 60m "
	rates := "  done " + e.DonePerMinute() + "   fail " + o.failRate() + "   dlq " + o.deadDepth()
	room := min(max(8, w-widget.Width(label)-widget.Width(rates)-2), 60)
	values := e.Ended(screen.EvenCells(room), func(minute *monitor.PastMinute) float64 { return minute.Done })
	return e.Dim(label) + widget.Spark(screen.Counted(values), room, &e.Theme.Glyphs) + rates
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
		return []string{" " + e.Dim("QUEUES ") + widget.Unknown}
	}
	q := ov.Queues
	oldest, name := "-", "nobody waits"
	if len(o.top) > 0 && o.top[0].Oldest != nil {
		oldest, name = e.AgeOf(o.top[0].Oldest), widget.Cut(o.top[0].name, 20)
	}
	return []string{
		" " + e.Head(screen.FeedOverview, "QUEUES") + "  " + e.Num(q.Busy) + " busy of " + e.Num(q.Queues),
		"   queued " + o.number(e.Num(q.Queued)) + "  " + e.Spark(screen.SeriesQueued, 15*time.Minute, 7) + " " +
			e.Change(screen.SeriesQueued, 5*time.Minute) + "/5m",
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
	sign := e.Paint(theme.Warn, e.Theme.Glyphs.Warning)
	return widget.Cut(" "+e.Head(screen.FeedOverview, "WORK QUEUES")+"  "+sign+" "+e.Count(items)+" items wait in "+
		where+", not dispatched, oldest "+e.AgeOf(&oldest), w)
}

func (o *Overview) workerBlock() []string {
	e, ov := o.env, o.env.Data.Overview
	if ov == nil {
		return []string{e.Dim("WORKERS ") + widget.Unknown}
	}
	c, worst := o.workers(), ""
	t := c.totals
	if at := slices.Index(c.health, monitor.WorkerStale); at >= 0 {
		worst = widget.CutMiddle(widget.Clean(c.list[at].Name), 16) + " " + e.AgeOf(c.list[at].Heartbeat)
	}
	var beat *time.Time
	for _, w := range ov.WorkerList {
		if w.Heartbeat != nil && w.Status == "active" && (beat == nil || w.Heartbeat.Before(*beat)) {
			beat = w.Heartbeat
		}
	}
	line := func(state string, n int64, more string) string {
		return "  " + e.Look(e.Theme.Of(state), "") + " " + e.Num(n) + " " + widget.Left(state, 9) + " " + more
	}
	return []string{
		e.Head(screen.FeedOverview, "WORKERS") + "  " + e.Num(t.Total) + e.Mark(screen.FeedOverview) + o.kept(t, "  "),
		line("active", t.Active, "slots "+e.Num(t.Assigned)+"/"+e.Num(t.Capacity)),
		line("busy", t.Busy, "oldest hb "+e.AgeOf(beat)),
		line("stale", t.Stale, worst),
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

func (o *Overview) stateBlock() []string {
	e, ov := o.env, o.env.Data.Overview
	if ov == nil {
		return []string{" " + e.Dim("EXECUTIONS ") + widget.Unknown}
	}
	line := func(state string, n monitor.Count, more string) string {
		return "   " + e.Look(e.Theme.Of(state), "") + " " + widget.Left(state, 10) + o.number(e.Count(n)) + more
	}
	return []string{
		" " + e.Head(screen.FeedOverview, "EXECUTIONS") + e.Dim("  last "+widget.Short(ov.Recent.Window)),
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
	var ready, unacked int64
	for _, q := range b.Queues {
		ready, unacked = ready+q.Ready, unacked+q.Unacked
	}
	lines := []string{
		e.Head(screen.FeedBroker, "BROKER"),
		"  ready " + widget.Left(e.Num(ready)+mark, 10) + " unacked " + e.Num(unacked) + mark,
	}
	if q, ok := b.Queue(monitor.DeadLetterQueue); ok {
		lines = append(lines, "  "+monitor.DeadLetterQueue+"  "+e.BrokerNum(q, q.Ready)+mark+"  "+
			e.Change(screen.SeriesDead, 5*time.Minute)+"/5m")
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
	blocked := "no" // from publishing
	if b.BlockedUnknown != "" {
		blocked = widget.Unknown
	} else if len(b.Blocked) > 0 {
		blocked = e.Paint(theme.Bad, "■ "+e.Num(int64(len(b.Blocked))))
	}
	wiring := e.CheckSummary(w-3, "topology.") // whether dead letters find their way
	return append(lines, "  alarms "+alarms+"   blocked "+blocked,
		" "+strings.TrimPrefix(wiring[len(wiring)-1], "   "))
}
