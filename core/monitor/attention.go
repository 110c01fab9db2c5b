package monitor

import (
	"time"

	"github.com/attune-go/attune/core/config"
)

// Finding is one thing that needs a person's attention.
type Finding struct {
	Level Level  `json:"level"`
	Text  string `json:"text"`
	// Hint is what to look at or to do next.
	Hint string `json:"hint,omitempty"`
	// Since is when it began, where that is known.
	Since *time.Time `json:"since,omitempty"`
	// Target is the view that shows more, by its name.
	Target string `json:"target"`
	// Filter narrows the target to what the finding is about.
	Filter string `json:"filter,omitempty"`
	// Rule is the name of the alert rule that says so, and About the queue, worker or
	// what else it says so of; empty for the installation as a whole.
	Rule  string `json:"rule,omitempty"`
	About string `json:"about,omitempty"`
}

// brokerMeasures are those that the dashboard's own look at the broker adds to what
// the engine has evaluated.
var brokerMeasures = []string{"broker_alarms"}

// Attention is what needs attention, the worst first: the alerts, if a live replica
// evaluates them or this program has; else the same rules, evaluated by what the
// overview and the broker tell, without waiting for as long as they ask. It adds open
// inquiries and paused and failed workflows, whatever the rules. It is a pure function:
// either argument may be nil, and growth is the change of the dead-letter depth over
// the last minutes, nil while that is unknown.
func Attention(o *Overview, b *Broker, growth *int64) []Finding {
	instant := instantMeasures(o, b, growth)
	rules := Rules(config.Default().Alerts)
	if o != nil && o.rules != nil {
		rules = o.rules
	}
	if o == nil || o.Alerts == nil || !o.Alerts.Evaluated && !o.Alerts.Judged {
		return withFlows(findings(worstFirst(Judge(rules, instant))), o)
	}
	only := newMeasures()
	for _, name := range brokerMeasures {
		if instant.Known(name) && !o.Alerts.knows(name) {
			only.Samples[name] = instant.Samples[name]
		}
	}
	return withFlows(findings(worstFirst(append(o.Alerts.verdicts(), Judge(rules, only)...))), o)
}

func findings(verdicts []Condition) []Finding {
	found := make([]Finding, 0, len(verdicts))
	for _, v := range verdicts {
		found = append(found, Finding{
			Level: v.Severity, Text: v.Summary, Hint: v.Hint, Since: v.since, Target: v.view, Filter: v.filter, Rule: v.Rule, About: v.Target,
		})
	}
	return found
}

// instantMeasures is what an overview and a look at the broker measure.
func instantMeasures(o *Overview, b *Broker, growth *int64) *Measures {
	m := newMeasures()
	if o != nil {
		m.At = o.At
		m.queues(o.Top, o.At)
		m.workQueues(o.WorkQueues)
		if o.Replicas != nil {
			m.replicas(o.Replicas, o.Queues.Queued)
		}
		m.instantWorkers(o)
		if o.Live.Stuck.Value > 0 {
			// At least as long; which is longest the overview does not read.
			m.set("stuck_seconds", (o.Live.StuckAfter + time.Millisecond).Seconds(), Plural(o.Live.Stuck.Value, "execution", "executions"))
		}
	}
	if b != nil && len(b.Queues)+len(b.Alarms) > 0 {
		if b.AlarmsUnknown == "" {
			m.alarms(b.Alarms)
		}
		m.instantLetters(o, b, growth)
	}
	return m
}

func (m *Measures) instantLetters(o *Overview, b *Broker, growth *int64) {
	dead, ok := b.Queue(DeadLetterQueue)
	if !ok || dead.Uncounted {
		return
	}
	m.letters(dead.Ready, 0, consumers(dead))
	if growth != nil {
		m.set("dead_letters_growth", float64(max(*growth, 0)), Plural(dead.Ready, "dead letter", "dead letters")+", "+consumers(dead))
	}
	if o == nil {
		return
	}
	m.know("worker_queue_depth")
	for _, w := range o.WorkerList {
		if q, ok := b.Queue(WorkerQueue(w.ID)); ok && !q.Uncounted {
			m.add("worker_queue_depth", Sample{Target: w.Name, Value: float64(q.Ready)})
		}
	}
}

func consumers(q BrokerQueue) string {
	if q.Consumers == 0 {
		return "nobody consumes " + q.Name
	}
	return Plural(q.Consumers, "consumer", "consumers") + " on " + q.Name
}

// instantWorkers takes over the workers of an overview, which are the unwell ones;
// how many are well it says in its totals.
func (m *Measures) instantWorkers(o *Overview) {
	var list []worker
	for i := range o.WorkerList {
		w := &o.WorkerList[i]
		if w.Status == "inactive" || w.Status == "error" {
			continue
		}
		one := worker{name: w.Name, active: true, kept: w.Cordoned || w.Draining, suspectWhy: w.SuspectReason, never: w.Heartbeat == nil}
		begin := w.Created
		if w.Heartbeat != nil {
			begin = *w.Heartbeat
		}
		one.silence = max(o.At.Sub(begin), 0)
		if w.SuspectSince != nil {
			since := o.At.Sub(*w.SuspectSince)
			one.suspect = &since
		}
		if w.Assigned != nil {
			one.assigned = *w.Assigned
		}
		list = append(list, one)
	}
	m.workers(list, o.At, o.StaleAfter)
	m.set("active_workers", float64(o.Workers.Active+o.Workers.Busy), "")
	delete(m.Samples, "unhealthy_workers")
}
