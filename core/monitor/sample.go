package monitor

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/attune-go/attune/core/policy"
	"github.com/attune-go/attune/core/store"
)

// The bounds of looking at what a queue did lately.
const (
	// sampleScan is how many rows are looked at from each starting point, and
	// sampleRows how many admitted executions are taken from them.
	sampleScan = 1_000
	sampleRows = 1_000
	// configCut is the size in bytes above which parameters are not opened to
	// tell an execution's group.
	configCut = 16 << 10
	// drainWindow is how far back completions count for the rate at which a
	// queue drains; where there are fewer than drainEnough, drainLong is.
	drainWindow = 15 * time.Minute
	drainLong   = 24 * time.Hour
	drainEnough = 5
)

// admitted is an execution that took a slot of a queue.
type admitted struct {
	id                    int64
	created, at           time.Time
	startedAt, finishedAt *time.Time
	holds                 bool
}

// sample reads the executions that were admitted last by a queue, the newest
// first. In a queue of groups the group of each is told from its parameters.
func sample(ctx context.Context, tx *store.Tx, q *Queue, p *policies) ([]admitted, error) {
	rows, err := tx.ViewSample(ctx, store.ViewSampleParams{
		Belows: anchors(q, true), WithConfig: q.Group != "", Cut: configCut, ActionID: q.ActionID, Scan: sampleScan,
	})
	if err != nil {
		return nil, fmt.Errorf("read what queue %d admitted lately: %w", q.ID, err)
	}
	seen := map[int64]bool{}
	var list []admitted
	for _, r := range rows {
		if seen[r.ID] || !belongs(r, q, p) {
			continue
		}
		seen[r.ID] = true
		list = append(list, admitted{
			id: r.ID, created: r.Created, at: *r.AdmittedAt, startedAt: r.StartedAt, finishedAt: r.FinishedAt,
			holds: r.AdmissionStateID != nil,
		})
	}
	slices.SortFunc(list, func(a, b admitted) int { return cmp.Compare(b.id, a.id) })
	return list[:min(len(list), sampleRows)], nil
}

// belongs tells whether an execution was one of the queue. A holder names its
// queue; what has ended is told by the group that its parameters make.
func belongs(r store.ViewSampleRow, q *Queue, p *policies) bool {
	if r.AdmissionStateID != nil {
		return *r.AdmissionStateID == q.ID
	}
	grouped := len(p.limits.Queue.Parameters) > 0
	if q.Group == "" || !grouped {
		return (q.Group == "") == !grouped
	}
	key, _ := policy.GroupKey(p.limits.Queue.Parameters, policy.WithDefaults(r.Config, p.schema))
	return key == q.Group
}

// Drain is the rate at which a queue's executions end and make room.
type Drain struct {
	// PerMinute is nil when it is not known; Basis says what it was counted
	// from, or why nothing is known.
	PerMinute *float64 `json:"per_minute"`
	Basis     string   `json:"basis"`
	// Ended and Period are what was counted.
	Ended  int64         `json:"ended"`
	Period time.Duration `json:"period_ns"`
}

// drain counts the completions of a sample over a recent time: the last quarter
// of an hour, or the last day where hardly anything has ended since. Where the
// sample does not reach back that far, the time begins with its first slot.
func drain(list []admitted, at time.Time) Drain {
	d := ended(list, at, drainWindow)
	if d.Ended < drainEnough {
		if longer := ended(list, at, drainLong); longer.Ended > d.Ended {
			d = longer
		}
	}
	if d.Ended == 0 || d.Period <= 0 {
		d.Basis = "none of its executions has ended in the last day"
		return d
	}
	rate := float64(d.Ended) / d.Period.Minutes()
	d.PerMinute = &rate
	d.Basis = plural(d.Ended, "execution", "executions") + " ended in the last " + span(d.Period)
	return d
}

func ended(list []admitted, at time.Time, window time.Duration) Drain {
	d := Drain{}
	first := at
	for _, e := range list {
		if e.at.Before(first) {
			first = e.at
		}
		if e.finishedAt != nil && at.Sub(*e.finishedAt) <= window {
			d.Ended++
		}
	}
	d.Period = min(at.Sub(first), window)
	return d
}

// Expected is when a waiting execution will probably take its slot.
type Expected struct {
	// At is nil when it cannot be told; Basis says from what it was computed, or
	// why not.
	At    *time.Time `json:"at"`
	Basis string     `json:"basis"`
}

// expect computes when a place in a queue will be served.
func expect(q *Queue, place int64, about bool, d Drain, at time.Time) Expected {
	switch {
	case q.Paused:
		return Expected{Basis: "unknown: the queue is paused"}
	case d.PerMinute == nil && q.BlockedUntil != nil && q.BlockedUntil.After(at):
		return Expected{Basis: "unknown: the queue is kept until " + q.BlockedUntil.UTC().Format("15:04:05Z") + ", and " + d.Basis}
	case d.PerMinute == nil:
		return Expected{Basis: "unknown: " + d.Basis}
	}
	wait := float64(place) / *d.PerMinute * float64(time.Minute)
	if wait > float64(math.MaxInt64/2) {
		return Expected{Basis: "unknown: at the rate of late it would take for ever"}
	}
	t := at.Add(time.Duration(wait))
	basis := fmt.Sprintf("place %d at %.3g a minute; %s", place, *d.PerMinute, d.Basis)
	if about {
		basis = "about " + basis
	}
	if q.BlockedUntil != nil && q.BlockedUntil.After(t) {
		t = *q.BlockedUntil
		basis = "not before the limit that keeps the queue opens; " + basis
	}
	return Expected{At: &t, Basis: basis}
}

// Percentiles describe a set of durations.
type Percentiles struct {
	Count int64         `json:"count"`
	P50   time.Duration `json:"p50_ns"`
	P90   time.Duration `json:"p90_ns"`
	P95   time.Duration `json:"p95_ns"`
	P99   time.Duration `json:"p99_ns"`
	Max   time.Duration `json:"max_ns"`
}

// percentiles takes, for each share, the smallest value that so many do not
// exceed. Of nothing there are none.
func percentiles(list []time.Duration) *Percentiles {
	if len(list) == 0 {
		return nil
	}
	slices.Sort(list)
	at := func(share float64) time.Duration {
		return list[max(int(math.Ceil(share*float64(len(list))))-1, 0)]
	}
	return &Percentiles{
		Count: int64(len(list)), P50: at(0.5), P90: at(0.9), P95: at(0.95), P99: at(0.99), Max: list[len(list)-1],
	}
}

// Timing is how long executions of a queue waited and ran lately.
type Timing struct {
	// Wait is from request to slot, Run from start to end; nil when no execution
	// has got that far.
	Wait *Percentiles `json:"wait"`
	Run  *Percentiles `json:"run"`
	// Sample is how many admitted executions were looked at, at most a thousand,
	// which took their slots between From and To.
	Sample int64      `json:"sample"`
	From   *time.Time `json:"from"`
	To     *time.Time `json:"to"`
}

func timing(list []admitted) Timing {
	t := Timing{Sample: int64(len(list))}
	var waits, runs []time.Duration
	for _, e := range list {
		waits = append(waits, max(e.at.Sub(e.created), 0))
		if e.startedAt != nil && e.finishedAt != nil {
			runs = append(runs, max(e.finishedAt.Sub(*e.startedAt), 0))
		}
		if t.From == nil || e.at.Before(*t.From) {
			t.From = &e.at
		}
		if t.To == nil || e.at.After(*t.To) {
			t.To = &e.at
		}
	}
	t.Wait, t.Run = percentiles(waits), percentiles(runs)
	return t
}
