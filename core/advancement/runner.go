package advancement

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/attune-go/attune/core/crashpoint"
	"github.com/attune-go/attune/core/handover"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/telemetry"
)

const (
	// maxOrders bounds how many workflows one round leads on.
	maxOrders = 64
	// roundTimeout bounds one round.
	roundTimeout = 30 * time.Second
	// maxFailures is how often a workflow may fail alone before it is given up.
	maxFailures = 6
	// pauseLeast and pauseMost bound the pause after a failure.
	pauseLeast, pauseMost = 100 * time.Millisecond, 5 * time.Second
)

// Rounds runs steps as one transaction; *handover.HandOver does.
type Rounds interface {
	Run(ctx context.Context, steps ...handover.Step) (handover.Result, error)
}

// Runner takes orders and runs them. It may be given orders by many at once, before
// it has started too.
type Runner struct {
	supervise.Base

	cfg     Config
	rounds  Rounds
	sources *Sources
	logger  *slog.Logger
	metrics *Metrics
	blame   func(err error, tries int) Blame
	after   func(context.Context, handover.Result)

	mu     sync.Mutex
	orders map[key]*Order
	line   []key
	wake   chan struct{}
}

// Blame is what a failed round says about its content.
type Blame int

// The verdicts.
const (
	Patience Blame = iota // nothing: the same again may succeed
	Held                  // somebody holds what a part of it needs
	Content               // a part of it makes it fail
)

// key names what an order is about.
type key struct{ start, workflow int64 }

// NewRunner makes a Runner. blame says what an error of a round means that has
// failed so often; after is told what each round has done besides.
func NewRunner(
	cfg Config, rounds Rounds, blame func(err error, tries int) Blame, after func(context.Context, handover.Result),
	logger *slog.Logger, metrics *Metrics,
) *Runner {
	return &Runner{
		cfg: cfg.withDefaults(), rounds: rounds, sources: NewSources(), logger: logger, metrics: metrics, blame: blame, after: after,
		orders: map[key]*Order{}, wake: make(chan struct{}, 1),
	}
}

// Start implements supervise.Service. Stopping it finishes the round that runs;
// orders that were not begun are found by the sweep of whoever goes on.
func (r *Runner) Start(ctx context.Context) error { return r.Launch(ctx, nil, r.run) }

// Begin orders workflows to be started.
func (r *Runner) Begin(executions ...int64) {
	for _, id := range executions {
		r.add(Order{Start: id})
	}
}

// Advance orders workflows to be led on, since these children have ended.
func (r *Runner) Advance(tasks ...handover.Task) {
	for _, task := range tasks {
		r.add(Order{Workflow: task.Workflow, Children: []int64{task.Child}})
	}
}

// Look orders workflows to be looked at.
func (r *Runner) Look(workflows ...int64) {
	for _, id := range workflows {
		r.add(Order{Workflow: id})
	}
}

func (r *Runner) add(order Order) {
	r.mu.Lock()
	k := key{order.Start, order.Workflow}
	if known := r.orders[k]; known != nil {
		known.Children = append(known.Children, order.Children...)
	} else {
		r.orders[k] = &order
		r.line = append(r.line, k)
	}
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// take removes the next orders from the line.
func (r *Runner) take() []Order {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(len(r.line), maxOrders)
	taken := make([]Order, n)
	for i, k := range r.line[:n] {
		taken[i] = *r.orders[k]
		delete(r.orders, k)
	}
	r.line = slices.Delete(r.line, 0, n)
	return taken
}

// Waiting is how many workflows have orders that were not begun.
func (r *Runner) Waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.line)
}

func (r *Runner) run(ctx context.Context) {
	for {
		orders := r.take()
		if len(orders) == 0 {
			select {
			case <-ctx.Done():
				return
			case <-r.wake:
			}
			continue
		}
		if r.round(ctx, orders); ctx.Err() != nil {
			return
		}
	}
}

// round runs orders as one round until they have succeeded, each alone if need be.
func (r *Runner) round(ctx context.Context, orders []Order) {
	pause := pauseLeast
	for failures := 1; ctx.Err() == nil; failures++ {
		err := r.once(ctx, orders)
		if err == nil {
			return
		}
		r.metrics.failed()
		verdict := r.blame(err, failures)
		switch {
		case verdict != Patience && len(orders) > 1:
			middle := len(orders) / 2
			r.round(ctx, orders[:middle])
			r.round(ctx, orders[middle:])
			return
		case verdict == Held, verdict == Content && errors.Is(err, handover.ErrMoved):
			// What changes too fast is led on by others: that is not the workflow's fault,
			// however often a slow replica loses against them.
			r.logger.WarnContext(ctx, "Workflow is held or changed by others and put off", "workflow", orders[0].Workflow, "error", err)
			r.add(orders[0]) // behind the others
			supervise.Sleep(ctx, pause)
			return
		case verdict == Content && failures > maxFailures:
			r.giveUp(ctx, orders[0], err)
			return
		}
		r.logger.WarnContext(ctx, "Workflows cannot be advanced now and are tried again", "workflows", len(orders), "pause", pause, "error", err)
		if !supervise.Sleep(ctx, pause) {
			return
		}
		pause = min(2*pause, pauseMost)
	}
}

// once runs orders as one round, and to its end even when the engine begins to stop.
func (r *Runner) once(ctx context.Context, orders []Order) error {
	began := time.Now()
	step := NewStep(r.cfg, r.sources, orders)
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), roundTimeout)
	defer cancel()
	result, err := r.rounds.Run(bounded, step)
	if err != nil {
		return err
	}
	crashpoint.Reach("advancement:committed")
	r.metrics.round(step, time.Since(began))
	r.tell(ctx, step)
	r.Begin(result.Starts...)
	for _, order := range step.Again() {
		r.add(order)
	}
	r.after(ctx, result)
	return nil
}

// giveUp ends a workflow that fails whenever it is to be led on.
func (r *Runner) giveUp(ctx context.Context, order Order, cause error) {
	if order.Broken != "" {
		r.logger.ErrorContext(ctx, "Workflow can neither be advanced nor ended", "execution_id", order.Start, "workflow", order.Workflow, "error", cause)
		return
	}
	r.logger.ErrorContext(ctx, "Workflow cannot be advanced and is ended", "execution_id", order.Start, "workflow", order.Workflow, "error", cause)
	order.Broken = cause.Error()
	r.round(ctx, []Order{order})
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
