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
	// ConfigCut is the size in bytes above which parameters are not opened to
	// tell an execution's group.
	ConfigCut = 16 << 10
)

// Admitted is an execution that took a slot of a queue.
type Admitted struct {
	id                    int64
	created, At           time.Time
	StartedAt, FinishedAt *time.Time
	holds                 bool
}

// ReadSample reads the executions that were admitted last by a queue, the newest
// first, and those of all queues of the action. In a queue of groups the group
// of each is told from its parameters.
func ReadSample(ctx context.Context, tx *store.Tx, q *Queue, p *Policies) (own, all []Admitted, err error) {
	rows, err := tx.ViewSample(ctx, store.ViewSampleParams{
		Belows: anchors(q, true), WithConfig: q.Group != "", Cut: ConfigCut, ActionID: q.ActionID, Scan: sampleScan,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read what queue %d admitted lately: %w", q.ID, err)
	}
	seen := map[int64]bool{}
	for _, r := range rows {
		if seen[r.ID] {
			continue
		}
		seen[r.ID] = true
		one := Admitted{
			id: r.ID, created: r.Created, At: *r.AdmittedAt, StartedAt: r.StartedAt, FinishedAt: r.FinishedAt,
			holds: r.HeldState != 0,
		}
		all = append(all, one)
		if belongs(r, q, p) {
			own = append(own, one)
		}
	}
	return newest(own), newest(all), nil
}

func newest(list []Admitted) []Admitted {
	slices.SortFunc(list, func(a, b Admitted) int { return cmp.Compare(b.id, a.id) })
	return list[:min(len(list), sampleRows)]
}

// belongs tells whether an execution was one of the queue. A holder names its
// queue; what has ended is told by the group that its parameters make.
func belongs(r store.ViewSampleRow, q *Queue, p *Policies) bool {
	if r.HeldState != 0 {
		return r.HeldState == q.ID
	}
	grouped := len(p.Limits.Queue.Parameters) > 0
	if q.Group == "" || !grouped {
		return (q.Group == "") == !grouped
	}
	key, _ := policy.GroupKey(p.Limits.Queue.Parameters, policy.WithDefaults(r.Config, p.schema))
	return key == q.Group
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

func TimingOf(list []Admitted) Timing {
	t := Timing{Sample: int64(len(list))}
	var waits, runs []time.Duration
	for _, e := range list {
		waits = append(waits, max(e.At.Sub(e.created), 0))
		if e.StartedAt != nil && e.FinishedAt != nil {
			runs = append(runs, max(e.FinishedAt.Sub(*e.StartedAt), 0))
		}
		if t.From == nil || e.At.Before(*t.From) {
			t.From = &e.At
		}
		if t.To == nil || e.At.After(*t.To) {
			t.To = &e.At
		}
	}
	t.Wait, t.Run = percentiles(waits), percentiles(runs)
	return t
}
