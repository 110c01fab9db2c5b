// Package placement chooses the worker that an admitted execution is handed
// to. It is pure: candidates, their load and the execution's needs come in, a
// verdict comes out. Time never enters; how old a heartbeat is was measured by
// the database when the candidates were read.
//
// A worker that breaks a hard rule of a need is never chosen, and no worker is
// given more than it has room for. What is written badly in a need is an error
// that names the field; what a worker announces badly counts as not announced,
// except a taint, which keeps everybody away.
package placement

import (
	"cmp"
	"slices"
)

// Outcome is the kind of a verdict.
type Outcome int

// The outcomes of Choose.
const (
	Placed       Outcome = iota // Verdict.Worker was chosen
	Busy                        // fitting workers live, all are full or get nothing now: wait in order
	NoWorkers                   // no live worker at all
	Incompatible                // live workers, none of which can run it
)

// Verdict is the answer of Choose.
type Verdict struct {
	Outcome Outcome
	Worker  int64  // set when Placed
	Reason  string // for people; set unless Placed
	// Absent is true when none that lives fits, but a registered worker that is
	// silent, cordoned or draining would. Detail names it, unless Reason does.
	Absent bool
	Detail string
}

// Fleet is the set of workers that one batch chooses from. Choosing counts:
// every placed execution takes room. It is not safe for concurrent use.
type Fleet struct {
	workers []Worker // by id
	present int      // how many of them live
	turn    int
	fits    map[fitKey]*fitting
}

// fitKey names those who ask for the same: which workers fit them is worked out
// once for a fleet.
type fitKey struct {
	rules string
	fence bool
}

// fitting are the workers that fit a need.
type fitting struct {
	classes [][]*Worker // those that may be given something, the preferred class first
	live    int         // how many those are
	waited  []*Worker   // alive, but nothing may be given to them now
	absent  []*Worker
	texts   map[Outcome]string // made when first asked for
}

// NewFleet makes a fleet of the registered workers. turn is any number that
// changes between batches; it rotates the choice among equally loaded workers.
func NewFleet(registered []Worker, turn int) *Fleet {
	f := &Fleet{workers: slices.Clone(registered), turn: turn & (1<<31 - 1), fits: make(map[fitKey]*fitting)}
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

// Release gives back one execution's room at a worker. Workers that are not
// in the fleet are ignored.
func (f *Fleet) Release(id int64) {
	if w := f.Worker(id); w != nil && w.Assigned > 0 {
		w.Assigned--
	}
}

// Choose picks a worker and takes room there. Of those that fit it takes one
// on which the execution has not failed as long as any such worker lives; of
// these a healthy one before a degraded one; then the one with the highest sum of
// preferences that has room; then one
// without a taint that asks to be avoided; then the least loaded by share of
// its capacity, in turn among equals.
func (f *Fleet) Choose(need Need) Verdict {
	if f.present == 0 {
		return f.noWorkers(need)
	}
	fit := f.fitting(need)
	sieve, open := f.sieve(fit, need)
	if open == 0 {
		return f.refuse(fit, need)
	}
	if best := f.pick(fit, sieve); best != nil {
		best.Assigned++
		f.turn++
		return Verdict{Outcome: Placed, Worker: best.ID}
	}
	return Verdict{Outcome: Busy, Reason: fit.busy(sieve, open)}
}

// fitting works out who fits, once for all who ask for the same.
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
			continue
		}
		switch {
		case w.Standing.Absent():
			fit.absent = append(fit.absent, w)
		case w.Standing != Live:
			fit.waited = append(fit.waited, w)
		default:
			ranked = append(ranked, ranking{w, w.Health == Degraded, need.weight(w), need.shunned(w)})
		}
	}
	fit.live, fit.classes = len(ranked), classes(ranked)
	f.fits[key] = fit
	return fit
}

// ranking is how much a fitting worker is preferred, whatever its load.
type ranking struct {
	worker   *Worker
	degraded bool
	weight   int
	shunned  bool
}

func (r ranking) compare(other ranking) int {
	return cmp.Or(last(r.degraded, other.degraded), cmp.Compare(other.weight, r.weight), last(r.shunned, other.shunned))
}

// last orders those of whom it is true after the others.
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

// sieve is what keeps one execution from some of the workers that fit it. The
// zero value keeps it from none.
type sieve struct {
	except int64
	avoid  []int64
	hosts  []string // of the workers to avoid
	tier   tier
}

// tier says how near a worker is to those that are to be avoided.
type tier int

const (
	tierFar  tier = iota // neither it nor its host
	tierHost             // its host
	tierSelf             // it is one of them
	tierNone             // there is no worker at all
)

// sieve finds the best tier that has a live worker, busy or not, and how many
// live workers it has.
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

// pick finds the least loaded worker with room of the best class that has one.
func (f *Fleet) pick(fit *fitting, s sieve) *Worker {
	plain := s.plain()
	for _, class := range fit.classes {
		var best *Worker
		at := f.turn % len(class)
		for range class {
			w := class[at]
			if at++; at == len(class) {
				at = 0
			}
			if w.Room() <= 0 || !plain && s.tierOf(w) != s.tier || best != nil && !lighter(w, best) {
				continue
			}
			if best = w; w.Assigned == 0 {
				break // nobody is less loaded
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
