package datapath

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/attune-go/attune/core/engine"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/store"
)

// workerCapacity is so large that workers are never the limit.
const workerCapacity = 10_000_000

// workerBatch is the number of executions that a worker starts, or ends, at once.
const workerBatch = 100

// running counts executions between their start and their end, by action.
type running struct {
	limit int // of an action; 0: none
	all   int // of all together; 0: none

	mu    sync.Mutex
	total int           // guarded by mu
	now   map[int64]int // guarded by mu
	most  int           // guarded by mu
	above int           // starts above the limit; guarded by mu
}

func (r *running) started(action int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now[action]++
	r.total++
	r.most = max(r.most, r.now[action])
	if (r.limit > 0 && r.now[action] > r.limit) || (r.all > 0 && r.total > r.all) {
		r.above++
	}
}

func (r *running) ends(action int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now[action]--
	r.total--
}

// violations returns the number of starts above a limit, and the most running executions of any action.
func (r *running) violations() (above, most int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.above, r.most
}

// worker simulates one fast worker process.
type worker struct {
	id          int64
	incarnation uuid.UUID
	store       *store.Store
	wire        *wire
	jobs        *engine.Box[job]
	held        *engine.Box[ended] // finished jobs
	hold        time.Duration
	running     *running
}

// ended is a finished job.
type ended struct {
	execution int64
	attempt   int32
	action    int64
	actionRef string
}

// run starts dispatched executions and ends finished ones, each in a loop of its own, as a worker does.
func (w *worker) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return consume(ctx, w.jobs, workerBatch, w.start) })
	group.Go(func() error { return consume(ctx, w.held, workerBatch, w.finish) })
	return group.Wait()
}

// consume handles the items of a box, at most most at once, until ctx ends.
func consume[T any](ctx context.Context, box *engine.Box[T], most int, handle func(context.Context, []T) error) error {
	for ctx.Err() == nil {
		items := box.Take(most)
		if len(items) == 0 {
			select {
			case <-ctx.Done():
			case <-box.Wake():
			}
			continue
		}
		if err := handle(ctx, items); err != nil {
			return ignoreEnd(ctx, err)
		}
	}
	return nil
}

// ignoreEnd drops an error caused by the end of the measurement.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

// errNotMine reports a dispatched execution that the worker could not start or end.
var errNotMine = errors.New("a dispatched execution does not belong to the worker")

func (w *worker) start(ctx context.Context, jobs []job) error {
	params := store.StartExecutionsParams{
		Worker: &w.id, Incarnation: w.incarnation,
		Ids: make([]int64, len(jobs)), Attempts: make([]int32, len(jobs)),
	}
	refs := make(map[int64]string, len(jobs))
	for i, j := range jobs {
		params.Ids[i], params.Attempts[i] = j.execution, j.attempt
		refs[j.execution] = j.actionRef
	}
	rows, err := w.store.StartExecutions(ctx, params)
	if err != nil {
		return fmt.Errorf("start %d executions: %w", len(jobs), err)
	}
	if len(rows) != len(jobs) {
		return fmt.Errorf("start %d executions, started %d: %w", len(jobs), len(rows), errNotMine)
	}
	done := make([]ended, len(rows))
	for i, row := range rows {
		done[i] = ended{execution: row.ID, attempt: row.Attempt, action: *row.Action, actionRef: refs[row.ID]}
		w.running.started(*row.Action)
	}
	if w.hold == 0 {
		w.held.Put(done...)
		return nil
	}
	time.AfterFunc(w.hold, func() { w.held.Put(done...) })
	return nil
}

func (w *worker) finish(ctx context.Context, done []ended) error {
	params := store.FinishExecutionsParams{
		Worker: &w.id, Ids: make([]int64, len(done)), Attempts: make([]int32, len(done)),
		Statuses: make([]string, len(done)), Results: make([]string, len(done)),
	}
	for i, e := range done {
		w.running.ends(e.action)
		params.Ids[i], params.Attempts[i] = e.execution, e.attempt
		params.Statuses[i], params.Results[i] = string(lifecycle.StatusCompleted), `{"succeeded":true,"exit_code":0}`
	}
	rows, err := w.store.FinishExecutions(ctx, params)
	if err != nil {
		return fmt.Errorf("end %d executions: %w", len(done), err)
	}
	if len(rows) != len(done) {
		return fmt.Errorf("end %d executions, ended %d: %w", len(done), len(rows), errNotMine)
	}
	notes := make([]note, len(done))
	for i, e := range done {
		notes[i] = note{execution: e.execution, actionRef: e.actionRef}
	}
	w.wire.ended(notes)
	return nil
}
