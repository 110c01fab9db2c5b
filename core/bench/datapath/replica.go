package datapath

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/attune-go/attune/core/completion"
	"github.com/attune-go/attune/core/dispatch"
	"github.com/attune-go/attune/core/handover"
	"github.com/attune-go/attune/core/store"
)

// tally is what all replicas have done together.
type tally struct {
	mu       sync.Mutex
	released int             // slots given back; guarded by mu
	ended    int             // executions that the engine ended itself; guarded by mu
	enqueued int             // executions that had to wait; guarded by mu
	failed   int             // rounds that failed and were delivered again; guarded by mu
	rounds   []time.Duration // guarded by mu
	sizes    []int           // executions a round; guarded by mu
	progress chan struct{}   // holds a token after every round
	refused  map[string]int  // failed rounds by their class; guarded by mu
	last     error           // of the last failed round; guarded by mu
}

func newTally() *tally {
	return &tally{progress: make(chan struct{}, 1), refused: make(map[string]int)}
}

func (t *tally) add(result handover.Result, size int, took time.Duration) {
	t.mu.Lock()
	t.released += result.Released
	t.ended += result.Ended
	t.enqueued += result.Enqueued
	t.rounds = append(t.rounds, took)
	t.sizes = append(t.sizes, size)
	t.mu.Unlock()
	t.signal()
}

func (t *tally) addReleased(n int) {
	t.mu.Lock()
	t.released += n
	t.mu.Unlock()
	t.signal()
}

func (t *tally) took(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rounds = append(t.rounds, d)
	t.sizes = append(t.sizes, 1)
}

func (t *tally) signal() {
	select {
	case t.progress <- struct{}{}:
	default:
	}
}

func (t *tally) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed++
	t.refused[store.ClassOf(err).String()]++
	t.last = err
}

// done is how many executions have come to their end.
func (t *tally) done() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.released + t.ended
}

// forget drops what was tallied before the measurement.
func (t *tally) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.released, t.ended, t.enqueued, t.failed = 0, 0, 0, 0
	t.rounds, t.sizes = nil, nil
	clear(t.refused)
}

// replica is the loop of one engine, in the shape of core/engine: completions
// first, then requests, whatever has arrived, as one round.
type replica struct {
	rounds   *handover.HandOver
	wire     *wire
	tally    *tally
	batch    int  // requests a round; twice as many completions
	careless bool // failed rounds are part of the measurement

	unfilled []int64
	left     []int64     // executions whose queue another replica held; they are insisted on next
	held     [2][]int64  // the same executions: with a report of their end, with a request
	wake     *time.Timer // somebody waits for a moment to come
	due      bool        // the moment has come
}

func (r *replica) run(ctx context.Context) error {
	defer r.wake.Stop()
	for ctx.Err() == nil {
		ended, requested := r.wire.completed.take(2*r.batch), r.wire.requested.take(r.batch)
		ended, requested = append(r.held[0], ended...), append(r.held[1], requested...)
		r.held = [2][]int64{}
		if len(ended)+len(requested)+len(r.unfilled) == 0 && !r.due {
			select {
			case <-ctx.Done():
			case <-r.wire.completed.wake:
			case <-r.wire.requested.wake:
			case <-r.wake.C:
				r.due = true
			}
			continue
		}
		if err := r.round(ctx, ended, requested); err != nil {
			return over(ctx, err)
		}
	}
	return nil
}

// maxFailures bounds the rounds that may fail when failures are not part of
// the measurement; they are reported.
const maxFailures = 100

func (r *replica) round(ctx context.Context, ended, requested []int64) error {
	queues := r.unfilled
	r.unfilled, r.due = nil, false
	begun := time.Now()
	insists := make(map[int64]bool, len(r.left))
	for _, id := range r.left {
		insists[id] = true
	}
	result, err := r.rounds.RunSparing(ctx, insists, completion.New(once(ended)), handover.Fill{Queues: queues}, dispatch.New(once(requested)))
	if err == nil {
		r.unfilled, r.left = result.Unfilled, nil
		r.keep(result.Left, ended, requested)
		if result.Wake > 0 {
			r.wake.Reset(result.Wake)
		}
		r.tally.add(result, len(ended)+len(requested), time.Since(begun))
		return nil
	}
	if ctx.Err() != nil {
		return err
	}
	r.tally.fail(err)
	if !r.careless && r.tally.failures() > maxFailures {
		return fmt.Errorf("too many rounds fail: %w", err)
	}
	// As a broker does with what is not acknowledged: to whoever takes next.
	r.unfilled = queues
	r.wire.completed.put(ended...)
	r.wire.requested.put(requested...)
	return nil
}

// keep takes what was left into hand. What is left when nothing was served is insisted
// on by the next round.
func (r *replica) keep(left, ended, requested []int64) {
	is := make(map[int64]bool, len(left))
	for _, id := range left {
		is[id] = true
	}
	of := func(ids []int64) []int64 {
		return slices.DeleteFunc(slices.Clone(ids), func(id int64) bool { return !is[id] })
	}
	r.held = [2][]int64{of(ended), of(requested)}
	if len(r.held[0])+len(r.held[1]) == len(ended)+len(requested) {
		r.left = left
	}
}

func (t *tally) failures() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed
}

// once drops repetitions and keeps the order.
func once(ids []int64) []int64 {
	seen := make(map[int64]struct{}, len(ids))
	return slices.DeleteFunc(slices.Clone(ids), func(id int64) bool {
		_, again := seen[id]
		seen[id] = struct{}{}
		return again
	})
}
