package worker

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/list"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// Render draws the view.
func (v *Worker) Render(w, h int) []string {
	lines, _, _ := v.draw(w, h)
	return lines
}

// Places is where the table is drawn.
func (v *Worker) Places(w, h int) screen.Places {
	_, places, _ := v.draw(w, h)
	return places
}

// draw draws the view and says where its table is, and how high the history.
func (v *Worker) draw(w, h int) (lines []string, places screen.Places, history int) {
	at := screen.Place{Table: v.running.Table, Focus: func() { v.turnTo(false) }}
	e, j := v.env, &v.assessed
	if e.Data.Workers == nil && Detail(e, v.id) == nil {
		return e.Missing(screen.FeedWorkers, "worker "+strconv.FormatInt(v.id, 10), w), nil, 0
	}
	if w >= 120 && h >= 20 {
		lw, rw := screen.Halves(w)
		left := append(v.head(lw-1, h), v.slots(lw-1, h-10)...)
		at.Top, at.W, at.H = len(left)+1, lw-1, h-len(left)-1
		left = append(left, v.assigned(lw-1, h-len(left))...)
		right := append(queueLines(e, j, rw-1), "")
		history = h - len(right)
		return e.Beside(left, append(right, v.history(rw-1, history)...), w, h), screen.Places{at}, history
	}
	lines = v.head(w, h)
	if h >= 14 {
		queue := queueLines(e, j, w-1)
		queue[0] = " " + queue[0]
		lines = append(lines[:len(lines)-1], append(queue, "")...)
	}
	room := h - len(lines)
	if v.inHistory {
		return widget.Fit(append(lines, v.history(w, room)...), w, h), nil, room
	}
	foot := ""
	if last := changes(e, j); len(last) > 0 {
		foot = e.Dim(" history ") + last[0] + e.Dim("  tab shows all")
	}
	at.Top, at.W, at.H = len(lines)+1, w, room-2
	return append(append(lines, widget.Fit(v.assigned(w, room-1), w, max(0, room-1))...), foot), screen.Places{at}, 0
}

// head is the state of the worker, its last hour, and the facts that have room.
func (v *Worker) head(w, h int) []string {
	e, j := v.env, &v.assessed
	if j.Orphan {
		sign := e.Paint(theme.Bad, e.Theme.Glyphs.Failed+" no row has this id")
		return append([]string{" " + sign}, facts(e, j, true)...)
	}
	slots, note := widget.Unknown, ""
	if j.Assigned != nil {
		slots = screen.Slots(*j.Assigned, j.Capacity)
	}
	switch {
	case j.Draining:
		note = "  draining"
	case j.Cordoned:
		note = "  cordoned " + widget.Clean(j.CordonReason)
	}
	lines := []string{" " + e.State(string(j.Seen.Health)) + "  slots " + slots + e.Mark(screen.FeedWorkers) +
		"  status " + orDash(j.Status) + note}
	lines = append(lines, strip(e, j.ID, w)...)
	about := facts(e, j, true)
	return append(append(lines, about[:min(len(about), max(2, h/3))]...), "")
}

// strip shows the heartbeats of the last hour, a cell for each minute.
func strip(e *screen.Env, id int64, w int) []string {
	lines := []string{widget.Spread(" "+e.Head(screen.FeedWorker, "HEARTBEATS last 60 min"),
		e.Dim("▏ there  . silent  ? not recorded"), w-1)}
	d := Detail(e, id)
	if d == nil {
		return append(lines, " "+e.Dim("Reading it …"))
	}
	beats := d.Beats[max(0, len(d.Beats)-max(0, w-2)):]
	var b strings.Builder
	b.WriteByte(' ')
	for len(beats) > 0 { // a run of equal minutes is painted at once
		n := slices.IndexFunc(beats, func(one monitor.Beat) bool { return one != beats[0] })
		if n < 0 {
			n = len(beats)
		}
		text, role := strings.Repeat("?", n), theme.Dim
		switch beats[0] {
		case monitor.BeatAlive:
			text, role = strings.Repeat(e.Theme.Glyphs.Beat, n), theme.Good
		case monitor.BeatSilent:
			text, role = strings.Repeat(".", n), theme.Bad
		case monitor.BeatAbsent:
			text = widget.Blank(n)
		case monitor.BeatUnknown:
		}
		b.WriteString(e.Paint(role, text))
		beats = beats[n:]
	}
	return append(lines, b.String())
}

// slots is the chart of the slots taken, if it has room.
func (v *Worker) slots(w, h int) []string {
	if h < 18 {
		return nil
	}
	e := v.env
	trend := e.Data.History.Trend(screen.WorkerSeries(v.id), time.Hour, e.Points(min(60, w-10)))
	title := "SLOTS, 60m"
	if e.Data.History.Gaps(screen.WorkerSeries(v.id), time.Hour) {
		title += screen.Gaps
	}
	lines := []string{" " + e.Head(screen.FeedWorkersPast, title)}
	return append(append(lines, widget.Chart(trend, min(w, 70), 5, e.Theme)...), "")
}

// assigned are the executions of the worker.
func (v *Worker) assigned(w, h int) []string {
	e, d := v.env, Detail(v.env, v.id)
	if h < 1 {
		return nil
	}
	if d == nil {
		return e.Missing(screen.FeedWorker, "its executions", w)[1:]
	}
	lines := []string{v.heading(!v.inHistory, "ASSIGNED HERE "+total(d), w)}
	if v.running.Len() == 0 {
		return append(lines, " "+e.Dim("No execution."))
	}
	return append(lines, v.running.Lines(w, h-1, e.Theme)...)
}

func total(d *monitor.WorkerDetail) string {
	if d.MoreRunning {
		return strconv.Itoa(len(d.Running)) + "+"
	}
	return strconv.Itoa(len(d.Running))
}

func (v *Worker) heading(lit bool, title string, w int) string {
	return v.env.PaneRule(lit, title+v.env.Mark(screen.FeedWorker), "", w)
}

// history lists the changes of the worker within a day.
func (v *Worker) history(w, h int) []string {
	e, d := v.env, Detail(v.env, v.id)
	if h < 2 || d == nil {
		return nil
	}
	title := "HISTORY, 24h"
	if d.Flaps > 0 {
		title += "  flapped " + strconv.FormatInt(d.Flaps, 10) + "x"
	}
	lines := []string{v.heading(v.inHistory, title, w)}
	return append(lines, v.scroll.Window(changes(e, &v.assessed), h-1, e.Theme)...)
}

// changes are the changes of a worker, the newest first.
func changes(e *screen.Env, j *Assessed) []string {
	d := Detail(e, j.ID)
	if d == nil {
		return nil
	}
	if !d.Recorded {
		return []string{" " + e.Dim("Changes of workers are not recorded here.")}
	}
	var lines []string
	if j.Seen.Health == monitor.WorkerStale && j.Heartbeat != nil {
		lines = append(lines, " "+when(e, *j.Heartbeat)+" "+e.Paint(theme.Bad, "heartbeat lost"))
	}
	for _, c := range d.Changes {
		what := widget.Clean(c.What)
		if c.Flap {
			what += " (flap)"
		}
		lines = append(lines, " "+when(e, c.At)+" "+what)
	}
	if len(lines) == 0 {
		return []string{" " + e.Dim("No change.")}
	}
	return lines
}

// when is a time of the last day, with its date unless it is today.
func when(e *screen.Env, at time.Time) string {
	at, now := at.UTC(), e.Now.UTC()
	if at.YearDay() == now.YearDay() && at.Year() == now.Year() {
		return at.Format("15:04:05")
	}
	return at.Format("01-02 15:04:05")
}

// queueLines describe the queue of the worker at the broker, and when the message at its head expires.
func queueLines(e *screen.Env, j *Assessed, w int) []string {
	lines := []string{e.Head(screen.FeedBroker, "QUEUE")}
	q := j.Queue
	switch {
	case e.Data.Broker == nil:
		return append(lines, " "+e.Dim("The broker was not read yet, or does not answer."))
	case q == nil:
		return append(lines, e.Paint(theme.Warn, " ▲ the broker has no queue "+monitor.WorkerQueue(j.ID)))
	}
	text := " no ttl"
	if q.TTL != nil {
		text = " ttl " + widget.Age(*q.TTL)
	}
	if q.DeadLetterExchange != nil {
		text += "  dlx " + orDash(*q.DeadLetterExchange)
	} else {
		text += "  no dead-letter exchange"
	}
	if head := headSince(j); head != nil {
		text += "  head age " + e.AgeOf(head)
	}
	lines = append(lines, " "+counts(e, q), text)
	fate, role := expiry(e, j)
	if fate == "" {
		return lines
	}
	for _, part := range widget.Hang(" ", fate, w) {
		lines = append(lines, e.Paint(role, part))
	}
	return lines
}

// headSince is the time of the message at the head of the queue, nil if unknown. The broker knows it if
// messages carry a timestamp; else the probe knows the oldest unstarted execution.
func headSince(j *Assessed) *time.Time {
	switch probe := j.Probe; {
	case j.Queue.Ready == 0:
		return nil
	case j.Queue.Head != nil:
		return j.Queue.Head
	case probe != nil && probe.Valid:
		return probe.Oldest
	default:
		return nil
	}
}

// expiry forecasts when the message at the head expires; empty if no message waits or none expires.
func expiry(e *screen.Env, j *Assessed) (string, theme.Role) {
	q := j.Queue
	if q.Uncounted || q.Ready == 0 || q.TTL == nil {
		return "", theme.Plain
	}
	fate := e.Theme.Glyphs.Arrow + " dead letter"
	if q.DeadLetterExchange == nil {
		fate = e.Theme.Glyphs.Arrow + " deleted by the broker: there is no dead-letter exchange"
	}
	head := headSince(j)
	if head == nil {
		return "the age of the head is unknown; after " + widget.Age(*q.TTL) + " " + fate, theme.Dim
	}
	left := *q.TTL - e.Since(*head)
	text := "head expires in " + widget.Age(left) + " " + fate
	if left <= 0 {
		text = "head is about to expire " + fate
	}
	if q.Consumers > 0 {
		return text + ", unless it is taken before", theme.Dim
	}
	return e.Theme.Glyphs.Warning + " " + text, theme.Warn
}

// Preview is a worker below a list: its facts, and on a wide screen its executions, queue and history.
type Preview struct {
	env     *screen.Env
	running *list.Table[monitor.WorkerRun]
}

// NewPreview makes a preview of the worker that FeedWorker reads.
func NewPreview(env *screen.Env) *Preview {
	p := &Preview{env: env, running: newRunning(env)}
	p.running.Focus(false)
	return p
}

// Changed takes over new data.
func (p *Preview) Changed(feed screen.Feed) {
	if d := p.env.Data.Worker; feed == screen.FeedWorker && d != nil {
		p.running.Anew(true) // its cursor stays on the first row
		p.running.SetList(d.Running)
	}
}

// Lines draws the preview of a worker.
func (p *Preview) Lines(j *Assessed, wide bool, w, h int) []string {
	e := p.env
	about := "id " + strconv.FormatInt(j.ID, 10) + " · " + orDash(j.Host) + " · " + orDash(j.Role)
	rule, all := []string{e.Rule(j.Title(), about, w)}, facts(e, j, false)
	switch {
	case !wide:
		return append(rule, all...)
	case j.Orphan:
		return append(rule, append(all, queueLines(e, j, w-1)...)...)
	}
	lw, rw := screen.Halves(w)
	left := append(strip(e, j.ID, lw-1), all...)
	if d := Detail(e, j.ID); d != nil && h-len(left) >= 5 {
		left = append(left, "", " "+e.Dim("ASSIGNED HERE "+total(d)))
		if len(d.Running) > 0 {
			left = append(left, p.running.Lines(lw-1, h-1-len(left), e.Theme)...)
		}
	}
	right := append(queueLines(e, j, rw-1), "", e.Dim("HISTORY, 24h"))
	return append(rule, e.Beside(left, append(right, changes(e, j)...), w, h-1)...)
}
