package monitor

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/attune-go/attune/core/store"
)

const (
	// agesExact is up to how many waiters are looked at one by one.
	agesExact = 5_000
	// ageProbes is how many are looked at in a longer queue.
	ageProbes = 500
)

// AgeBounds are the upper bounds of the classes of Ages; the last class has none.
var AgeBounds = []time.Duration{time.Second, 10 * time.Second, time.Minute, 10 * time.Minute, time.Hour}

// Ages counts those who wait in a queue by how long they have waited.
type Ages struct {
	// Classes counts those who have waited for less than the bound of the same
	// index in AgeBounds, and not less than the one before; the last counts the
	// rest.
	Classes []int64 `json:"classes"`
	// Bounds repeats AgeBounds, in nanoseconds.
	Bounds []time.Duration `json:"bounds_ns"`
	// Estimated is true when only Probes of the waiters were looked at.
	Estimated bool  `json:"estimated,omitempty"`
	Probes    int64 `json:"probes,omitempty"`
}

func newAges() *Ages { return &Ages{Classes: make([]int64, len(AgeBounds)+1), Bounds: AgeBounds} }

func ageClass(seconds float64) int {
	for i, bound := range AgeBounds {
		if seconds < bound.Seconds() {
			return i
		}
	}
	return len(AgeBounds)
}

// readAges makes the histogram of a queue's waiters: of all of them, or of a
// few hundred spread evenly over the places of each lane.
func readAges(ctx context.Context, tx *store.Tx, q *Queue) (*Ages, error) {
	ages := newAges()
	if q.Queued == 0 {
		return ages, nil
	}
	if q.Queued <= agesExact {
		p := store.ViewAgesParams{State: q.ID, Bound: agesExact}
		for _, l := range q.lanes {
			p.Lanes, p.Heads = append(p.Lanes, l.number), append(p.Heads, l.head)
		}
		rows, err := tx.ViewAges(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("read how long those in queue %d have waited: %w", q.ID, err)
		}
		for _, age := range rows {
			ages.Classes[ageClass(age)]++
		}
		return ages, nil
	}
	lanes, places := probes(q)
	rows, err := tx.ViewAgeProbes(ctx, lanes, places, q.ID)
	if err != nil {
		return nil, fmt.Errorf("probe how long those in queue %d have waited: %w", q.ID, err)
	}
	ages.Estimated, ages.Probes = true, int64(len(rows))
	hits := map[int16][]int64{}
	for _, r := range rows {
		if hits[r.Lane] == nil {
			hits[r.Lane] = make([]int64, len(ages.Classes))
		}
		hits[r.Lane][ageClass(r.Age)]++
	}
	for _, l := range q.lanes {
		spread(ages.Classes, hits[l.number], l.queued)
	}
	return ages, nil
}

// probes spreads the probes over the lanes by their length, and over the places
// of each lane evenly.
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

// spread adds n to the classes in the proportion of the hits, losing none.
func spread(classes, hits []int64, n int64) {
	total := int64(0)
	for _, h := range hits {
		total += h
	}
	if total == 0 || n <= 0 {
		return
	}
	done, seen := int64(0), int64(0)
	for i, h := range hits {
		seen += h
		upTo := int64(math.Round(float64(n) * float64(seen) / float64(total)))
		classes[i] += upTo - done
		done = upTo
	}
}
