package datapath

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/spread"
	"github.com/attune-go/attune/core/store"
)

// workerCapacity is room enough that workers are never the limit.
const workerCapacity = 10_000_000

// workerBatch is how many executions a worker starts, or ends, at once.
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

func newRunning(limit, all int) *running {
	return &running{limit: limit, all: all, now: make(map[int64]int)}
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

// violations is how often an action had more running than its limit, and the
// most that any had.
func (r *running) violations() (above, most int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.above, r.most
}

// worker plays one fast worker process.
type worker struct {
	id          int64
	incarnation uuid.UUID
	store       *store.Store
	wire        *wire
	jobs        *spread.Box[job]
	held        *spread.Box[ended] // jobs whose time is over
	hold        time.Duration
	running     *running
}

// ended is a job that is done at the worker.
type ended struct {
	execution int64
	attempt   int32
	action    int64
	actionRef string
}

// run starts what is dispatched and ends what was held long enough, each in a
// loop of its own, as a worker does.
func (w *worker) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return w.startAll(ctx) })
	group.Go(func() error { return w.finishAll(ctx) })
	return group.Wait()
}

func (w *worker) startAll(ctx context.Context) error {
	for {
		jobs := w.jobs.Take(workerBatch)
		if len(jobs) == 0 {
			select {
			case <-ctx.Done():
				return nil
			case <-w.jobs.Wake():
			}
			continue
		}
		if err := w.start(ctx, jobs); err != nil {
			return over(ctx, err)
		}
	}
}

// over is nil when the error only says that the measurement has ended.
func over(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

// errNotMine is a dispatch that the worker could not start: it was handed over
// twice, or taken away.
var errNotMine = errors.New("an execution that was dispatched could not be started")

func (w *worker) start(ctx context.Context, jobs []job) error {
	params := store.StartExecutionsParams{
		Worker: &w.id, Incarnation: w.incarnation, CancelledResult: []byte(`{}`),
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

func (w *worker) finishAll(ctx context.Context) error {
	for {
		done := w.held.Take(workerBatch)
		if len(done) == 0 {
			select {
			case <-ctx.Done():
				return nil
			case <-w.held.Wake():
			}
			continue
		}
		if err := w.finish(ctx, done); err != nil {
			return over(ctx, err)
		}
	}
}

func (w *worker) finish(ctx context.Context, done []ended) error {
	params := store.FinishExecutionsParams{
		Worker: &w.id, Ids: make([]int64, len(done)), Attempts: make([]int32, len(done)),
		Statuses: make([]string, len(done)), Results: make([]string, len(done)),
	}
	for i, e := range done {
		w.running.ends(e.action)
		params.Ids[i], params.Attempts[i] = e.execution, e.attempt
		params.Statuses[i], params.Results[i] = string(attune.StatusCompleted), `{"succeeded":true,"exit_code":0}`
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
