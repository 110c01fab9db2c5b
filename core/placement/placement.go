// Package placement chooses the worker of an admitted execution. It is pure: candidates, their load
// and the execution's needs come in, a verdict comes out. It uses no clock: the database measures
// heartbeat ages when it reads the candidates.
//
// A worker that breaks a hard rule of a need is never chosen, and no worker exceeds its capacity.
// An invalid requirement is an error that names the field. An invalid announcement of a worker
// counts as missing, except an invalid taint, which excludes the worker.
package placement

import (
	"cmp"
	"slices"
	"time"
)

// Outcome is the kind of a verdict.
type Outcome int

// The outcomes of Choose.
const (
	Placed       Outcome = iota // Verdict.Worker was chosen
	Busy                        // all fitting live workers are full or receive nothing now: wait
	NoWorkers                   // no live worker at all
	Incompatible                // live workers, but none can run it
)

// Verdict is the answer of Choose.
type Verdict struct {
	Outcome Outcome
	Worker  int64  // set when Placed
	Reason  string // for users; set unless Placed
	// Absent is true if no live worker fits, but an absent one (silent, cordoned or draining)
	// would. Detail names it, unless Reason does.
	Absent bool
	Detail string
	// Seen and Accepts are set if Absent: the newest of those of the absent workers that would fit.
	Seen, Accepts time.Time
	// Renewed is when a worker that does not fit last registered again. It may have fitted before.
	// It is set with NoWorkers and Incompatible.
	Renewed time.Time
}

// Fleet is the set of workers of one batch. Every placed execution takes capacity. It is not safe
// for concurrent use.
type Fleet struct {
	workers  []Worker // by id
	present  int      // number of live ones
	rotation int
	fits     map[fitKey]*fitting
}

// fitKey identifies equal needs: their fitting workers are computed once for a fleet.
type fitKey struct {
	rules string
	fence bool
}

// fitting are the workers that fit a need.
type fitting struct {
	classes [][]*Worker // available ones, the preferred class first
	live    int         // number of available ones
	waited  []*Worker   // alive, but may receive nothing now
	absent  []*Worker
	renewed time.Time          // the newest of the workers that do not fit
	texts   map[Outcome]string // built on demand
}

// NewFleet makes a fleet of the registered workers. rotation must change between batches; it
// rotates the choice among equally loaded workers.
func NewFleet(registered []Worker, rotation int) *Fleet {
	f := &Fleet{workers: slices.Clone(registered), rotation: rotation & (1<<31 - 1), fits: make(map[fitKey]*fitting)}
	sorted := true
	for i := range f.workers {
		sorted = sorted && (i == 0 || f.workers[i-1].ID < f.workers[i].ID)
		if !f.workers[i].Standing.Absent() {
			f.present++
		}
	}
	if !sorted {
		slices.SortFunc(f.workers, func(a, b Worker) int { return cmp.Compare(a.ID, b.ID) })
	}
	return f
}

// Worker returns the worker with this id, or nil.
func (f *Fleet) Worker(id int64) *Worker {
	at, ok := slices.BinarySearchFunc(f.workers, id, func(w Worker, id int64) int { return cmp.Compare(w.ID, id) })
	if !ok {
		return nil
	}
	return &f.workers[at]
}

// Release frees one execution's capacity at a worker. It ignores workers outside of the fleet.
func (f *Fleet) Release(id int64) {
	if w := f.Worker(id); w != nil && w.Assigned > 0 {
		w.Assigned--
	}
}

// Choose picks a worker and takes capacity there. It prefers, in this order: workers on which the
// execution has not failed, if any of them lives; healthy over degraded workers; the highest sum of
// preferences with capacity; workers without an untolerated soft taint; the lowest load by share of
// capacity, rotating among equals.
func (f *Fleet) Choose(need Need) Verdict {
	v := f.Find(need)
	if v.Outcome == Placed {
		f.Worker(v.Worker).Assigned++
		f.rotation++
	}
	return v
}

// Find is Choose without taking capacity.
func (f *Fleet) Find(need Need) Verdict {
	if f.present == 0 {
		return f.noWorkers(need)
	}
	fit := f.fitting(need)
	sieve, open := f.sieve(fit, need)
	if open == 0 {
		return f.refuse(fit, need)
	}
	if best := f.pick(fit, sieve); best != nil {
		return Verdict{Outcome: Placed, Worker: best.ID}
	}
	return Verdict{Outcome: Busy, Reason: fit.busy(sieve, open)}
}

// fitting computes the fitting workers, once for equal needs.
func (f *Fleet) fitting(need Need) *fitting {
	key := fitKey{rules: need.key(), fence: need.Fence}
	if fit := f.fits[key]; fit != nil {
		return fit
	}
	fit := &fitting{}
	var ranked []ranking
	for i := range f.workers {
		w := &f.workers[i]
		if _, ok := need.unmet(w); ok {
			fit.renewed = later(fit.renewed, w.Renewed)
			continue
		}
		switch {
		case w.Standing.Absent():
			fit.absent = append(fit.absent, w)
		case w.Standing != Live:
			fit.waited = append(fit.waited, w)
		default:
			weight, shunned := need.preference(w)
			ranked = append(ranked, ranking{w, w.Health == Degraded, weight, shunned})
		}
	}
	fit.live, fit.classes = len(ranked), classes(ranked)
	f.fits[key] = fit
	return fit
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// ranking is the preference of a fitting worker, regardless of its load.
type ranking struct {
	worker   *Worker
	degraded bool
	weight   int
	shunned  bool
}

func (r ranking) compare(other ranking) int {
	return cmp.Or(last(r.degraded, other.degraded), cmp.Compare(other.weight, r.weight), last(r.shunned, other.shunned))
}

// last orders true after false.
func last(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

func classes(ranked []ranking) [][]*Worker {
	slices.SortStableFunc(ranked, ranking.compare)
	var list [][]*Worker
	for i, r := range ranked {
		if i == 0 || ranked[i-1].compare(r) != 0 {
			list = append(list, nil)
		}
		list[len(list)-1] = append(list[len(list)-1], r.worker)
	}
	return list
}

// sieve excludes some fitting workers for one execution. The zero value excludes none.
type sieve struct {
	except int64
	avoid  []int64
	hosts  []string // of the avoided workers
	tier   tier
}

// tier is the distance of a worker to the avoided ones.
type tier int

const (
	tierFar  tier = iota // neither it nor its host
	tierHost             // its host
	tierSelf             // it is avoided itself
	tierNone             // no worker exists
)

// sieve finds the best tier with a live worker, busy or not, and its number of live workers.
func (f *Fleet) sieve(fit *fitting, need Need) (sieve, int) {
	if need.Except == 0 && len(need.Avoid) == 0 {
		return sieve{}, fit.live
	}
	s, open := sieve{except: need.Except, avoid: need.Avoid, tier: tierNone}, 0
	for _, id := range need.Avoid {
		if w := f.Worker(id); w != nil && w.Host != "" && !slices.Contains(s.hosts, w.Host) {
			s.hosts = append(s.hosts, w.Host)
		}
	}
	for _, class := range fit.classes {
		for _, w := range class {
			near := s.tierOf(w)
			if near < s.tier {
				s.tier, open = near, 0
			}
			if near == s.tier && near != tierNone {
				open++
			}
		}
	}
	return s, open
}

func (s sieve) tierOf(w *Worker) tier {
	switch {
	case w.ID == s.except && s.except != 0:
		return tierNone
	case slices.Contains(s.avoid, w.ID):
		return tierSelf
	case slices.Contains(s.hosts, w.Host):
		return tierHost
	default:
		return tierFar
	}
}

func (s sieve) plain() bool { return s.except == 0 && len(s.avoid) == 0 }

// pick finds the least loaded worker with capacity in the best class that has one.
func (f *Fleet) pick(fit *fitting, s sieve) *Worker {
	plain := s.plain()
	for _, class := range fit.classes {
		var best *Worker
		at := f.rotation % len(class)
		for range class {
			w := class[at]
			if at++; at == len(class) {
				at = 0
			}
			if w.Room() <= 0 || !plain && s.tierOf(w) != s.tier || best != nil && !lighter(w, best) {
				continue
			}
			if best = w; w.Assigned == 0 {
				break // no worker is less loaded
			}
		}
		if best != nil {
			return best
		}
	}
	return nil
}

// lighter compares assigned/capacity without division.
func lighter(a, b *Worker) bool {
	return a.Assigned*max(b.Capacity, 1) < b.Assigned*max(a.Capacity, 1)
}
