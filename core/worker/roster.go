package worker

import (
	"context"
	"errors"
	"sync"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/trace"
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

// job is one execution of this process, from before its start statement until its end is written.
type job struct {
	id      int64
	attempt int32
	ctx     context.Context
	cancel  context.CancelCauseFunc
	row     store.StartExecutionsRow // after the start
	traced  trace.Context            // of its run; zero while tracing is off
	active  bool                     // started; guarded by the roster's mu
}

// roster holds the executions in hand and the capacity for more. Entries exist before the start is
// written, so that a cancel in between finds them. Unknown ids leave no entry.
type roster struct {
	mu      sync.Mutex
	jobs    map[int64]*job
	running int           // used places
	changed chan struct{} // closed and replaced when places or jobs are removed

	places int // how many run at once
	open   int // how many may be in hand, including unwritten ends
}

func newRoster(places int) *roster {
	return &roster{
		jobs: make(map[int64]*job), changed: make(chan struct{}),
		places: places, open: 4*places + 64,
	}
}

// acquire waits for a free place and takes up to want. Unwritten ends block new starts before they
// fill the memory. Zero means that the context ended.
func (r *roster) acquire(ctx context.Context, want int) int {
	for {
		r.mu.Lock()
		free := min(want, r.places-r.running, r.open-len(r.jobs))
		if free > 0 {
			r.running += free
			r.mu.Unlock()
			return free
		}
		changed := r.changed
		r.mu.Unlock()
		select {
		case <-ctx.Done():
			return 0
		case <-changed:
		}
	}
}

// release frees places.
func (r *roster) release(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running -= n
	r.notify()
}

// add adds an execution, or returns false if it is already in hand.
func (r *roster) add(ctx context.Context, id int64, attempt int32) (*job, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.jobs[id]; ok {
		return nil, false
	}
	j := &job{id: id, attempt: attempt}
	j.ctx, j.cancel = context.WithCancelCause(ctx)
	r.jobs[id] = j
	return j, true
}

// remove removes an execution and frees its context.
func (r *roster) remove(j *job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.jobs, j.id)
	j.cancel(nil)
	r.notify()
}

// started marks the job's row as running.
func (r *roster) started(j *job, row store.StartExecutionsRow) {
	r.mu.Lock()
	defer r.mu.Unlock()
	j.row, j.attempt, j.active = row, row.Attempt, true
}

// attempt is the attempt of an execution in hand, 0 if its dispatch has none.
func (r *roster) attempt(id int64) (attempt int32, inHand bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	j, ok := r.jobs[id]
	if !ok {
		return 0, false
	}
	return j.attempt, true
}

// interrupt ends the context of an execution, and reports whether it is in hand.
func (r *roster) interrupt(id int64, cause error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	j, ok := r.jobs[id]
	if ok {
		j.cancel(cause)
	}
	return ok
}

// interruptAll ends the contexts of all executions in hand.
func (r *roster) interruptAll(cause error) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, j := range r.jobs {
		j.cancel(cause)
	}
	return len(r.jobs)
}

// active lists the executions whose rows are running, with their attempts.
func (r *roster) active() map[int64]int32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := make(map[int64]int32, len(r.jobs))
	for id, j := range r.jobs {
		if j.active {
			found[id] = j.attempt
		}
	}
	return found
}

// size is the number of executions in hand.
func (r *roster) size() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.jobs)
}

// wait returns true when nothing is in hand, or false when the context ends first.
func (r *roster) wait(ctx context.Context) bool {
	for {
		r.mu.Lock()
		empty, changed := len(r.jobs) == 0, r.changed
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
