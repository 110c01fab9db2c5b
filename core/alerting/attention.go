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

// Attention lists findings, the worst first: the stored alerts, that no replica is alive, and inquiries and paused or
// failed workflows. It is a pure function. Either argument may be nil.
func Attention(o *Overview, b *monitor.Broker) []Finding {
	if o == nil {
		return nil
	}
	var held []Condition
	if o.Alerts == nil || !o.Alerts.Evaluated {
		rules := o.rules
		if rules == nil {
			rules = config.Default().Alerts
		}
		held = rules.gone(o.Replicas, o.Queues.Queued)
	}
	if o.Alerts != nil {
		held = append(held, o.Alerts.verdicts()...)
	}
	return complete(findings(worstFirst(held)), o, b)
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
