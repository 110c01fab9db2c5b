// Package overview is the first view: the whole installation on one page, with its problems.
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

// Overview is the view. Its cursor moves in the findings and, in a wide window, in the lists beside them.
type Overview struct {
	env    *screen.Env
	cursor int // in the findings
	part   part
	tables [parts]*widget.Table
	totals monitor.WorkerTotals
	// queues begin with the longest wait of a head, the queues of the broker with the most pressing one.
	queues  *list.Table[queue]
	workers *list.Table[worker]
	broker  *list.Table[monitor.BrokerQueue]
}

// queue is an action queue with its cleaned name.
type queue struct {
	monitor.Queue

	name string
}

// worker is a worker with its health at the last reading.
type worker struct {
	monitor.Worker

	health monitor.WorkerHealth
}

// New makes the view.
func New(env *screen.Env) *Overview {
	o := &Overview{env: env}
	o.newTables()
	return o
}

// View is the name of the screen.
func (o *Overview) View() screen.View { return keymap.InOverview }

// Feeds are the feeds to poll while the view is open.
func (o *Overview) Feeds() []screen.Feed {
	feeds := []screen.Feed{screen.FeedOverview, screen.FeedChecks, screen.FeedPast}
	if o.trends() {
		feeds = append(feeds, screen.FeedQueuesPast, screen.FeedWorkersPast)
	}
	return feeds
}

// trends reports whether the window has room for the lists with trends.
func (o *Overview) trends() bool { return o.env.Width >= 120 && o.env.Height >= 25 }

// Behind names the history that the trends still need. The present state is read first.
func (o *Overview) Behind() screen.Feed {
	switch {
	case !o.trends() || o.env.Data.Overview == nil:
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

// Changed sorts and judges new data, and keeps the cursor inside the findings.
func (o *Overview) Changed(feed screen.Feed) {
	d := o.env.Data
	if feed == screen.FeedOverview && d.Overview != nil {
		var top []queue
		for _, q := range d.Overview.Top {
			top = append(top, queue{Queue: q, name: widget.Clean(screen.QueueName(&q))})
		}
		wait := list.OldestFirst(func(q *queue) *time.Time { return q.Oldest })
		slices.SortStableFunc(top, func(a, b queue) int { return wait(o.env, &a, &b) })
		put(o.queues, top)
	}
	if feed == screen.FeedBroker && d.Broker != nil {
		queues := slices.Clone(d.Broker.Queues)
		slices.SortStableFunc(queues, func(x, y monitor.BrokerQueue) int { return monitor.ComparePressing(&x, &y) })
		put(o.broker, queues)
	}
	if ov := d.Overview; ov != nil && (feed == screen.FeedOverview || feed == screen.FeedBroker) {
		var assessed []worker
		totals, all := ov.Assessed(o.env.Heard())
		for i := range all {
			assessed = append(assessed, worker{all[i], o.env.Assess(&all[i], ov.At).Health})
		}
		o.totals = totals
		put(o.workers, assessed)
	}
	o.move(0)
}

// put replaces the rows of a table. A cursor that was not moved stays on the first one.
func put[R any](t *list.Table[R], rows []R) {
	t.Anew(true)
	t.SetList(rows)
}

// Do moves the cursor and opens the row under it.
func (o *Overview) Do(action keymap.Action) screen.Effect {
	switch action {
	case keymap.RowDown, keymap.RowUp, keymap.Top, keymap.Bottom:
		if table := o.tables[o.here()]; table != nil {
			screen.MoveTable(table, action)
			break
		}
		const far = 1 << 20 // longer than any list
		o.move(map[keymap.Action]int{keymap.RowDown: 1, keymap.RowUp: -1, keymap.Top: -far, keymap.Bottom: far}[action])
	case keymap.NextPane, keymap.PrevPane:
		if !o.trends() {
			return screen.Effect{
				Handled: true, Note: "The lists beside NEEDS ATTENTION need a window of at least 120 columns.",
			}
		}
		o.turn(map[keymap.Action]part{keymap.NextPane: 1, keymap.PrevPane: parts - 1}[action])
	case keymap.Open:
		return o.open()
	default:
		return screen.Effect{}
	}
	return screen.Effect{Handled: true}
}

func (o *Overview) move(n int) {
	o.cursor = max(0, min(o.cursor+n, len(o.env.Findings())-1))
}

// open turns to the row under the cursor.
func (o *Overview) open() screen.Effect {
	thing, _ := o.Shows()
	switch v := thing.Value.(type) {
	case monitor.Queue:
		return screen.OpenQueue(v.ID)
	case monitor.Worker:
		return screen.OpenWorker(v.ID)
	case monitor.BrokerQueue:
		return screen.OpenRow(keymap.InBroker, thing.ID)
	case alerting.Finding:
		switch here := v.Target == "" || screen.View(v.Target) == o.View(); {
		case here && v.Rule != "":
			return screen.OpenRow(keymap.InAlerts, screen.AlertKey(v.Rule, v.About))
		case here:
			return screen.Effect{Handled: true, Note: "No other view shows more about this."}
		default:
			return screen.OpenList(screen.View(v.Target), v.Filter)
		}
	}
	note := "This list is empty."
	if o.here() == findings {
		_, note = o.env.Calm()
	}
	return screen.Effect{Handled: true, Note: note}
}

// Len is the number of findings.
func (o *Overview) Len() int { return len(o.env.Findings()) }

// Key identifies a finding.
func (o *Overview) Key(i int) string { return o.env.Findings()[i].Text }

// Thing is a finding for the clipboard and for files.
func (o *Overview) Thing(i int) screen.Thing {
	f := o.env.Findings()[i]
	return screen.Thing{Name: "finding", ID: f.Text, Value: f, Command: []string{"alerts", "list"}}
}

// Shows is the row under the cursor.
func (o *Overview) Shows() (screen.Thing, bool) {
	of, q, w, b := o.here(), o.queues.Current(), o.workers.Current(), o.broker.Current()
	switch {
	case of == findings && o.cursor < o.Len():
		return o.Thing(o.cursor), true
	case of == topQueues && q != nil:
		return screen.QueueThing(&q.Queue, q.Queue), true
	case of == workers && w != nil:
		return screen.WorkerThing(&w.Worker, w.Worker), true
	case of == brokerQueues && b != nil:
		return screen.BrokerQueueThing(*b), true
	default:
		return screen.Thing{}, false
	}
}

// Select puts the cursor on the finding drawn at a line.
func (o *Overview) Select(line int) bool {
	_, page := o.draw(o.env.Width, o.env.Height)
	at := page.shown + (line-page.first)/max(1, page.each)
	if line < page.first || at >= o.Len() {
		return false
	}
	o.cursor = at
	o.focus(findings)
	return true
}

// page says where the findings are drawn: the line of the first, the lines of each, and the index of the first.
type page struct {
	first, each, shown int
}

// Render draws the view.
func (o *Overview) Render(w, h int) []string {
	lines, _ := o.draw(w, h)
	return lines
}

// draw draws the view and says what is drawn where.
func (o *Overview) draw(w, h int) ([]string, page) {
	if o.env.Data.Overview == nil && o.env.Data.Broker == nil {
		return append(o.env.Missing(screen.FeedOverview, "the overview", w),
			o.env.Missing(screen.FeedBroker, "the broker", w)...), page{}
	}
	if w >= 120 && h >= 25 {
		return o.wide(w, h)
	}
	lines := []string{widget.Cut(o.numbers(), w)}
	if w >= 76 && h >= 17 {
		lines = o.narrow(w)
	}
	attention := widget.Spread(o.env.Dim("NEEDS ATTENTION"), o.env.Dim("enter = jump"), w-2)
	lines = append(lines, " "+attention)
	at := page{first: len(lines), each: 1}
	var drawn []string
	drawn, at.shown = o.findings(w, h-len(lines))
	return append(lines, drawn...), at
}

// numbers is one line for a window without room for the blocks.
func (o *Overview) numbers() string {
	e, rates := o.env, " done "+o.env.DonePerMinute()+"  fail "+o.failRate()+"  dlq "+o.deadDepth()
	if ov := e.Data.Overview; ov != nil {
		mark := e.Mark(screen.FeedOverview)
		return " queued " + e.Num(ov.Queues.Queued) + mark + "  running " + e.Num(ov.Queues.Active) + mark + " " + rates
	}
	return rates
}

func (o *Overview) narrow(w int) []string {
	lw := w / 2
	lines := []string{o.throughputLine(w), ""}
	if engine := o.env.EngineLine(w - 2); engine != "" {
		lines[1] = " " + engine
	}
	beside := func(left, right []string) []string {
		return widget.Beside(left, right, lw, w-lw, max(len(left), len(right)), "")
	}
	queues, workers := o.known(" QUEUES", o.queueBlock), o.known("WORKERS", o.workerBlock)
	lines = append(append(lines, beside(queues, workers)...), o.itemsLine(w)) // or an empty line
	states := o.known(" EXECUTIONS", o.stateBlock)
	return append(append(lines, beside(states, o.brokerBlock(w-lw))...), "")
}

// known draws a block of the overview feed, or only its title until that was read.
func (o *Overview) known(title string, block func() []string) []string {
	if o.env.Data.Overview == nil {
		return []string{o.env.Dim(title+" ") + widget.Unknown}
	}
	return block()
}

// throughputLine is the chart of the last hour and the rates in one line.
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
	return widget.Right(text+o.env.Mark(screen.FeedOverview), 8)
}

func (o *Overview) queueBlock() []string {
	e, ov := o.env, o.env.Data.Overview
	q := ov.Queues
	oldest, name := "-", "no execution waits"
	if top := o.queues.List; len(top) > 0 && top[0].Oldest != nil {
		oldest, name = e.AgeOf(top[0].Oldest), widget.Cut(top[0].name, 20)
	}
	return []string{
		" " + e.Head(screen.FeedOverview, "QUEUES") + "  " + e.Num(q.Busy) + " busy of " + e.Num(q.Queues),
		"   queued " + o.number(e.Num(q.Queued)) + "  " + e.Spark(screen.SeriesQueued, 15*time.Minute, 7) + " " +
			e.Change(screen.SeriesQueued, 5*time.Minute) + "/5m",
		"   running" + o.number(e.Num(q.Active)) + "  · " + e.Plural(q.Slots, "limited slot", "limited slots"),
		"   oldest " + o.number(oldest) + "  " + name,
	}
}

// itemsLine counts the waiting items of work queues; empty if there are none.
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
	wait := " items wait in "
	if items.Value == 1 {
		wait = " item waits in "
	}
	return widget.Cut(" "+e.Head(screen.FeedOverview, "WORK QUEUES")+"  "+sign+" "+e.Count(items)+wait+
		where+", not dispatched, oldest "+e.AgeOf(&oldest), w)
}

func (o *Overview) workerBlock() []string {
	e, ov := o.env, o.env.Data.Overview
	t, worst, list := o.totals, "", o.workers.List
	if at := slices.IndexFunc(list, func(w worker) bool { return w.health == monitor.WorkerStale }); at >= 0 {
		w := &list[at]
		worst = widget.CutMiddle(widget.Clean(w.Name), 16) + " " + e.AgeOf(w.Heartbeat)
	}
	var beat *time.Time
	for _, w := range ov.WorkerList {
		if w.Heartbeat != nil && w.Status == "active" && (beat == nil || w.Heartbeat.Before(*beat)) {
			beat = w.Heartbeat
		}
	}
	line := func(state, name string, n int64, more string) string {
		return "  " + e.Look(e.Theme.Of(state), "") + " " + e.Num(n) + " " + widget.Left(name, 9) + " " + more
	}
	return []string{
		e.Head(screen.FeedOverview, "WORKERS") + "  " +
			e.Num(t.Total) + e.Mark(screen.FeedOverview) + o.others(t, "  "),
		line("active", "active", t.Active, "slots "+e.Num(t.Assigned)+"/"+e.Num(t.Capacity)),
		line("busy", "full", t.Busy, "oldest hb "+e.AgeOf(beat)),
		line("stale", "stale", t.Stale, worst),
	}
}

// others counts the workers that are neither active nor full nor stale; empty if there are none.
func (o *Overview) others(t monitor.WorkerTotals, before string) string {
	var parts []string
	words := []string{"deaf", "suspect", "unhealthy", "degraded", "cordoned", "inactive"}
	for i, n := range []int64{t.Deaf, t.Suspect, t.Unhealthy, t.Degraded, t.Cordoned, t.Inactive} {
		if n > 0 {
			parts = append(parts, o.env.Num(n)+" "+words[i])
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return before + strings.Join(parts, " · ")
}

func (o *Overview) stateBlock() []string {
	e, ov := o.env, o.env.Data.Overview
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
	state := func(unknown, none, found string, n int) string {
		switch {
		case n > 0:
			return e.Paint(theme.Bad, "■ "+found)
		case unknown != "":
			return widget.Unknown
		default:
			return none
		}
	}
	alarms := state(b.AlarmsUnknown, "none", widget.Clean(strings.Join(b.Alarms, " ")), len(b.Alarms))
	blocked := state(b.BlockedUnknown, "no", e.Num(int64(len(b.Blocked))), len(b.Blocked))
	wiring := e.CheckSummary(w-3, "topology.")
	return append(lines, "  alarms "+alarms+"   blocked "+blocked,
		" "+strings.TrimPrefix(wiring[len(wiring)-1], "   "))
}
