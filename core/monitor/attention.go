package monitor

import (
	"fmt"
	"strings"
	"time"
)

// Level says how much a finding matters.
type Level string

// The levels, worst first.
const (
	LevelCritical Level = "critical"
	LevelWarning  Level = "warning"
	LevelInfo     Level = "info"
)

// Finding is one thing that needs a person's attention.
type Finding struct {
	Level Level  `json:"level"`
	Text  string `json:"text"`
	// Hint is what to look at or to do next.
	Hint string `json:"hint,omitempty"`
	// Since is when it began, where that is known.
	Since *time.Time `json:"since,omitempty"`
	// Target is the view that shows more: overview, queues, executions, workers or dlq.
	Target string `json:"target"`
	// Filter narrows the target to what the finding is about.
	Filter string `json:"filter,omitempty"`
}

// Limits are the thresholds beyond which something needs attention.
type Limits struct {
	HeadWait   time.Duration
	StaleAfter time.Duration
}

// Attention judges what was read. It is a pure function: either argument may be
// nil, and growth is the change of the dead-letter depth over the last minutes,
// nil while that is unknown.
func Attention(o *Overview, b *Broker, growth *int64, limits Limits) []Finding {
	var found []Finding
	if b != nil {
		found = append(found, brokerFindings(b, growth)...)
	}
	if o != nil {
		found = append(found, replicaFindings(o)...)
		found = append(found, workerFindings(o, limits)...)
		found = append(found, queueFindings(o, limits)...)
		found = append(found, stuckFindings(o)...)
	}
	return worstFirst(found)
}

func worstFirst(found []Finding) []Finding {
	var out []Finding
	for _, level := range []Level{LevelCritical, LevelWarning, LevelInfo} {
		for _, f := range found {
			if f.Level == level {
				out = append(out, f)
			}
		}
	}
	return out
}

func brokerFindings(b *Broker, growth *int64) []Finding {
	var found []Finding
	if len(b.Alarms) > 0 {
		found = append(found, Finding{
			Level: LevelCritical, Target: "dlq",
			Text: "broker alarm: " + strings.Join(b.Alarms, ", "),
			Hint: "publishers are blocked until it clears",
		})
	}
	dead, ok := b.Queue(DeadLetterQueue)
	switch {
	case !ok || dead.Ready == 0:
	case growth != nil && *growth > 0:
		found = append(found, Finding{
			Level: LevelCritical, Target: "dlq",
			Text: fmt.Sprintf("dead letters growing: %d, +%d in 5m", dead.Ready, *growth),
			Hint: consumers(dead),
		})
	default:
		found = append(found, Finding{
			Level: LevelWarning, Target: "dlq",
			Text: fmt.Sprintf("%d dead letters wait", dead.Ready),
			Hint: consumers(dead),
		})
	}
	return found
}

func consumers(q BrokerQueue) string {
	switch q.Consumers {
	case 0:
		return "nobody consumes " + q.Name
	case 1:
		return "1 consumer on " + q.Name
	default:
		return fmt.Sprintf("%d consumers on %s", q.Consumers, q.Name)
	}
}

// brief writes a duration without units that are zero.
func brief(d time.Duration) string {
	text := d.String()
	if cut, ok := strings.CutSuffix(text, "m0s"); ok {
		text = cut + "m"
	}
	if cut, ok := strings.CutSuffix(text, "h0m"); ok {
		text = cut + "h"
	}
	return text
}

func workerFindings(o *Overview, limits Limits) []Finding {
	var found []Finding
	if o.Workers.Active+o.Workers.Busy == 0 && o.Queues.Queued+o.Live.Requested.Value > 0 {
		found = append(found, Finding{
			Level: LevelCritical, Target: "workers",
			Text: "no worker takes work and executions wait", Hint: "start or uncordon a worker",
		})
	}
	for _, w := range o.WorkerList {
		f := Finding{Level: LevelWarning, Target: "workers"}
		switch w.Health(o.At, limits.StaleAfter) {
		case WorkerStale:
			f.Since, f.Text, f.Hint = w.Heartbeat, w.Name+" heartbeat stale", "it never reported"
			if w.Heartbeat != nil {
				f.Hint = "limit " + brief(limits.StaleAfter)
			}
		case WorkerSuspect:
			f.Since, f.Text, f.Hint = w.SuspectSince, w.Name+" suspect, given nothing", orElse(w.SuspectReason, "its queue took nothing")
		default:
			continue
		}
		if w.Assigned != nil && *w.Assigned > 0 {
			f.Hint += fmt.Sprintf(", owns %d executions", *w.Assigned)
		}
		found = append(found, f)
	}
	return found
}

func queueFindings(o *Overview, limits Limits) []Finding {
	var found []Finding
	for _, q := range o.Top {
		if q.Queued == 0 {
			continue
		}
		f := Finding{Level: LevelWarning, Target: "queues", Filter: q.ActionRef, Since: q.Oldest}
		switch {
		case q.Paused:
			f.Level, f.Text = LevelInfo, fmt.Sprintf("%s is paused with %d waiting", q.Name(), q.Queued)
			f.Hint = q.PauseReason
		case q.Oldest == nil || o.At.Sub(*q.Oldest) < limits.HeadWait:
			continue
		case q.Blocked != "":
			f.Text = fmt.Sprintf("%s %d deep, head waits", q.Name(), q.Queued)
			f.Hint = q.Blocked
		default:
			f.Text = fmt.Sprintf("%s %d deep, head waits", q.Name(), q.Queued)
			f.Hint = fmt.Sprintf("%d slots used", q.Active)
			if q.Limit != nil {
				f.Hint = fmt.Sprintf("%d of %d slots used", q.Active, *q.Limit)
			}
		}
		found = append(found, f)
	}
	return found
}

func stuckFindings(o *Overview) []Finding {
	if o.Live.Stuck.Value == 0 {
		return nil
	}
	return []Finding{{
		Level: LevelInfo, Target: "executions", Filter: "status:scheduled",
		Text: fmt.Sprintf("%d executions scheduled for more than %s", o.Live.Stuck.Value, brief(o.Live.StuckAfter)),
		Hint: "no worker has acknowledged them",
	}}
}
