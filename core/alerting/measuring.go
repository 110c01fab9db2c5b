package alerting

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
)

// queues adds the waits and lengths of queues.
func (m *Measures) queues(list []monitor.Queue, now time.Time) {
	m.know("head_wait", "idle_slots", "lowered_limit_wait", "paused_wait", "queue_fill", "queue_length", "queue_paused")
	for i := range list {
		q := &list[i]
		if q.Queued == 0 {
			continue
		}
		s := Sample{Target: q.Name(), Value: float64(q.Queued), Since: q.Oldest}
		if q.Paused {
			m.paused(q, s, now)
			continue
		}
		s.Detail = cmp.Or(q.Blocked, slotsUsed(q))
		m.add("queue_length", s)
		if q.MaxQueued != nil {
			full := Sample{Target: s.Target, Value: float64(q.Queued) / float64(*q.MaxQueued), Since: s.Since}
			full.Detail = fmt.Sprintf("%d of at most %d wait, %s", q.Queued, *q.MaxQueued, s.Detail)
			m.add("queue_fill", full)
		}
		if q.Oldest == nil {
			continue
		}
		s.Value, s.Detail = max(now.Sub(*q.Oldest).Seconds(), 0), fmt.Sprintf("%d deep, %s", q.Queued, s.Detail)
		m.add("head_wait", s)
		if (q.Limit == nil || q.Active < *q.Limit) && q.BlockedScope == nil && q.BlockedUntil == nil {
			m.add("idle_slots", s)
		}
		if of := q.LimitFrom; of.Kind == monitor.LimitOverride && of.Threshold != nil && q.Limit != nil &&
			*q.Limit < *of.Threshold {
			s.Detail = fmt.Sprintf("%d instead of %d", *q.Limit, *of.Threshold)
			m.add("lowered_limit_wait", s)
		}
	}
}

// paused adds how many executions a pause blocks, and for how long.
func (m *Measures) paused(q *monitor.Queue, s Sample, now time.Time) {
	reason := ""
	if q.PauseReason != "" {
		reason = ": " + q.PauseReason
	}
	s.Detail = pausedBy(q, now) + reason
	m.add("queue_paused", s)
	s.Detail = fmt.Sprintf("%s, %d wait%s", pausedBy(q, now), q.Queued, reason)
	begun := q.Oldest
	if q.PausedAt != nil && (begun == nil || q.PausedAt.After(*begun)) {
		begun = q.PausedAt
	}
	if begun != nil {
		s.Value, s.Since = max(now.Sub(*begun).Seconds(), 0), begun
		m.add("paused_wait", s)
	}
}

// pausedBy says who paused the queue and when, if known.
func pausedBy(q *monitor.Queue, now time.Time) string {
	by := "by " + cmp.Or(q.PausedBy, "an operator")
	if q.PausedAt != nil {
		by += " for " + phrase.Since(*q.PausedAt, now)
	}
	return by
}

func slotsUsed(q *monitor.Queue) string {
	if q.Limit != nil {
		return fmt.Sprintf("%d of %d slots used", q.Active, *q.Limit)
	}
	return phrase.Plural(q.Active, "slot", "slots") + " used"
}

// replicas adds the state of the replicas.
func (m *Measures) replicas(all *monitor.Replicas, waiting int64) {
	m.know("replica_silence", "loop_silence", "replica_problems", "installation_faults")
	alive, connected := 0, 0
	for i := range all.List {
		r := &all.List[i]
		where := fmt.Sprintf("host %s, pid %d", r.Host, r.PID)
		m.add("replica_silence", Sample{Target: r.Short(), Value: r.Age.Seconds(), Detail: where, Since: &r.LastSeen})
		if !r.Alive() {
			continue
		}
		alive++
		if r.State != monitor.StateDisconnected {
			connected++
		}
		if faults := r.Details.Installation; len(faults) > 0 {
			m.add("installation_faults", Sample{
				Target: r.Short(), Value: float64(len(faults)), Detail: faults[0].Problem + ": " + faults[0].Fix,
				Since: &faults[0].Since,
			})
		}
		if troubles := r.Troubles(); len(troubles) > 0 {
			m.add("replica_problems",
				Sample{Target: r.Short(), Value: float64(len(troubles)), Detail: strings.Join(troubles, ", ")})
		}
		for _, loop := range r.SilentLoops() {
			m.add("loop_silence",
				Sample{
					Target: r.Short() + "/" + loop, Value: r.Overdue(loop).Seconds(),
					Detail: cmp.Or(r.Details.Loops[loop].Error, where),
				})
		}
	}
	m.cutOff = alive > 0 && connected == 0
	detail := ""
	if waiting > 0 {
		detail = fmt.Sprintf(": %s", phrase.Plural(waiting, "execution waits", "executions wait"))
	}
	sample := Sample{Value: float64(alive), Detail: detail}
	if all.ReadOnly != nil { // replicas cannot report
		sample = Sample{Summary: all.ReadOnly.Fact, Hint: all.ReadOnly.Fix, Detail: detail}
		alive = 0
	}
	if alive == 0 {
		sample.Since = all.LastSeen
	}
	m.Samples["replicas"] = []Sample{sample}
}

// alarms adds the alarms of the broker.
func (m *Measures) alarms(list []string) {
	m.set("broker_alarms", float64(len(list)), strings.Join(list, ", "))
}

// worker is what the rules about workers need.
type worker struct {
	ID                 int64
	Name               string
	Sensor             bool
	Active             bool // by its row
	Kept               bool // cordoned or draining
	Never              bool // it never sent a heartbeat
	Vanished           bool // it was marked inactive in the last five minutes
	Silence            time.Duration
	Suspect            *time.Duration
	SuspectWhy, Health string
	Assigned, Ready    int64
}

// workers adds heartbeats and suspicions, and the number of workers that get work.
func (m *Measures) workers(list []worker, now time.Time, staleAfter time.Duration) {
	m.know("heartbeat_age", "suspect_seconds")
	active, unhealthy, ill := int64(0), 0, []string{}
	for _, w := range list {
		since := now.Add(-w.Silence)
		owns := ""
		if w.Assigned > 0 {
			owns = ", owns " + phrase.Plural(w.Assigned, "execution", "executions")
		}
		detail := owns
		if w.Never {
			detail = ", it never reported" + owns
		}
		m.add("heartbeat_age", Sample{Target: w.Name, Value: w.Silence.Seconds(), Detail: detail, Since: &since})
		if w.Suspect != nil {
			begun := now.Add(-*w.Suspect)
			m.add("suspect_seconds", Sample{
				Target: w.Name, Value: max(w.Suspect.Seconds(), 0.001),
				Detail: cmp.Or(w.SuspectWhy, "its queue took nothing") + owns, Since: &begun,
			})
		}
		if !w.Active || w.Sensor || w.Kept || w.Silence > staleAfter || w.Suspect != nil {
			continue
		}
		active++
		if w.Health == "unhealthy" {
			unhealthy++
			ill = append(ill, w.Name)
		}
	}
	m.working(active)
	share := 0.0
	if active > 0 {
		share = float64(unhealthy) / float64(active)
	}
	m.set("unhealthy_workers", share, strings.Join(ill[:min(len(ill), 5)], ", "))
}

// working adds the number of workers that get work.
func (m *Measures) working(n int64) {
	s := Sample{Value: float64(n)}
	if m.cutOff {
		s.Hint = hintCutOff
	}
	m.Samples["active_workers"] = []Sample{s}
}

// workQueues adds the waiting items of work queues.
func (m *Measures) workQueues(list []monitor.WorkQueue) {
	m.know("work_queue_items")
	for i := range list {
		q := &list[i]
		m.add("work_queue_items",
			Sample{Target: q.Ref, Value: float64(q.Items().Value), Detail: q.Words(m.At), Since: &q.Oldest})
	}
}
