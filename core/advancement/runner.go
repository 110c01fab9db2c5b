package advancement

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/attune-go/attune/core/crashpoint"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/telemetry"
)

const (
	// batchTimeout bounds one batch.
	batchTimeout = 30 * time.Second
	// pauseLeast and pauseMost bound the pause after a failure.
	pauseLeast, pauseMost = 100 * time.Millisecond, 5 * time.Second
)

// Scheduler runs steps as one transaction; *scheduler.Scheduler does.
type Scheduler interface {
	Run(ctx context.Context, steps ...scheduler.Step) (scheduler.Result, error)
}

// Runner takes orders and runs them. It may be given orders by many at once, before
// it has started too.
type Runner struct {
	supervise.Base

	cfg       Config
	scheduler Scheduler
	sources   *Sources
	logger    *slog.Logger
	metrics   *Metrics
	blame     func(err error, tries int) Blame
	after     func(context.Context, scheduler.Result)

	line *line
	now  func() time.Time
}

// Blame is what a failed batch says about its content.
type Blame int

// The verdicts.
const (
	Patience Blame = iota // nothing: the same again may succeed
	Held                  // somebody holds what a part of it needs
	Slow                  // a part of it takes longer than a batch may
	Content               // a part of it makes it fail
)

// NewRunner makes a Runner. blame says what an error of a batch means that has
// failed so often; after is told what each batch has done besides.
func NewRunner(
	cfg Config, scheduler Scheduler, blame func(err error, tries int) Blame, after func(context.Context, scheduler.Result),
	logger *slog.Logger, metrics *Metrics,
) *Runner {
	return &Runner{
		cfg: cfg.withDefaults(), scheduler: scheduler, sources: NewSources(), logger: logger, metrics: metrics, blame: blame, after: after,
		line: newLine(), now: cfg.withDefaults().Now,
	}
}

// Start implements supervise.Service. Stopping it finishes the batch that runs;
// orders that were not begun are found by the sweep of whoever goes on.
func (r *Runner) Start(ctx context.Context) error { return r.Launch(ctx, nil, r.run) }

// Waiting is how many workflows have orders that were not begun.
func (r *Runner) Waiting() int { return r.line.len() }

// Stuck is how many workflows this replica could neither lead on nor end.
func (r *Runner) Stuck() int { return r.line.stuck() }

// Begin orders workflows to be started.
func (r *Runner) Begin(executions ...int64) {
	for _, id := range executions {
		r.line.add(Order{Start: id})
	}
}

// Advance orders workflows to be led on, since these children have ended.
func (r *Runner) Advance(tasks ...scheduler.Task) {
	for _, task := range tasks {
		r.line.add(Order{Workflow: task.Workflow, Children: []int64{task.Child}})
	}
}

// Look orders workflows to be looked at.
func (r *Runner) Look(workflows ...int64) {
	for _, id := range workflows {
		r.line.add(Order{Workflow: id})
	}
}

// run advances workflows. Those in trouble are tried beside the others, so that they do
// not delay them.
func (r *Runner) run(ctx context.Context) {
	var troubled sync.WaitGroup
	defer troubled.Wait()
	troubled.Go(func() {
		r.loop(ctx, r.line.wakeTroubled, func() ([]Order, time.Duration) { return r.line.takeTroubled(r.now()) })
	})
	r.loop(ctx, r.line.wake, func() ([]Order, time.Duration) { return r.line.take(), time.Hour })
}

func (r *Runner) loop(ctx context.Context, wake <-chan struct{}, take func() ([]Order, time.Duration)) {
	for r.cfg.Gate.Enter(ctx) {
		orders, again := take()
		if len(orders) > 0 {
			r.runBatch(ctx, orders)
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

// runBatch runs orders as one transaction. When the database cannot do it now, whatever it is
// about, or the installation is at fault, it is tried until it can; otherwise the batch is halved until the workflow
// that is to blame is alone, and that is put off.
func (r *Runner) runBatch(ctx context.Context, orders []Order) {
	pause := pauseLeast
	for failures := 1; ctx.Err() == nil; failures++ {
		err := r.once(ctx, orders)
		if r.cfg.Gate.Retry(ctx, "workflows", err) {
			failures--
			continue
		}
		if err == nil {
			r.line.done(orders)
			return
		}
		r.metrics.failed()
		verdict := r.blame(err, failures)
		switch {
		case verdict != Patience && len(orders) > 1:
			middle := len(orders) / 2
			r.runBatch(ctx, orders[:middle])
			r.runBatch(ctx, orders[middle:])
			return
		case verdict != Patience:
			if errors.Is(err, scheduler.ErrConflict) {
				verdict = Held // what changes too fast is led on by others: that is not the workflow's fault
			}
			r.postpone(ctx, orders[0], verdict, err)
			return
		}
		r.logger.WarnContext(ctx, "Workflows cannot be advanced now and are tried again", "workflows", len(orders), "pause", pause, "error", err)
		if !supervise.Sleep(ctx, pause) {
			return
		}
		pause = min(2*pause, pauseMost)
	}
}

// postpone has an order that failed alone tried later, behind the others. A workflow
// that fails again and again is ended, and one that cannot even be ended is left
// alone for a while.
func (r *Runner) postpone(ctx context.Context, order Order, verdict Blame, cause error) {
	ctx = telemetry.With(ctx, slog.Int64("execution_id", order.Start), slog.Int64("workflow", order.Workflow))
	again := r.line.postpone(order, verdict, cause, r.now())
	switch {
	case again >= hopeless:
		r.logger.ErrorContext(ctx, "Workflow can neither be advanced nor ended", "again_in", again, "error", cause)
	case again == 0:
		r.logger.ErrorContext(ctx, "Workflow cannot be advanced and is ended", "error", cause)
	default:
		r.logger.WarnContext(ctx, "Workflow cannot be advanced now and is put off", "again_in", again, "error", cause)
	}
}

// once runs orders as one batch, and to its end even when the engine begins to stop.
func (r *Runner) once(ctx context.Context, orders []Order) error {
	began := time.Now()
	step := NewStep(r.cfg, r.sources, orders)
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), batchTimeout)
	defer cancel()
	result, err := r.attempt(bounded, step)
	if err != nil {
		return err
	}
	crashpoint.Reach("advancement:committed")
	r.metrics.batch(step, time.Since(began))
	r.tell(ctx, step)
	r.Begin(result.Starts...)
	for _, order := range step.Again() {
		r.line.add(order)
	}
	r.after(ctx, result)
	return nil
}

// tell logs what has become of workflows.
func (r *Runner) tell(ctx context.Context, step *Step) {
	for _, c := range step.courses {
		if c.plan == nil {
			continue
		}
		ctx := telemetry.With(ctx, slog.Int64("execution_id", c.execution), slog.Int64("workflow", c.id))
		if c.begun != nil {
			r.logger.InfoContext(ctx, "Workflow started", "action_ref", c.parent.actionRef)
		}
		for _, line := range c.plan.Log {
			r.logger.DebugContext(ctx, "Workflow decided", "decision", line)
		}
		if end := c.plan.End; end != nil {
			r.logger.InfoContext(ctx, "Workflow ended", "action_ref", c.parent.actionRef, "status", end.Status, "reason", end.Error)
		}
	}
}
