// Package placement chooses the worker that an admitted execution is handed
// to. It is pure: candidates, their load and the execution's needs come in, a
// verdict comes out. Time never enters; whether a heartbeat is fresh was
// judged by the database when the candidates were read.
package placement

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// HeadroomPerWorker is how many dispatches may lie unstarted at a worker
// beyond the executions it runs at once, so that it never idles while the
// next message travels. It equals what existing workers prefetch.
const HeadroomPerWorker = 2

// Worker is one candidate.
type Worker struct {
	ID       int64
	Name     string
	Capacity int      // executions it runs at once
	Assigned int      // executions handed to it and not yet released
	Runtimes []string // normalised runtime names it announced
	// AttemptFence is true for workers that refuse a dispatch with an older
	// attempt number.
	AttemptFence bool
	// Deaf is true for a worker that is alive but says that the broker delivers
	// nothing to it. It is given nothing and waited for, as if it were full.
	Deaf bool
}

// Room is how many more executions may be handed to the worker now.
func (w Worker) Room() int {
	if w.Deaf {
		return 0
	}
	return w.Capacity + HeadroomPerWorker - w.Assigned
}

// Need is what an execution asks of its worker.
type Need struct {
	// Runtimes are the acceptable names of the action's runtime (its name and
	// aliases, normalised). Empty means that any worker will do.
	Runtimes []string
}

// Outcome is the kind of a verdict.
type Outcome int

// The outcomes of Choose.
const (
	Placed       Outcome = iota // Verdict.Worker was chosen
	Busy                        // fitting workers live, all are full or deaf: wait in order
	NoWorkers                   // no live worker at all
	Incompatible                // live workers, none of which can run it
)

// Verdict is the answer of Choose.
type Verdict struct {
	Outcome Outcome
	Worker  int64  // set when Placed
	Reason  string // for people; set unless Placed
}

// Fleet is the set of live workers that one batch chooses from. Choosing
// counts: every placed execution takes room. It is not safe for concurrent
// use.
type Fleet struct {
	workers []*Worker
	byID    map[int64]*Worker
	turn    int
}

// NewFleet makes a fleet of live workers. turn is any number that changes
// between batches; it rotates the choice among equally loaded workers.
func NewFleet(live []Worker, turn int) *Fleet {
	f := &Fleet{byID: make(map[int64]*Worker, len(live)), turn: turn}
	for i := range live {
		w := live[i]
		f.workers = append(f.workers, &w)
		f.byID[w.ID] = &w
	}
	sort.Slice(f.workers, func(i, j int) bool { return f.workers[i].ID < f.workers[j].ID })
	return f
}

// Worker returns the live worker with this id, or nil.
func (f *Fleet) Worker(id int64) *Worker { return f.byID[id] }

// Release gives back one execution's room at a worker. Workers that are not
// in the fleet (gone, cordoned) are ignored.
func (f *Fleet) Release(id int64) {
	if w := f.byID[id]; w != nil && w.Assigned > 0 {
		w.Assigned--
	}
}

// Choose picks the least loaded fitting worker, by share of its capacity, in
// turn among equals, and takes room there.
func (f *Fleet) Choose(need Need) Verdict {
	if len(f.workers) == 0 {
		return Verdict{Outcome: NoWorkers, Reason: "no workers available"}
	}
	best, fitting := f.leastLoaded(need)
	switch {
	case best != nil:
		best.Assigned++
		f.turn++
		return Verdict{Outcome: Placed, Worker: best.ID}
	case fitting > 0:
		return Verdict{Outcome: Busy, Reason: fmt.Sprintf("waiting for a worker: all %d fitting workers are busy or cut off from the broker", fitting)}
	default:
		return Verdict{Outcome: Incompatible, Reason: fmt.Sprintf(
			"no compatible worker: none of %d live workers has the runtime %s", len(f.workers), strings.Join(need.Runtimes, " or "))}
	}
}

func (f *Fleet) leastLoaded(need Need) (best *Worker, fitting int) {
	count := len(f.workers)
	for i := range count {
		w := f.workers[(i+f.turn%count+count)%count]
		if !fits(need, w) {
			continue
		}
		fitting++
		if w.Room() > 0 && (best == nil || lighter(w, best)) {
			best = w
		}
	}
	return best, fitting
}

// lighter compares assigned/capacity without division.
func lighter(a, b *Worker) bool {
	return a.Assigned*max(b.Capacity, 1) < b.Assigned*max(a.Capacity, 1)
}

func fits(need Need, w *Worker) bool {
	if len(need.Runtimes) == 0 {
		return true
	}
	for _, wanted := range need.Runtimes {
		if slices.Contains(w.Runtimes, wanted) {
			return true
		}
	}
	return false
}
