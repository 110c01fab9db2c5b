package alerting

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
)

// Finding is one thing that needs an operator's attention.
type Finding struct {
	Level Level  `json:"level"`
	Text  string `json:"text"`
	// Hint is what to do next.
	Hint string `json:"hint,omitempty"`
	// Since is when it began, if known.
	Since *time.Time `json:"since,omitempty"`
	// Target names the view that shows more.
	Target string `json:"target"`
	// Filter narrows that view.
	Filter string `json:"filter,omitempty"`
	// Rule is the alert rule, About its target; empty for the whole installation.
	Rule  string `json:"rule,omitempty"`
	About string `json:"about,omitempty"`
	// Cause is the text of the earlier finding that explains this one, if any. Only causes are
	// counted.
	Cause string `json:"cause,omitempty"`
}

// brokerMeasures are read by the dashboard from the broker in addition to the engine's evaluation.
var brokerMeasures = []string{"broker_alarms"}

// Attention lists findings, the worst first: the alerts if they were evaluated, else the same rules
// evaluated by overview and broker, without their minimum time. Inquiries and paused or failed
// workflows are added. It is a pure function. Either argument may be nil; growth is the change of
// the dead-letter depth over minutes, nil if unknown.
func Attention(o *Overview, b *monitor.Broker, growth *int64) []Finding {
	instant := instantMeasures(o, b, growth)
	rules := Rules(config.Default().Alerts)
	if o != nil && o.rules != nil {
		rules = o.rules
	}
	if o == nil || o.Alerts == nil || !o.Alerts.Evaluated && !o.Alerts.Assessed {
		return complete(findings(worstFirst(Assess(rules, instant))), o, b)
	}
	only := newMeasures()
	for _, name := range brokerMeasures {
		if instant.Known(name) && !o.Alerts.knows(name) {
			only.Samples[name] = instant.Samples[name]
		}
	}
	return complete(findings(worstFirst(append(o.Alerts.verdicts(), Assess(rules, only)...))), o, b)
}

// complete adds the findings without a rule, the worst first.
func complete(found []Finding, o *Overview, b *monitor.Broker) []Finding {
	if o == nil {
		return found
	}
	found = append(found, unwellWorkers(found, o, b)...)
	if o.Flows != nil {
		found = append(found, flowFindings(o.Flows, o.At)...)
	}
	slices.SortStableFunc(found, func(x, y Finding) int { return x.Level.Rank() - y.Level.Rank() })
	return found
}

// unwellWorkers adds one finding for each unwell state without an alert.
func unwellWorkers(told []Finding, o *Overview, b *monitor.Broker) []Finding {
	list := o.everyWorker
	if list == nil {
		list = o.WorkerList
	}
	queues := b.WorkerQueues()
	names, why := map[monitor.WorkerHealth][]string{}, map[monitor.WorkerHealth]string{}
	for i := range list {
		w := &list[i]
		v := w.Assess(o.At, cmp.Or(o.StaleAfter, monitor.DefaultStaleAfter), queues[w.ID])
		if slices.Contains(unwell, v.Health) &&
			!slices.ContainsFunc(told, func(f Finding) bool { return f.Target == viewWorkers && f.About == w.Name }) {
			names[v.Health], why[v.Health] = append(names[v.Health], w.Name), v.Why
		}
	}
	var found []Finding
	for _, health := range unwell {
		one := Finding{Level: LevelWarning, Target: viewWorkers, Filter: "status:" + string(health)}
		switch n := len(names[health]); n {
		case 0:
			continue
		case 1:
			one.Text, one.Hint, one.Filter = names[health][0]+" is "+string(health), why[health], names[health][0]
		default:
			one.Text, one.Hint = fmt.Sprintf("%d workers are %s", n, health),
				strings.Join(names[health][:min(n, 5)], ", ")
		}
		found = append(found, one)
	}
	return found
}

// unwell are the states of workers that need attention.
var unwell = []monitor.WorkerHealth{
	monitor.WorkerStale, monitor.WorkerDeaf, monitor.WorkerSuspect,
	monitor.WorkerUnhealthy,
}

// viewWorkers is the view of the workers.
const viewWorkers = "workers"

// CutOff reports whether no live replica has a connection to the broker.
func (o *Overview) CutOff() bool {
	if o == nil || o.Replicas == nil {
		return false
	}
	m := newMeasures()
	m.replicas(o.Replicas, 0)
	return m.cutOff
}

// hintCutOff explains the consequences of a broker outage.
const hintCutOff = "because the broker does not answer"

// FoldBroker moves the consequences of a broker outage behind its finding: the one with the index,
// or the first of a disconnected replica.
func FoldBroker(found []Finding, cause int) []Finding {
	lost := func(f Finding) bool {
		return f.Rule == "replica_unwell" && strings.Contains(f.Text, "connection to the broker")
	}
	if cause < 0 {
		cause = slices.IndexFunc(found, lost)
	}
	if cause < 0 {
		return found
	}
	first := found[cause]
	var others, follow []Finding
	for i, f := range found {
		switch {
		case i == cause:
		case f.Rule == "no_active_workers", lost(f), f.Rule == "unmeasured" &&
			slices.Contains(config.MeasuresFrom(config.FromBroker), f.About):
			f.Cause = first.Text
			if f.Rule == "no_active_workers" {
				f.Hint = hintCutOff
			}
			if f.Level.Rank() < first.Level.Rank() {
				first.Level = f.Level // of what it explains only the cause is counted
			}
			follow = append(follow, f)
		default:
			others = append(others, f)
		}
	}
	at := slices.IndexFunc(others, func(f Finding) bool { return f.Level.Rank() > first.Level.Rank() })
	if at < 0 {
		at = len(others)
	}
	return slices.Concat(others[:min(at, cause)], []Finding{first}, follow, others[min(at, cause):])
}

func findings(verdicts []Condition) []Finding {
	found := make([]Finding, 0, len(verdicts))
	for _, v := range verdicts {
		found = append(found, Finding{
			Level: v.Severity, Text: v.Summary, Hint: v.Hint, Since: v.since, Target: v.view, Filter: v.filter,
			Rule: v.Rule, About: v.Target,
		})
	}
	return found
}

// instantMeasures are the measures of an overview and a read of the broker.
func instantMeasures(o *Overview, b *monitor.Broker, growth *int64) *Measures {
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
			// The overview reads no maximum, so this is the minimum.
			m.set("stuck_seconds", (o.Live.StuckAfter + time.Millisecond).Seconds(),
				phrase.Plural(o.Live.Stuck.Value, "execution", "executions"))
		}
	}
	if b != nil && len(b.Queues)+len(b.Alarms) > 0 {
		if b.AlarmsUnknown == "" {
			m.alarms(b.Alarms)
		}
		m.instantDeadLetters(o, b, growth)
	}
	return m
}

func (m *Measures) instantDeadLetters(o *Overview, b *monitor.Broker, growth *int64) {
	dead, ok := b.Queue(monitor.DeadLetterQueue)
	if !ok || dead.Uncounted {
		return
	}
	m.set("dead_letter_depth", float64(dead.Ready), consumers(dead))
	if growth != nil {
		m.set("dead_letters_growth", float64(max(*growth, 0)),
			phrase.Plural(dead.Ready, "dead letter", "dead letters")+", "+consumers(dead))
	}
	if o == nil {
		return
	}
	m.know("worker_queue_depth")
	for _, w := range o.WorkerList {
		if q, ok := b.Queue(monitor.WorkerQueue(w.ID)); ok && !q.Uncounted {
			m.add("worker_queue_depth", Sample{Target: w.Name, Value: float64(q.Ready)})
		}
	}
}

func consumers(q monitor.BrokerQueue) string {
	if q.Consumers == 0 {
		return q.Name + " has no consumer"
	}
	return phrase.Plural(q.Consumers, "consumer", "consumers") + " on " + q.Name
}

// instantWorkers adds the unwell workers of an overview and the number of the others.
func (m *Measures) instantWorkers(o *Overview) {
	var list []worker
	for i := range o.WorkerList {
		w := &o.WorkerList[i]
		if w.Status == "inactive" || w.Status == "error" {
			continue
		}
		one := worker{
			name: w.Name, active: true, kept: w.Cordoned || w.Draining, suspectWhy: w.SuspectReason,
			never: w.Heartbeat == nil,
		}
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
	m.working(o.Workers.Working())
	delete(m.Samples, "unhealthy_workers")
}

// flowFindings are the findings about workflows and inquiries.
func flowFindings(f *monitor.Flows, at time.Time) []Finding {
	if f == nil {
		return nil
	}
	var found []Finding
	if f.Failed.Value > 0 {
		found = append(found, Finding{
			Level: LevelWarning, Text: f.Failed.Words("workflow has failed", "workflows have failed"),
			Target: "workflows", Hint: "in the last " + phrase.Span(f.Window),
			Filter: "status:failed,timeout,abandoned",
		})
	}
	if f.Inquiries.Value > 0 {
		one := Finding{
			Level: LevelInfo, Text: f.Inquiries.Words("question waits for a person", "questions wait for people"),
			Target: "inquiries", Hint: "the oldest for " + phrase.Span(f.Oldest), Filter: "status:pending",
		}
		since := at.Add(-f.Oldest)
		one.Since = &since
		if f.Late.Value > 0 {
			one.Level = LevelWarning
			one.Hint += "; " + f.Late.Words("has", "have") + " used up most of the time"
		}
		found = append(found, one)
	}
	if f.Paused.Value > 0 {
		found = append(found, Finding{
			Level: LevelInfo, Text: f.Paused.Words("workflow is paused", "workflows are paused"), Target: "workflows",
			Hint: "nothing more is started in them until they are resumed", Filter: "status:" + monitor.WorkflowPaused,
		})
	}
	return found
}
