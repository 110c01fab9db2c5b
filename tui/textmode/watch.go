package textmode

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/tui/widget"
)

// watch keeps the last reported states.
type watch struct {
	clock func() time.Time
	at    time.Time // of the present reading
	lines []Line

	away        map[string]outage // sources that do not answer
	alerts      map[string]string
	workers     map[string]string
	queues      map[string]string
	asked       map[string]string
	deadLetters string
	note        string
}

type outage struct {
	since time.Time
	fails int
}

func newWatch(clock func() time.Time) *watch {
	return &watch{clock: clock, at: clock(), away: map[string]outage{}}
}

func (w *watch) say(kind, name, text string) {
	w.lines = append(w.lines, Line{At: w.at, Kind: kind, Name: name, Text: text})
}

func (w *watch) drain() []Line {
	lines := w.lines
	w.lines = nil
	return lines
}

// fails is the number of consecutive failures of the database.
func (w *watch) fails() int { return w.away["database"].fails }

// update reports the changes since the last reading. While the database does not answer, its data is not compared.
func (w *watch) update(a *answers) {
	w.at = w.clock()
	if a.overview.err == nil && a.overview.value != nil && !a.overview.value.At.IsZero() {
		w.at = a.overview.value.At
	}
	w.readable("broker", a.broker.err)
	if !w.readable("database", a.overview.err) {
		return
	}
	part(w, "alerts", a.alerts, w.updateAlerts)
	part(w, "workers", a.workers, w.updateWorkers)
	part(w, "queues", a.queues, w.updateQueues)
	part(w, "dead-letters", a.deadLetters, w.updateDeadLetters)
	part(w, "inquiries", a.inquiries, w.updateInquiries)
}

func part[T any](w *watch, what string, a answer[T], update func(T)) {
	if w.readable(what, a.err) {
		update(a.value)
	}
}

// readable reports the beginning and the end of an outage.
func (w *watch) readable(what string, err error) bool {
	before, was := w.away[what]
	switch {
	case err == nil && was:
		delete(w.away, what)
		w.say(what, "", "answers again after "+widget.Age(w.clock().Sub(before.since)))
	case err != nil && !was:
		w.away[what] = outage{w.clock(), 1}
		source := monitor.SourceDatabase
		if what == monitor.SourceBroker {
			source = what
		}
		w.say(what, "", explain.Trouble(source, err).String())
	case err != nil:
		before.fails++
		w.away[what] = before
	}
	return err == nil
}

// compare reports new, changed and removed things. Only a complete list proves a removal.
func (w *watch) compare(kind string, before, now map[string]string, whole bool, gone string) map[string]string {
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if before[name] != now[name] {
			w.say(kind, name, now[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, still := now[name]; still {
			continue
		}
		if !whole {
			now[name] = before[name] // it may be beyond the end of the list
			continue
		}
		w.say(kind, name, gone)
	}
	return now
}

func (w *watch) updateAlerts(a *alerting.Alerts) {
	now := map[string]string{}
	for _, one := range a.Open {
		if one.State != alerting.AlertFiring || one.Behind {
			continue
		}
		name := one.Rule
		if one.Target != "" {
			name += " " + one.Target
		}
		now[name] = "raised, " + string(one.Severity)
		if w.alerts[name] != now[name] {
			w.say("alert", name, now[name]+": "+one.Summary)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.alerts)) {
		if _, still := now[name]; !still {
			w.say("alert", name, "cleared")
		}
	}
	if w.alerts == nil && len(now) == 0 {
		w.say("alert", "", "none is raised")
	}
	if a.Note != w.note && a.Note != "" {
		w.say("alert", "", a.Note)
	}
	w.alerts, w.note = now, a.Note
}

func (w *watch) updateWorkers(d *monitor.Workers) {
	now := map[string]string{}
	for _, one := range d.List {
		now[one.Name] = workerState(one.Health(d.At, d.StaleAfter))
	}
	if w.workers == nil {
		w.say("worker", "", fmt.Sprintf("%d registered, %d take work", d.Totals.Total, d.Totals.Working()))
		w.workers = map[string]string{}
		for name, word := range now {
			if word == workerState(monitor.WorkerActive) {
				w.workers[name] = word // healthy workers are not reported at the start
			}
		}
	}
	w.workers = w.compare("worker", w.workers, now, !d.More, "removed")
}

// workerState describes a worker. Busy counts as active: taken slots change all the time.
func workerState(h monitor.WorkerHealth) string {
	switch h {
	case monitor.WorkerActive, monitor.WorkerBusy:
		return "active"
	case monitor.WorkerStale:
		return "stale: its heartbeat is overdue"
	case monitor.WorkerDeaf:
		return "deaf: it sends heartbeats, but its queue has no consumer"
	case monitor.WorkerSuspect:
		return "suspect: the broker returned what it was handed"
	case monitor.WorkerUnhealthy:
		return "unhealthy: it is given nothing"
	case monitor.WorkerDegraded:
		return "degraded: it is chosen last"
	default:
		return string(h)
	}
}

// updateQueues reports paused and full queues. A queue is full if executions wait although all slots are taken. It
// stays full until none waits, so that a queue at its limit is one line.
func (w *watch) updateQueues(d *monitor.Queues) {
	now := map[string]string{}
	for i := range d.List {
		q := &d.List[i]
		name := q.Name()
		switch {
		case q.Paused:
			now[name] = "paused"
		case q.Limit != nil && q.Active > *q.Limit:
			now[name] = "over its limit"
		case q.Full() && q.Queued > 0:
			now[name] = "at its limit and others wait"
		case q.Queued > 0 && (w.queues[name] == "at its limit and others wait" || w.queues[name] == "over its limit"):
			now[name] = w.queues[name]
		default:
			now[name] = "free"
		}
		if now[name] == "free" && w.queues[name] == "" {
			continue // free queues are not reported when they appear
		}
		if w.queues[name] != now[name] {
			w.say("queue", name, now[name]+queueNumbers(q))
		}
	}
	for name, word := range w.queues {
		if _, still := now[name]; !still && d.More {
			now[name] = word
		}
	}
	w.queues = now
}

func queueNumbers(q *monitor.Queue) string {
	text := fmt.Sprintf(", %d running, %d waiting", q.Active, q.Queued)
	if q.Limit != nil {
		text = ", " + phrase.Plural(*q.Limit, "slot", "slots") + text
	}
	if q.Paused && q.PauseReason != "" {
		text += ": " + q.PauseReason
	}
	return text
}

func (w *watch) updateDeadLetters(d *monitor.DeadLetters) {
	text := "depth unknown"
	switch {
	case d.Queue != nil && !d.Queue.Uncounted:
		text = fmt.Sprintf("%d on the broker", d.Queue.Ready+d.Queue.Unacked)
	case d.QueueMissing:
		text = "the broker has no queue for them"
	}
	if d.Ledger != nil {
		text += ", " + count(d.Ledger.Open) + " wait for a person"
	}
	if text != w.deadLetters {
		w.say("dead-letters", "", text)
	}
	w.deadLetters = text
}

func count(c monitor.Count) string {
	text := strconv.FormatInt(c.Value, 10)
	if c.AtLeast {
		text += " or more"
	}
	return text
}

func (w *watch) updateInquiries(d *monitor.InquiryPage) {
	now := map[string]string{}
	for _, one := range d.List {
		if !one.Open() {
			continue
		}
		text := "waits for an answer: " + one.Prompt
		if one.Assignee != "" {
			text = "waits for " + one.Assignee + ": " + one.Prompt
		}
		now[strconv.FormatInt(one.ID, 10)] = text
	}
	if w.asked == nil && len(now) == 0 {
		w.say("inquiry", "", "none waits")
	}
	w.asked = w.compare("inquiry", w.asked, now, d.Next == "" && !d.Bounded, "no longer open")
}
