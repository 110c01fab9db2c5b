package advancement

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/attune-go/attune/core/batch"
	"github.com/attune-go/attune/core/crashpoint"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/telemetry"
)

const (
	// batchTimeout bounds one batch.
	batchTimeout = 30 * time.Second
	// pauseLeast and pauseMost bound the pause of a workflow that failed alone.
	pauseLeast, pauseMost = 100 * time.Millisecond, 5 * time.Second
)

// Scheduler runs steps as one transaction; *scheduler.Scheduler is one.
type Scheduler interface {
	Run(ctx context.Context, steps ...scheduler.Step) (scheduler.Result, error)
}

// Runner takes requests and runs them. It is safe for concurrent use, also before its start.
type Runner struct {
	supervise.Base

	cfg       Config
	scheduler Scheduler
	sources   *Sources
	logger    *slog.Logger
	metrics   *Metrics
	classify  func(err error, tries int) batch.Verdict
	after     func(context.Context, scheduler.Result)

	queue *queue
	now   func() time.Time
}

// NewRunner makes a Runner. classify returns the verdict on an error of a batch after so many
// tries; after receives the result of each batch.
func NewRunner(
	cfg Config, scheduler Scheduler, classify func(err error, tries int) batch.Verdict,
	after func(context.Context, scheduler.Result),
	logger *slog.Logger, metrics *Metrics,
) *Runner {
	return &Runner{
		cfg: cfg.withDefaults(), scheduler: scheduler, sources: NewSources(), logger: logger,
		metrics:  cmp.Or(metrics, NewMetrics(nil)),
		classify: classify, after: after,
		queue: newQueue(), now: cfg.withDefaults().Now,
	}
}

// Start implements supervise.Service. Stop finishes the running batch; the sweep of another replica
// finds the waiting requests.
func (r *Runner) Start(ctx context.Context) error { return r.Launch(ctx, nil, r.run) }

// Waiting is the number of workflows with waiting requests.
func (r *Runner) Waiting() int { return r.queue.len() }

// Stuck is the number of workflows that this replica could neither advance nor end.
func (r *Runner) Stuck() int { return r.queue.stuck() }

// Begin orders the start of workflows.
func (r *Runner) Begin(executions ...int64) {
	for _, id := range executions {
		r.queue.add(Request{Start: id})
	}
}

// Advance requests the advance of workflows whose children have ended.
func (r *Runner) Advance(tasks ...scheduler.Task) {
	for _, task := range tasks {
		r.queue.add(Request{Workflow: task.Workflow, Children: []int64{task.Child}})
	}
}

// Recheck requests a check of workflows.
func (r *Runner) Recheck(workflows ...int64) {
	for _, id := range workflows {
		r.queue.add(Request{Workflow: id})
	}
}

// run advances workflows. It runs failing workflows concurrently, so that they delay no others.
func (r *Runner) run(ctx context.Context) {
	var failing sync.WaitGroup
	defer failing.Wait()
	failing.Go(func() {
		r.loop(ctx, r.queue.wakeFailing, func() ([]Request, time.Duration) { return r.queue.dequeueFailing(r.now()) })
	})
	r.loop(ctx, r.queue.wake, func() ([]Request, time.Duration) { return r.queue.dequeue(), time.Hour })
}

func (r *Runner) loop(ctx context.Context, wake <-chan struct{}, take func() ([]Request, time.Duration)) {
	for r.cfg.Gate.Enter(ctx) {
		requests, again := take()
		if len(requests) > 0 {
			r.runBatch(ctx, requests)
			continue
		}
		later := time.NewTimer(again)
		select {
		case <-ctx.Done():
		case <-wake:
		case <-later.C:
		}
		later.Stop()
	}
}

// runBatch runs requests as one transaction, until they are done or postponed, or the engine stops.
// It postpones a request that fails alone.
func (r *Runner) runBatch(ctx context.Context, requests []Request) {
	// Its only error is the stop of the engine.
	_ = batch.Run(ctx, r.cfg.Gate, "workflows", work{r}, requests)
}

// work is the work of a Runner with a batch of requests.
type work struct{ *Runner }

// Failed counts and logs a failure.
func (r work) Failed(ctx context.Context, requests []Request, f batch.Failure) batch.Verdict {
	r.metrics.failures.Inc()
	verdict := r.classify(f.Err, f.Tries)
	if verdict == batch.Again {
		r.logger.WarnContext(ctx, "Workflows not advanced, retrying",
			"workflows", len(requests), "pause", f.Pause, "error", f.Err)
	}
	return verdict
}

// Split halves a batch.
func (work) Split(requests []Request, _ batch.Failure) [][]Request { return batch.Halves(requests) }

// Alone postpones a request that failed alone. A workflow that fails repeatedly is ended, and one
// that cannot even be ended pauses for a while.
func (r work) Alone(ctx context.Context, requests []Request, f batch.Failure) bool {
	request, verdict := requests[0], f.Verdict
	if errors.Is(f.Err, scheduler.ErrConflict) {
		verdict = batch.Blocked // other transactions change its rows too fast: not the workflow's fault
	}
	ctx = telemetry.With(ctx, slog.Int64("execution_id", request.Start), slog.Int64("workflow", request.Workflow))
	again := r.queue.postpone(request, verdict, f.Err, r.now())
	switch {
	case again >= stuckPause:
		r.logger.ErrorContext(ctx, "Workflow can neither be advanced nor ended", "again_in", again, "error", f.Err)
	case again == 0:
		r.logger.ErrorContext(ctx, "Workflow cannot be advanced and is ended", "error", f.Err)
	default:
		r.logger.WarnContext(ctx, "Workflow not advanced, postponed", "again_in", again, "error", f.Err)
	}
	return false
}

// Try runs requests as one batch, and finishes it even if the engine stops.
func (r work) Try(ctx context.Context, requests []Request) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	began := time.Now()
	step := NewStep(r.cfg, r.sources, requests)
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), batchTimeout)
	defer cancel()
	result, err := r.runStep(bounded, step)
	if err != nil {
		return err
	}
	crashpoint.Reach("advancement:committed")
	r.metrics.batch(step, time.Since(began))
	r.logDecisions(ctx, step)
	r.Begin(result.Starts...)
	for _, request := range step.Again() {
		r.queue.add(request)
	}
	if step.stops() {
		r.cfg.Stopped()
	}
	r.after(ctx, result)
	r.queue.done(requests)
	return nil
}

// runStep turns a panic into an error: otherwise it would crash one replica after the other, because each finds the
// same workflow.
func (r *Runner) runStep(ctx context.Context, step *Step) (result scheduler.Result, err error) {
	defer func() {
		if defect := recover(); defect != nil {
			r.logger.ErrorContext(ctx, "Workflow batch panicked", "defect", defect, "stack", string(debug.Stack()))
			err = fmt.Errorf("a defect of the engine: %v", defect)
		}
	}()
	return r.scheduler.Run(ctx, step)
}

func (r *Runner) logDecisions(ctx context.Context, step *Step) {
	for _, c := range step.advances {
		ctx := telemetry.With(ctx, slog.Int64("execution_id", c.row.Execution), slog.Int64("workflow", c.row.ID))
		if c.phase == begins {
			r.logger.InfoContext(ctx, "Workflow started", "action_ref", c.row.ActionRef)
		}
		for _, line := range c.plan.Log {
			r.logger.DebugContext(ctx, "Workflow decided", "decision", line)
		}
		if end := c.plan.End; end != nil {
			r.logger.InfoContext(ctx, "Workflow ended",
				"action_ref", c.row.ActionRef, "status", end.Status, "reason", end.Error)
		}
	}
}
