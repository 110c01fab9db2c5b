package worker

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/tracing"
)

// The causes for ending the context of an execution.
var (
	// ErrCancelled: the execution was cancelled.
	ErrCancelled = errors.New("Execution cancelled by user") //nolint:staticcheck // published text
	// ErrTimeout: the execution ran longer than it may.
	ErrTimeout = errors.New("timed out")
	// ErrShutdown: the worker stopped before the action ended.
	ErrShutdown = errors.New("worker shut down before the action ended")
	// ErrTaken: the row no longer belongs to this worker.
	ErrTaken = errors.New("the execution was taken away")
)

// job is one dispatch in this process, from before its start statement until its end is written.
type job struct {
	id       int64
	attempt  int32 // 0 until the start if the dispatch has none
	ctx      context.Context
	cancel   context.CancelCauseFunc
	delivery *broker.Delivery // of the dispatch
	row      started          // after the start
	traced   tracing.Context  // of its run; zero while tracing is off
	active   bool             // started; guarded by the roster's mu
	begun    chan struct{}    // closed when the action has begun, or will not
	returned bool             // nothing ran: the dispatch goes back to its queue; read after begun
}

// begin says that the action has begun, or that it will not. One goroutine at a time calls it.
func (j *job) begin() {
	if !j.hasBegun() {
		close(j.begun)
	}
}

// hasBegun reports whether something of the action may have run.
func (j *job) hasBegun() bool {
	select {
	case <-j.begun:
		return true
	default:
		return false
	}
}

// roster holds the dispatches in hand and the capacity for more. Entries exist before the start is
// written, so that a cancel in between finds them. Unknown ids leave no entry. The attempt is part of the identity: a
// dispatch of another attempt, which starts nothing, does not keep away the true one.
type roster struct {
	mu      sync.Mutex
	jobs    map[int64][]*job // by execution; guarded by mu
	inHands int              // number of jobs; guarded by mu
	running int              // used places
	changed chan struct{}    // closed and replaced when places or jobs are removed

	places int // how many run at once
	open   int // how many may be in hand, including unwritten ends
}

func newRoster(places int) *roster {
	return &roster{
		jobs: make(map[int64][]*job), changed: make(chan struct{}),
		places: places, open: 4*places + 64,
	}
}

// acquire waits for a free place and takes up to want. Unwritten ends block new starts before they
// fill the memory. Zero means that the context ended.
func (r *roster) acquire(ctx context.Context, want int) int {
	for ctx.Err() == nil {
		r.mu.Lock()
		free := min(want, r.places-r.running, r.open-r.inHands)
		if free > 0 {
			r.running += free
			r.mu.Unlock()
			return free
		}
		changed := r.changed
		r.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
	return 0
}

// release frees places.
func (r *roster) release(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running -= n
	r.notify()
}

// add adds a dispatch, or returns false if the same one is already in hand.
func (r *roster) add(ctx context.Context, id int64, attempt int32) (*job, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.find(id, attempt) != nil {
		return nil, false
	}
	j := &job{id: id, attempt: attempt, begun: make(chan struct{})}
	j.ctx, j.cancel = context.WithCancelCause(ctx)
	r.jobs[id] = append(r.jobs[id], j)
	r.inHands++
	return j, true
}

func (r *roster) find(id int64, attempt int32) *job {
	for _, j := range r.jobs[id] {
		if j.attempt == attempt {
			return j
		}
	}
	return nil
}

// remove removes a dispatch and frees its context.
func (r *roster) remove(j *job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rest := slices.DeleteFunc(r.jobs[j.id], func(other *job) bool { return other == j })
	r.inHands -= len(r.jobs[j.id]) - len(rest)
	if r.jobs[j.id] = rest; len(rest) == 0 {
		delete(r.jobs, j.id)
	}
	j.cancel(nil)
	r.notify()
}

// started marks the job's row as running. It returns false if another job runs it.
func (r *roster) started(j *job, row started) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if other := r.find(j.id, row.Attempt); other != nil && other != j {
		return false
	}
	j.row, j.attempt, j.active = row, row.Attempt, true
	return true
}

// inHand reports whether a dispatch of the execution is in hand.
func (r *roster) inHand(id int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.jobs[id]) > 0
}

// interrupt ends the contexts of an execution, and reports whether it is in hand.
func (r *roster) interrupt(id int64, cause error) bool {
	return r.interruptExcept(id, noAttempt, cause)
}

const noAttempt = -1

// interruptExcept ends the contexts of an execution but those of the attempt in force, and reports whether there were
// any. A dispatch without an attempt is of the attempt in force.
func (r *roster) interruptExcept(id int64, attempt int32, cause error) (found bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, j := range r.jobs[id] {
		if attempt == noAttempt || j.attempt != 0 && j.attempt != attempt {
			j.cancel(cause)
			found = true
		}
	}
	return found
}

// interruptAll ends the contexts of all executions in hand.
func (r *roster) interruptAll(cause error) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, jobs := range r.jobs {
		for _, j := range jobs {
			j.cancel(cause)
		}
	}
	return r.inHands
}

// active lists the executions whose rows are running, with their attempts.
func (r *roster) active() map[int64]int32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := make(map[int64]int32, len(r.jobs))
	for id, jobs := range r.jobs {
		for _, j := range jobs {
			if j.active {
				found[id] = j.attempt
			}
		}
	}
	return found
}

// size is the number of executions in hand.
func (r *roster) size() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.inHands
}

// wait returns true when nothing is in hand, or false when the context ends first.
func (r *roster) wait(ctx context.Context) bool {
	for {
		r.mu.Lock()
		empty, changed := r.inHands == 0, r.changed
		r.mu.Unlock()
		if empty {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-changed:
		}
	}
}

func (r *roster) notify() {
	close(r.changed)
	r.changed = make(chan struct{})
}
