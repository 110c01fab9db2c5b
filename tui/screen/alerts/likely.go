package alerts

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
)

// likely is what probably lies behind an alert, by what else was read; without that,
// what the rule means.
func (v *Alerts) likely(a *alerting.Alert, rule *alerting.AlertRule) string {
	why := ""
	switch {
	case strings.HasPrefix(a.Measure, letterMeasures):
		why = v.lettersFrom()
	case a.Of == "queue":
		why = v.behindQueue(a.Target)
	case a.Of == "worker":
		why = v.behindWorker(a.Target)
	case slices.Contains(byWorkers, a.Measure):
		why = v.silentWorkers()
	}
	if why == "" && rule != nil {
		why = rule.Why
	}
	return why
}

// byWorkers are the measures of executions that their workers do not begin or end. A worker
// that is gone explains these; it does not explain that executions fail.
var byWorkers = []string{"execution_timeouts", "scheduled_overdue", "stuck_seconds"}

// origin is where most of the newest letters came from, and for which reason they died: so many of
// all. Nothing is known of it while there is no worker.
type origin struct {
	worker, reason string
	letters, all   int
}

// originOf finds where most of the newest letters came from.
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
		if n := counts[at]; n > most.letters {
			most, most.letters = at, n
		}
	}
	most.all = len(d.Ledger.Recent)
	if most.letters*2 < most.all {
		return origin{}
	}
	return most
}

// lettersFrom says where most of the newest letters came from.
func (v *Alerts) lettersFrom() string {
	from := v.letters
	if from.worker == "" {
		return ""
	}
	text := fmt.Sprintf("%d of the newest %d dead letters came from %s, reason %s",
		from.letters, from.all, from.worker, from.reason)
	if ill := v.illness(from.worker); ill != "" {
		text = from.worker + " " + ill + "; " + text
	}
	return text
}

// illness says what is wrong with a worker; empty when nothing is known to be.
func (v *Alerts) illness(name string) string {
	w, at := v.worker(name)
	if w == nil {
		return ""
	}
	switch j := v.env.Judge(w, at); {
	case j.Health == monitor.WorkerCordoned, j.Health == monitor.WorkerDraining, j.Health == monitor.WorkerInactive:
		return "is " + string(j.Health)
	case j.By == monitor.ByBroker && j.Health == monitor.WorkerSuspect:
		return "is " + j.Why
	case j.Gone() && w.Heartbeat != nil && j.By == monitor.ByHeartbeat:
		return "is " + j.Why
	case j.Gone():
		return j.Why
	default:
		return ""
	}
}

// worker finds a worker by its name, and when it was read.
func (v *Alerts) worker(name string) (*monitor.Worker, time.Time) {
	named := func(list []monitor.Worker) int {
		return slices.IndexFunc(list, func(w monitor.Worker) bool { return w.Name == name })
	}
	if d := v.env.Data.Workers; d != nil {
		if at := named(d.List); at >= 0 {
			return &d.List[at], d.At
		}
	}
	if d := v.env.Data.Overview; d != nil {
		if at := named(d.WorkerList); at >= 0 {
			return &d.WorkerList[at], d.At
		}
	}
	return nil, time.Time{}
}

// behindQueue says what keeps a queue from moving.
func (v *Alerts) behindQueue(name string) string {
	q := v.queue(name)
	switch {
	case q == nil:
		return ""
	case q.Paused:
		return strings.TrimSuffix("it is paused by "+q.PausedBy+": "+q.PauseReason, ": ")
	case q.Blocked != "":
		return q.Blocked
	case q.Limit != nil && q.Active >= *q.Limit:
		return "all " + screen.Slots(q.Active, q.Limit) + " slots are taken; enter, then tab shows who holds them"
	default:
		return ""
	}
}

func (v *Alerts) queue(name string) *monitor.Queue {
	d := v.env.Data
	var lists [2][]monitor.Queue
	if d.Overview != nil {
		lists[0] = d.Overview.Top
	}
	if d.Queues != nil {
		lists[1] = d.Queues.List
	}
	for _, list := range lists {
		for i := range list {
			if list[i].Name() == name {
				return &list[i]
			}
		}
	}
	return nil
}

// behindWorker says how a worker is, and what waits for it.
func (v *Alerts) behindWorker(name string) string {
	w, _ := v.worker(name)
	if w == nil {
		return ""
	}
	var parts []string
	if ill := v.illness(name); ill != "" {
		parts = append(parts, "it "+ill)
	}
	if w.Assigned != nil && *w.Assigned > 0 {
		parts = append(parts, "owns "+v.env.Plural(*w.Assigned, "execution", "executions"))
	}
	if q, ok := v.env.Data.Broker.Queue(monitor.WorkerQueue(w.ID)); ok && !q.Uncounted && q.Ready > 0 {
		parts = append(parts, v.env.Num(q.Ready)+" wait in "+q.Name+", which has "+v.env.Consumers(&q))
	}
	return strings.Join(parts, "; ")
}

// silentWorkers says which workers take what they were handed to nowhere.
func (v *Alerts) silentWorkers() string {
	o := v.env.Data.Overview
	if o == nil {
		return ""
	}
	for i := range o.WorkerList {
		if w := &o.WorkerList[i]; w.Assigned != nil && *w.Assigned > 0 {
			if ill := v.illness(w.Name); ill != "" {
				return w.Name + " " + ill + ", and owns " + v.env.Plural(*w.Assigned, "execution", "executions")
			}
		}
	}
	return ""
}

// tries are the keys that lead on, by the view that an alert leads to.
var tries = map[screen.View]string{
	keymap.InDeadLetters: "enter opens the dead letters · there a groups them · R plans a requeue",
	keymap.InQueues:      "enter shows the queue · enter again who holds its slots and who waits",
	keymap.InWorkers:     "enter shows the worker · A drains it or gives its work to others",
	keymap.InExecutions:  "enter lists them · enter again and W says why one waits",
	keymap.InOverview:    "enter shows the overview with the engine's replicas",
	keymap.InBroker:      "enter shows the broker's queues and how they are wired",
}

func (v *Alerts) try(a *alerting.Alert) string {
	text := tries[screen.View(a.View)]
	if w, at := v.worker(a.Target); a.Of == "worker" && w != nil {
		switch v.env.Judge(w, at).Health {
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
