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

const (
	// agesExact is the length up to which all queued executions are read.
	agesExact = 5_000
	// ageProbes is how many are read of a longer queue.
	ageProbes = 250
)

// AgeBounds are the upper bounds of all classes of Ages but the last.
var AgeBounds = []time.Duration{time.Second, 10 * time.Second, time.Minute, 10 * time.Minute, time.Hour}

// Ages is a histogram of the waits in a queue.
type Ages struct {
	// Classes counts the executions that have waited less than the bound of the same index and not
	// less than the one before.
	Classes []int64 `json:"classes"`
	// Bounds is AgeBounds.
	Bounds []time.Duration `json:"bounds_ns"`
	// Estimated is true when only Probes executions were read.
	Estimated bool  `json:"estimated,omitempty"`
	Probes    int64 `json:"probes,omitempty"`
	// Waited is nil when no execution waits.
	Waited *Percentiles `json:"waited"`
}

// Waited is the wait of an execution that stands for Weight executions of its lane.
type Waited struct {
	Lane   int16
	Since  time.Duration
	Weight float64
}

func newAges() *Ages { return &Ages{Classes: make([]int64, len(AgeBounds)+1), Bounds: AgeBounds} }

func ageClass(age time.Duration) int {
	for i, bound := range AgeBounds {
		if age < bound {
			return i
		}
	}
	return len(AgeBounds)
}

// readWaits reads the waits in a queue: all of them, or a few hundred spread evenly over the places
// of each lane, which stand for the others.
func readWaits(ctx context.Context, tx *store.Tx, q *Queue) (list []Waited, estimated bool, err error) {
	switch {
	case q.Queued == 0:
		return nil, false, nil
	case q.Queued > agesExact:
		list, err = ProbeWaits(ctx, tx, q)
		return list, true, err
	}
	var lanes []int16
	var places []int64
	for _, l := range q.lanes {
		lanes, places = append(lanes, l.number), append(places, l.head)
	}
	if list, err = store.Rows[Waited](ctx, tx, store.ViewAges, lanes, places, q.ID, agesExact); err != nil {
		return nil, false, fmt.Errorf("read how long those in queue %d have waited: %w", q.ID, err)
	}
	for i := range list {
		list[i].Weight = 1
	}
	return list, false, nil
}

// ProbeWaits reads the waits of some hundred executions, spread evenly over the places of each lane.
func ProbeWaits(ctx context.Context, tx *store.Tx, q *Queue) ([]Waited, error) {
	lanes, places := probes(q)
	list, err := store.Rows[Waited](ctx, tx, store.ViewAges, lanes, places, q.ID, 1)
	if err != nil {
		return nil, fmt.Errorf("probe how long those in queue %d have waited: %w", q.ID, err)
	}
	hits := map[int16]float64{}
	for _, w := range list {
		hits[w.Lane]++
	}
	for _, l := range q.lanes {
		for i := range list {
			if list[i].Lane == l.number {
				list[i].Weight = float64(l.queued) / hits[l.number]
			}
		}
	}
	return list, nil
}

// ReadAges makes the histogram of a queue.
func ReadAges(ctx context.Context, tx *store.Tx, q *Queue) (*Ages, error) {
	ages := newAges()
	list, estimated, err := readWaits(ctx, tx, q)
	if err != nil || len(list) == 0 {
		return ages, err
	}
	ages.Waited = weigh(list)
	ages.Waited.Count = q.Queued
	if estimated {
		ages.Estimated, ages.Probes = true, int64(len(list))
	}
	ages.Classes = classes(list)
	return ages, nil
}

// classes adds up the weights of waits by class, without rounding losses.
func classes(list []Waited) []int64 {
	weights, out := make([]float64, len(AgeBounds)+1), make([]int64, len(AgeBounds)+1)
	for _, w := range list {
		weights[ageClass(w.Since)] += w.Weight
	}
	seen, done := 0.0, int64(0)
	for i, weight := range weights {
		seen += weight
		out[i] = int64(math.Round(seen)) - done
		done += out[i]
	}
	return out
}

// weigh takes percentiles of weighted waits.
func weigh(list []Waited) *Percentiles {
	slices.SortFunc(list, func(a, b Waited) int { return cmp.Compare(a.Since, b.Since) })
	total := 0.0
	for _, w := range list {
		total += w.Weight
	}
	at := func(share float64) time.Duration {
		upTo := 0.0
		for _, w := range list {
			if upTo += w.Weight; upTo >= share*total {
				return w.Since
			}
		}
		return list[len(list)-1].Since
	}
	return &Percentiles{P50: at(0.5), P90: at(0.9), P95: at(0.95), P99: at(0.99), Max: list[len(list)-1].Since}
}

// probes spreads the probes over the lanes by length, and evenly over the places of each lane.
func probes(q *Queue) (lanes []int16, places []int64) {
	for _, l := range q.lanes {
		if l.queued <= 0 || l.next <= l.head {
			continue
		}
		n := max(int64(float64(ageProbes-2)*float64(l.queued)/float64(q.Queued)), 1)
		n = min(n, l.next-l.head)
		step := float64(l.next-l.head) / float64(n)
		for i := range n {
			lanes, places = append(lanes, l.number), append(places, l.head+int64(float64(i)*step))
		}
	}
	return lanes, places
}

// The bounds of a read of a queue's latest admissions.
const (
	// sampleScan is how many rows are read from each anchor, sampleRows how many admitted executions
	// are used.
	sampleScan = 1_000
	sampleRows = 1_000
	// ConfigCut is the size in bytes up to which parameters are read to find the group.
	ConfigCut = 16 << 10
)

// Admitted is an execution that got a slot of a queue.
type Admitted struct {
	ID                    int64
	Created, At           time.Time
	StartedAt, FinishedAt *time.Time
	holds                 bool
}

// sampleRow is an admitted execution with the queue whose slot it holds, and its parameters if they tell the group.
type sampleRow struct {
	Admitted
	HeldState int64
	Config    []byte
}

// ReadSample reads the latest admissions of a queue, the newest first, and those of all queues of
// the action. Parameters tell the group of each.
func ReadSample(ctx context.Context, tx *store.Tx, q *Queue, p *Policies) (own, all []Admitted, err error) {
	rows, err := store.Rows[sampleRow](ctx, tx, store.ViewSample,
		anchors(q, true), q.Group != "", ConfigCut, q.ActionID, sampleScan)
	if err != nil {
		return nil, nil, fmt.Errorf("read what queue %d admitted lately: %w", q.ID, err)
	}
	seen := map[int64]bool{}
	for i := range rows {
		r := &rows[i]
		if seen[r.ID] {
			continue
		}
		seen[r.ID] = true
		r.holds = r.HeldState != 0
		all = append(all, r.Admitted)
		if r.belongs(q, p) {
			own = append(own, r.Admitted)
		}
	}
	return newest(own), newest(all), nil
}

func newest(list []Admitted) []Admitted {
	slices.SortFunc(list, func(a, b Admitted) int { return cmp.Compare(b.ID, a.ID) })
	return list[:min(len(list), sampleRows)]
}

// belongs reports whether an execution was one of the queue. A holder names its queue, an ended
// execution is found by the group of its parameters.
func (r *sampleRow) belongs(q *Queue, p *Policies) bool {
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

// percentiles takes for each share the smallest value that this share does not exceed; nil for an
// empty list.
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

// RunningFor is the median time that the running executions of a sample have taken so far; 0 if none runs.
func RunningFor(list []Admitted, at time.Time) time.Duration {
	var ages []time.Duration
	for _, e := range list {
		if e.holds && e.StartedAt != nil && e.FinishedAt == nil {
			ages = append(ages, at.Sub(*e.StartedAt))
		}
	}
	if p := percentiles(ages); p != nil {
		return p.P50
	}
	return 0
}

// Timing is how long the latest executions of a queue waited and ran.
type Timing struct {
	// Wait is from request to slot, Run from start to end; nil without such executions.
	Wait *Percentiles `json:"wait"`
	Run  *Percentiles `json:"run"`
	// Sample is how many admitted executions were read, admitted between From and To.
	Sample int64      `json:"sample"`
	From   *time.Time `json:"from"`
	To     *time.Time `json:"to"`
}

// TimingOf measures a sample.
func TimingOf(list []Admitted) Timing {
	t := Timing{Sample: int64(len(list))}
	var waits, runs []time.Duration
	for _, e := range list {
		waits = append(waits, max(e.At.Sub(e.Created), 0))
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
