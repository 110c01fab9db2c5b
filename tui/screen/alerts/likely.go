package alerts

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
)

// assessed is a worker with its health.
type assessed struct {
	monitor.Assessment

	worker *monitor.Worker
}

// assess indexes the workers and queues that may explain alerts, so that a frame only looks them up.
func (v *Alerts) assess() {
	d := v.env.Data
	v.workers, v.queues = map[string]assessed{}, map[string]*monitor.Queue{}
	if d.Alerts == nil {
		return
	}
	broker := v.env.Heard().WorkerQueues()
	add := func(workers []monitor.Worker, at time.Time, queues []monitor.Queue) {
		for i := range workers {
			w := &workers[i]
			v.workers[w.Name] = assessed{Assessment: w.Assess(at, d.StaleAfter(), broker[w.ID]), worker: w}
		}
		for i := range queues {
			v.queues[queues[i].Name()] = &queues[i]
		}
	}
	if d.Queues != nil {
		add(nil, time.Time{}, d.Queues.List)
	}
	if o := d.Overview; o != nil {
		add(o.WorkerList, o.At, o.Top)
	}
	if d.Workers != nil {
		add(d.Workers.List, d.Workers.At, nil)
	}
}

// likely is the probable cause of an alert, or else the purpose of its rule.
func (v *Alerts) likely(a *alerting.Alert, rule *alerting.AlertRule) string {
	why := ""
	switch {
	case strings.HasPrefix(a.Measure, deadLetterMeasures):
		why = v.deadLettersFrom()
	case a.Of == "queue":
		why = v.aboutQueue(a.Target)
	case a.Of == "worker":
		why = v.aboutWorker(a.Target)
	case a.Measure == "execution_timeouts" || a.Measure == "scheduled_overdue" || a.Measure == "stuck_seconds":
		// A lost worker explains executions that never start or end, but no failures.
		why = v.lostWorker()
	}
	if why == "" && rule != nil {
		why = rule.Why
	}
	return why
}

// origin is the worker and reason of most of the newest dead letters; worker is empty if there is none.
type origin struct {
	worker, reason   string
	deadLetters, all int
}

// originOf finds the origin of at least half of the newest dead letters.
func originOf(d *monitor.DeadLetters) (most origin) {
	if d == nil || d.Ledger == nil {
		return origin{}
	}
	counts := map[origin]int{}
	for i := range d.Ledger.Recent {
		l := &d.Ledger.Recent[i]
		at := origin{worker: l.WorkerName, reason: l.Reason}
		if at.worker == "" && l.WorkerID != nil {
			at.worker = "worker " + strconv.FormatInt(*l.WorkerID, 10)
		}
		counts[at]++
		if n := counts[at]; n > most.deadLetters {
			most, most.deadLetters = at, n
		}
	}
	most.all = len(d.Ledger.Recent)
	if most.deadLetters*2 < most.all {
		return origin{}
	}
	return most
}

// deadLettersFrom names the origin of most of the newest dead letters.
func (v *Alerts) deadLettersFrom() string {
	from := v.origin
	if from.worker == "" {
		return ""
	}
	text := fmt.Sprintf("%d of the newest %d dead letters came from %s, reason %s",
		from.deadLetters, from.all, from.worker, from.reason)
	if problem := v.problem(from.worker); problem != "" {
		text = from.worker + " " + problem + "; " + text
	}
	return text
}

// problem says what is wrong with a worker; empty if nothing is known.
func (v *Alerts) problem(name string) string {
	w := v.workers[name]
	switch {
	case w.Health == monitor.WorkerCordoned, w.Health == monitor.WorkerDraining, w.Health == monitor.WorkerInactive:
		return "is " + string(w.Health)
	case w.By == monitor.ByBroker && w.Health == monitor.WorkerSuspect:
		return "is " + w.Why
	case w.Gone() && w.worker.Heartbeat != nil && w.By == monitor.ByHeartbeat:
		return "is " + w.Why
	case w.Gone():
		return w.Why
	default:
		return ""
	}
}

// aboutQueue says what stops a queue.
func (v *Alerts) aboutQueue(name string) string {
	q := v.queues[name]
	switch {
	case q == nil:
		return ""
	case q.Paused:
		return strings.TrimSuffix("it is paused by "+q.PausedBy+": "+q.PauseReason, ": ")
	case q.Blocked != "":
		return q.Blocked
	case q.Full():
		return "all " + screen.Slots(q.Active, q.Limit) + " slots are taken; enter, then tab shows their holders"
	default:
		return ""
	}
}

// aboutWorker says what is wrong with a worker, and what depends on it.
func (v *Alerts) aboutWorker(name string) string {
	w := v.workers[name].worker
	if w == nil {
		return ""
	}
	var parts []string
	if problem := v.problem(name); problem != "" {
		parts = append(parts, "it "+problem)
	}
	if w.Assigned != nil && *w.Assigned > 0 {
		parts = append(parts, "owns "+v.env.Plural(*w.Assigned, "execution", "executions"))
	}
	if q := v.env.Data.Broker.WorkerQueue(w.ID); q != nil && !q.Uncounted && q.Ready > 0 {
		parts = append(parts, v.env.Num(q.Ready)+" wait in "+q.Name+", which has "+v.env.Consumers(q))
	}
	return strings.Join(parts, "; ")
}

// lostWorker names the first worker that has executions and a problem.
func (v *Alerts) lostWorker() string {
	o := v.env.Data.Overview
	if o == nil {
		return ""
	}
	for i := range o.WorkerList {
		if w := &o.WorkerList[i]; w.Assigned != nil && *w.Assigned > 0 {
			if problem := v.problem(w.Name); problem != "" {
				return w.Name + " " + problem + ", and owns " + v.env.Plural(*w.Assigned, "execution", "executions")
			}
		}
	}
	return ""
}

// tries are the next steps by the view that the alert opens.
var tries = map[screen.View]string{
	keymap.InDeadLetters: "enter opens the dead letters · there a groups them · R plans a requeue",
	keymap.InQueues:      "enter shows the queue · enter again its slot holders and waiting executions",
	keymap.InWorkers:     "enter shows the worker · A drains it or gives its work to others",
	keymap.InExecutions:  "enter lists them · enter again and W says why one waits",
	keymap.InOverview:    "enter shows the overview with the engine's replicas",
	keymap.InBroker:      "enter shows the broker's queues and how they are wired",
}

// advice is the next step for an alert.
func (v *Alerts) advice(a *alerting.Alert) string {
	text := tries[screen.View(a.View)]
	if w, ok := v.workers[a.Target]; a.Of == "worker" && ok {
		switch w.Health {
		case monitor.WorkerStale, monitor.WorkerInactive:
			text = "enter shows the worker · if its process is gone, A forgets it"
		case monitor.WorkerDraining, monitor.WorkerCordoned:
			text = "enter shows the worker · A gives it work again"
		default:
		}
	}
	if a.Of == "worker" || a.Of == "queue" {
		text += " · o leads to its executions and dead letters"
	}
	return text
}
