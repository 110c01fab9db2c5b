package worker

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// Render draws the view.
func (v *Worker) Render(w, h int) []string {
	e, s := v.env, Find(v.env, v.id)
	v.top = 0
	v.table.Focus(!v.inHistory)
	if e.Data.Workers == nil && Detail(e, v.id) == nil {
		return e.Missing(screen.FeedWorkers, "worker "+strconv.FormatInt(v.id, 10), w)
	}
	if w >= 120 && h >= 20 {
		lw := w * 82 / 140
		left := append(v.head(&s, lw-1, h), v.slots(lw-1, h-10)...)
		v.top = len(left) + 2
		left = append(left, v.running(lw-1, h-len(left))...)
		right := append(QueueLines(e, &s, w-lw-3), "")
		right = append(right, v.history(w-lw-3, h-len(right))...)
		return widget.Beside(left, right, lw, w-lw-2, h, e.Paint(theme.Dim, "│")+" ")
	}
	lines := v.head(&s, w, h)
	if h >= 14 {
		queue := QueueLines(e, &s, w-1)
		queue[0] = " " + queue[0]
		lines = append(lines[:len(lines)-1], append(queue, "")...)
	}
	if v.inHistory {
		return widget.Fit(append(lines, v.history(w, h-len(lines))...), w, h)
	}
	v.top = len(lines) + 2
	foot := v.lastChange()
	room := h - len(lines) - 1
	lines = append(lines, widget.Fit(v.running(w, room), w, max(0, room))...)
	return append(lines, foot)
}

// head says how the worker is, and how it was over the last hour.
func (v *Worker) head(s *Subject, w, h int) []string {
	e := v.env
	look := e.Theme.Of(string(s.Health))
	state := e.Paint(look.Role, look.Glyph+" "+string(s.Health))
	if s.Orphan {
		return append([]string{" " + e.Paint(theme.Bad, e.Theme.Glyphs.Failed+" no row has this id")}, Facts(e, s)...)
	}
	slots := widget.Unknown
	if s.Worker.Assigned != nil {
		slots = screen.Slots(*s.Worker.Assigned, s.Worker.Capacity)
	}
	lines := []string{" " + state + "  slots " + slots + e.Mark(screen.FeedWorkers) + "  status " + orDash(s.Worker.Status) + note(s)}
	lines = append(lines, Strip(e, s.Worker.ID, w)...)
	own := []string{" queue ", " owns ", " history "} // the page has more of these
	facts := slices.DeleteFunc(Facts(e, s), func(line string) bool {
		return slices.ContainsFunc(own, func(word string) bool { return strings.HasPrefix(line, word) })
	})
	return append(append(lines, facts[:min(len(facts), max(2, h/3))]...), "")
}

func note(s *Subject) string {
	switch {
	case s.Worker.Draining:
		return "  draining"
	case s.Worker.Cordoned:
		return "  cordoned " + widget.Clean(s.Worker.CordonReason)
	default:
		return ""
	}
}

// Strip is the last hour of a worker, a cell for each minute.
func Strip(e *screen.Env, id int64, w int) []string {
	lines := []string{widget.Spread(" "+e.Head(screen.FeedWorker, "HEARTBEATS last 60 min"), e.Paint(theme.Dim, "▏ there  . silent  ? not recorded"), w-1)}
	d := Detail(e, id)
	if d == nil {
		return append(lines, " "+e.Paint(theme.Dim, "Reading it …"))
	}
	beats := d.Beats[max(0, len(d.Beats)-max(0, w-2)):]
	var b strings.Builder
	b.WriteByte(' ')
	for _, run := range runsOf(beats) {
		text, role := strings.Repeat("?", run.n), theme.Dim
		switch run.beat {
		case monitor.BeatAlive:
			text, role = strings.Repeat(e.Theme.Glyphs.Beat, run.n), theme.Good
		case monitor.BeatSilent:
			text, role = strings.Repeat(".", run.n), theme.Bad
		case monitor.BeatAbsent:
			text = widget.Blank(run.n)
		case monitor.BeatUnknown:
		}
		b.WriteString(e.Paint(role, text))
	}
	return append(lines, b.String())
}

// run is a row of equal minutes.
type run struct {
	beat monitor.Beat
	n    int
}

func runsOf(beats []monitor.Beat) []run {
	var list []run
	for _, b := range beats {
		if len(list) == 0 || list[len(list)-1].beat != b {
			list = append(list, run{beat: b})
		}
		list[len(list)-1].n++
	}
	return list
}

// slots is the course of the slots taken, where there is room for it.
func (v *Worker) slots(w, h int) []string {
	if h < 18 {
		return nil
	}
	e := v.env
	lines := []string{" " + e.Head(screen.FeedWorkersPast, "SLOTS, 60m")}
	slots := e.Data.History.Trend(screen.WorkerSeries(v.id), time.Hour, e.Points(min(60, w-10)))
	lines = append(lines, widget.Chart(slots, min(w, 70), 5, e.Theme)...)
	return append(lines, "")
}

// running is what the worker has.
func (v *Worker) running(w, h int) []string {
	e, d := v.env, Detail(v.env, v.id)
	if h < 1 {
		return nil
	}
	if d == nil {
		return e.Missing(screen.FeedWorker, "what it has", w)[1:]
	}
	lines := []string{v.heading(!v.inHistory, "ASSIGNED HERE "+total(d), w)}
	if len(v.rows) == 0 {
		return append(lines, " "+e.Paint(theme.Dim, "Nothing."))
	}
	return append(lines, v.table.Lines(w, h-1, e.Theme)...)
}

func total(d *monitor.WorkerDetail) string {
	text := strconv.Itoa(len(d.Running))
	if d.MoreRunning {
		text += "+"
	}
	return text
}

func (v *Worker) heading(lit bool, title string, w int) string {
	role := theme.Dim
	if lit {
		role = theme.Accent
	}
	return widget.Cut(" "+v.env.Paint(role, title)+v.env.Mark(screen.FeedWorker), w-1)
}

// history is what changed of the worker within a day.
func (v *Worker) history(w, h int) []string {
	e, d := v.env, Detail(v.env, v.id)
	if h < 2 || d == nil {
		return nil
	}
	title := "HISTORY, 24h"
	if d.Flaps > 0 {
		title += "  flapped " + strconv.FormatInt(d.Flaps, 10) + "x"
	}
	lines := Changes(e, v.id)
	var shown []string
	shown, v.scroll = widget.Window(lines, v.scroll, h-1, e.Theme)
	return append([]string{v.heading(v.inHistory, title, w)}, shown...)
}

// Changes are the changes of a worker, the newest first.
func Changes(e *screen.Env, id int64) []string {
	d := Detail(e, id)
	if d == nil {
		return nil
	}
	if !d.Recorded {
		return []string{" " + e.Paint(theme.Dim, "Nobody writes down here what changes of workers.")}
	}
	var lines []string
	if s := Find(e, id); s.Health == monitor.WorkerStale && s.Worker.Heartbeat != nil {
		lines = append(lines, " "+when(e, *s.Worker.Heartbeat)+" "+e.Paint(theme.Bad, "heartbeat lost"))
	}
	for _, c := range d.Changes {
		what := widget.Clean(c.What)
		if c.Flap {
			what += " (flap)"
		}
		lines = append(lines, " "+when(e, c.At)+" "+what)
	}
	if len(lines) == 0 {
		return []string{" " + e.Paint(theme.Dim, "Nothing changed.")}
	}
	return lines
}

// when is a time of the last day, with the day where that is not today's.
func when(e *screen.Env, at time.Time) string {
	at, now := at.UTC(), e.Now.UTC()
	if at.YearDay() == now.YearDay() && at.Year() == now.Year() {
		return at.Format("15:04:05")
	}
	return at.Format("01-02 15:04:05")
}

// lastChange is the line below the table of a small screen.
func (v *Worker) lastChange() string {
	e := v.env
	if lines := Changes(e, v.id); len(lines) > 0 {
		return e.Paint(theme.Dim, " history ") + lines[0] + e.Paint(theme.Dim, "  tab shows all")
	}
	return ""
}

// QueueLines are the worker's queue at the broker, and when the message at its head
// expires.
func QueueLines(e *screen.Env, s *Subject, w int) []string {
	lines := []string{e.Head(screen.FeedBroker, "QUEUE")}
	q := s.Queue
	switch {
	case e.Data.Broker == nil:
		return append(lines, " "+e.Paint(theme.Dim, "The broker was not read yet, or does not answer."))
	case q == nil:
		return append(lines, e.Paint(theme.Warn, " ▲ the broker has no queue "+monitor.WorkerQueue(s.Worker.ID)))
	}
	lines = append(lines, " "+counts(e, q))
	ttl, dlx := "no ttl", "no dead-letter exchange"
	if q.TTL != nil {
		ttl = "ttl " + widget.Age(*q.TTL)
	}
	if q.DeadLetterExchange != nil {
		dlx = "dlx " + orDash(*q.DeadLetterExchange)
	}
	head, known := headSince(s)
	text := " " + ttl + "  " + dlx
	if known {
		text += "  head age " + e.AgeOf(&head)
	}
	lines = append(lines, text)
	fate, role := expiry(e, s)
	for _, part := range widget.Hang(" ", fate, w) {
		if fate != "" {
			lines = append(lines, e.Paint(role, part))
		}
	}
	return lines
}

// headSince is since when the message at the head lies there: by the broker, where
// messages say when they were sent, and else by what the engine saw unstarted.
func headSince(s *Subject) (time.Time, bool) {
	switch {
	case s.Queue.Ready == 0:
		return time.Time{}, false
	case s.Queue.Head != nil:
		return *s.Queue.Head, true
	case s.Worker.Probe != nil && s.Worker.Probe.Valid && s.Worker.Probe.Oldest != nil:
		return *s.Worker.Probe.Oldest, true
	default:
		return time.Time{}, false
	}
}

// expiry forecasts when the message at the head is lost to the worker; empty where
// nothing waits, or for ever.
func expiry(e *screen.Env, s *Subject) (string, theme.Role) {
	q := s.Queue
	if q.Uncounted || q.Ready == 0 || q.TTL == nil {
		return "", theme.Plain
	}
	fate := e.Theme.Glyphs.Arrow + " dead letter"
	if q.DeadLetterExchange == nil {
		fate = e.Theme.Glyphs.Arrow + " deleted by the broker: there is no dead-letter exchange"
	}
	head, known := headSince(s)
	if !known {
		return "since when the head waits is not known; after " + widget.Age(*q.TTL) + " " + fate, theme.Dim
	}
	left := *q.TTL - e.Since(head)
	text := "head expires in " + widget.Age(left) + " " + fate
	if left <= 0 {
		text = "head is about to expire " + fate
	}
	if q.Consumers > 0 {
		return text + ", unless it is taken before", theme.Dim
	}
	return e.Theme.Glyphs.Warning + " " + text, theme.Warn
}

// Rule is the line above a preview of a worker.
func Rule(e *screen.Env, s *Subject, w int) string {
	return e.Rule(s.Name(), "id "+strconv.FormatInt(s.Worker.ID, 10)+" · "+orDash(s.Worker.Host)+" · "+orDash(s.Worker.Role), w)
}

// Pane is the preview of a worker below a wide list.
func Pane(e *screen.Env, s *Subject, w, h int) []string {
	rule := Rule(e, s, w)
	if s.Orphan {
		return append([]string{rule}, append(Facts(e, s), QueueLines(e, s, w-1)...)...)
	}
	lw := w * 82 / 140
	left := Strip(e, s.Worker.ID, lw-1)
	left = append(left, Facts(e, s)...)
	if d := Detail(e, s.Worker.ID); d != nil && h-len(left) >= 5 {
		left = append(left, "", " "+e.Paint(theme.Dim, "ASSIGNED HERE "+total(d)))
		if len(d.Running) > 0 {
			t := newTable()
			t.Focus(false)
			t.SetRows(&runs{e, d.Running})
			left = append(left, t.Lines(lw-1, h-1-len(left), e.Theme)...)
		}
	}
	right := append(QueueLines(e, s, w-lw-3), "", e.Paint(theme.Dim, "HISTORY, 24h"))
	right = append(right, Changes(e, s.Worker.ID)...)
	return append([]string{rule}, widget.Beside(left, right, lw, w-lw-2, h-1, e.Paint(theme.Dim, "│")+" ")...)
}

func listed(names []string) string { return orDash(strings.Join(names, ", ")) }
