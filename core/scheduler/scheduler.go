package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/crashpoint"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/policy"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/tracing"
)

// Config configures batches.
type Config struct {
	// HeartbeatStaleAfter is the heartbeat age from which a worker counts as absent. Default 90 s.
	HeartbeatStaleAfter time.Duration
	// WaitForWorkers makes executions wait while no worker is live; otherwise they fail at once
	// with "no workers available".
	WaitForWorkers bool
	// NoWorkersGrace is how long accepted executions wait for a worker that fits to come back, given
	// whether the schema is that of an existing installation. Nil means not at all.
	NoWorkersGrace func(adopted bool) time.Duration
	// MaxQueued is the length limit of a queue whose policies have none. Default 10,000.
	MaxQueued int
	// RetryPlace is where a retry joins its queue if its policies do not say. Default
	// policy.PlaceBack.
	RetryPlace policy.Place
	// Recheck is called after a batch in which a queue began to wait for workers. Another batch may
	// have returned capacity meanwhile that it did not offer to this queue, so one more batch must
	// run. Until then, and after a crash of this process, the queue waits for the next batch that
	// returns capacity, or for a sweep. Nil does nothing.
	Recheck func()
	// Recovering reports that the database was unreachable until recently, so silent workers may be
	// alive: executions wait for them. Nil means never.
	Recovering func() bool
	// WithoutStats turns queue_stats off.
	WithoutStats bool
	// Traces finds the traces of executions, for their dispatches and log lines. The spans of ended
	// executions are then requested. Nil means that tracing is off.
	Traces *tracing.Roots
	// Source is the source_service of the messages written. Default "attune-executor".
	Source string
	// Now is the clock of caches; no stored value depends on it. Default time.Now.
	Now func() time.Time
}

func (c Config) withDefaults() Config {
	c.HeartbeatStaleAfter = supervise.OrDefault(c.HeartbeatStaleAfter, 90*time.Second)
	c.MaxQueued = supervise.OrDefault(c.MaxQueued, 10_000)
	if c.Source == "" {
		c.Source = "attune-executor"
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Recovering == nil {
		c.Recovering = func() bool { return false }
	}
	if c.Recheck == nil {
		c.Recheck = func() {}
	}
	return c
}

// Scheduler runs batches. It is safe for concurrent use; batches that share a queue or a worker
// wait for each other in the database.
type Scheduler struct {
	cfg       Config
	store     *store.Store
	admission *admission.Admission
	relay     outbox.Publishing
	logger    *slog.Logger
	metrics   *Metrics
	fleet     *fleet
	rules     *ruleCache
	memory    *memory
	rotation  atomic.Int64
}

// Deps are the dependencies of a Scheduler.
type Deps struct {
	Store   *store.Store
	Relay   outbox.Publishing
	Logger  *slog.Logger
	Metrics *Metrics // nil exports none
}

// New makes the scheduler of one engine.
func New(cfg Config, deps Deps) *Scheduler {
	cfg = cfg.withDefaults()
	s := &Scheduler{
		cfg: cfg, store: deps.Store, admission: admission.New(deps.Store),
		relay: deps.Relay, logger: deps.Logger, metrics: cmp.Or(deps.Metrics, NewMetrics(nil)),
		fleet: &fleet{store: deps.Store, staleAfter: cfg.HeartbeatStaleAfter, now: cfg.Now}, rules: &ruleCache{},
		memory: &memory{
			holdings: make(map[int64]holding), crowds: make(map[int64]bool), closed: make(map[int64]bool),
		},
	}
	s.rotation.Store(rand.Int64N(1 << 20)) //nolint:gosec // spreads replicas over equal workers
	return s
}

// Step is one set-based part of a batch.
type Step interface {
	// Executions lists the rows the step is about.
	Executions() []int64
	// Plan names the queues that the step needs, from rows read without locks.
	Plan(ctx context.Context, plan *Plan) error
	// Apply decides from the rows read under the locks. It does no I/O.
	Apply(batch *Batch)
}

// Optimistic is a step whose decisions need no locks of queues: the guards of the written
// statements refuse them if another batch decided first. A batch of such steps, about actions
// without limits and without waiting executions, locks no queue before it writes.
type Optimistic interface {
	Step
	// Optimistic reports whether this holds for the step's executions. The batch calls it after
	// planning, and again after Apply.
	Optimistic() bool
}

// Result says what a committed batch has done.
type Result struct {
	Released int // released slots
	Granted  int // executions admitted and handed to a worker
	Enqueued int // executions that began to wait
	Ended    int // executions that the engine ended
	Moved    int // executions handed to another worker before they started
	// Repeated are the new attempts of ended executions; the first of them is due RetryIn after the
	// batch.
	Repeated []store.RepeatExecutionsRow
	RetryIn  time.Duration
	// Missing lists named executions without a row.
	Missing []int64
	// Unfilled lists queues with free slots and waiting executions that this batch did not read:
	// another batch should fill them. UnfilledOf are their actions by reference.
	Unfilled   []int64
	UnfilledOf []string
	// Starts are executions of workflows to start, Tasks the ended children of workflows. The
	// caller passes both to package advancement.
	Starts []int64
	Tasks  []Task
	// Made counts the executions that the engine created.
	Made int
	// Left are undecided executions, because another batch held their queue. Held are the queues of
	// FillStep.Spare that another batch held. Only RunSparing leaves any.
	Left []int64
	Held []int64
	// Wake is the delay after which another batch should run, because an execution waits for a
	// point in time; 0 if none does.
	Wake time.Duration
}

// errStaleFleet repeats the batch with freshly read workers, before an execution fails because no
// worker fits.
var errStaleFleet = errors.New("the list of workers is stale")

// errUnplanned repeats the batch with a new plan, because a row needs other locks than when it was
// read.
var errUnplanned = errors.New("a row changed between planning and locking")

// ErrNewRules reports that rules changed between planning and locking. The batch runs again with
// the new rules.
var ErrNewRules = errors.New("the rules changed between planning and locking")

// ErrConflict reports that rows, queues or rules changed faster than the batch could decide. Its
// content is valid: the same batch may succeed later.
var ErrConflict = errors.New("rows, queues or rules change faster than a batch can decide")

// maxTries bounds how often one call repeats its batch because a row, a queue or a worker changed.
const maxTries = 8

// Run runs the steps as one batch. It repeats a batch that lost a race with the new facts. After an
// error nothing is written.
func (s *Scheduler) Run(ctx context.Context, steps ...Step) (Result, error) {
	return s.runUntilDecided(ctx, sparing{}, steps)
}

// RunSparing is Run for a caller that retries. It leaves reports and requests of executions whose
// queue another batch holds, and names them in Result.Left. It waits for the queues of the
// executions in insists. A batch with BriefLocks leaves none, because it must find out what another
// transaction holds.
func (s *Scheduler) RunSparing(ctx context.Context, insists map[int64]bool, steps ...Step) (Result, error) {
	return s.runUntilDecided(ctx, sparing{spares: !brief(ctx), insists: insists}, steps)
}

type attempt struct {
	sparing
	fresh      bool // read the workers again
	hints      bool // steps plan from their messages if they can
	optimistic bool // do not lock queues if the plan allows it
	// carried are shared limits that earlier tries found to be needed; each try adds to them.
	carried scopes
}

func (s *Scheduler) runUntilDecided(ctx context.Context, spare sparing, steps []Step) (Result, error) {
	if !brief(ctx) {
		result, done, err := s.releaseAtOnce(ctx, steps)
		if err != nil {
			return Result{}, err
		}
		if done {
			s.metrics.observe(result, 1)
			return result, nil
		}
	}
	how := attempt{sparing: spare, hints: true, optimistic: !brief(ctx), carried: make(scopes)}
	for try := 1; ; try++ {
		result, err := s.once(ctx, how, steps)
		switch {
		case err == nil:
			s.metrics.observe(result, try)
			return result, nil
		case try == maxTries || ctx.Err() != nil:
			return Result{}, conflictOf(err)
		case errors.Is(err, errStaleFleet):
			how.fresh = true
		case errors.Is(err, admission.ErrQueueGone):
			s.admission.Forget()
		case errors.Is(err, ErrNewRules):
			clear(how.carried) // they belong to the old rules
		case errors.Is(err, errUnplanned):
			// A row changed between plan and lock, or a message contradicts its row: plan from
			// rows.
			how.fresh, how.hints = true, false
		case errors.Is(err, admission.ErrNotOpen):
			how.optimistic = false
		case refused(err):
			// A row changed between lock and write, or another batch took a worker's capacity:
			// decide again.
			how.fresh, how.optimistic = true, false
		default:
			return Result{}, err
		}
		s.logger.DebugContext(ctx, "Batch run again", "attempt", try, "error", err)
	}
}

// once runs the steps as one transaction (plan, lock and read, decide, write) and publishes after
// the commit.
func (s *Scheduler) once(ctx context.Context, how attempt, steps []Step) (Result, error) {
	workers, err := s.fleet.live(ctx, how.fresh)
	if err != nil {
		return Result{}, err
	}
	plan, err := s.plan(ctx, how, steps)
	if err != nil {
		return Result{}, err
	}
	want, err := s.want(ctx, plan, workers)
	if err != nil {
		return Result{}, err
	}
	want.Optimistic = how.optimistic && plan.open(steps) && s.memory.open(want.Queues)
	var batch *Batch
	var row int64
	err = s.store.Once(ctx, "batch", func(ctx context.Context, tx *store.Tx) error {
		row = 0
		ledger, err := s.lock(ctx, tx, plan, want)
		if err != nil {
			return err
		}
		batch = newBatch(s, plan, ledger, workers)
		for _, step := range steps {
			step.Apply(batch)
		}
		if err := batch.verdict(how, steps); err != nil {
			return err
		}
		if err := batch.readTraces(ctx, tx); err != nil {
			return err
		}
		row, err = batch.write(ctx, tx)
		return err
	})
	if want.Optimistic && store.IsLockTimeout(err) {
		return Result{}, fmt.Errorf("%w: %w", admission.ErrNotOpen, err)
	}
	if err != nil {
		return Result{}, err
	}
	if row != 0 {
		s.relay.Published(row, batch.messages)
	}
	if batch.Ledger.Recheck() {
		s.cfg.Recheck()
	}
	s.memory.learn(batch)
	batch.observe(s.metrics)
	batch.log(ctx, s.logger)
	return batch.result(plan), nil
}

// conflictOf wraps the error of a batch that used all its tries.
func conflictOf(err error) error {
	if errors.Is(err, errUnplanned) || errors.Is(err, ErrNewRules) || errors.Is(err, errStaleFleet) ||
		errors.Is(err, admission.ErrQueueGone) || errors.Is(err, admission.ErrNotOpen) {
		return fmt.Errorf("%w: %w", ErrConflict, err)
	}
	return err
}

// refused reports whether a guard of the written statements found other rows than the decision
// assumed. A conflict counts too: another replica queued the same execution in another queue.
func refused(err error) bool {
	class := store.ClassOf(err)
	return class == store.ClassRefused || class == store.ClassConflict
}

type briefLocks struct{}

// BriefLocks makes a context whose batches give up quickly when another transaction holds a lock.
// The caller uses it to find out which part of a batch is locked.
func BriefLocks(ctx context.Context) context.Context {
	return context.WithValue(ctx, briefLocks{}, true)
}

func brief(ctx context.Context) bool {
	is, _ := ctx.Value(briefLocks{}).(bool)
	return is
}

// plan lets every step name its needs: from its messages if it can, else from rows read without
// locks.
func (s *Scheduler) plan(ctx context.Context, how attempt, steps []Step) (*Plan, error) {
	plan := newPlan(s, how.sparing, how.carried)
	if how.hints {
		if err := plan.hint(ctx, steps); err != nil {
			return nil, err
		}
	}
	var unread []int64
	for _, step := range steps {
		plan.ids = append(plan.ids, step.Executions()...)
		if !plan.isHinted(step) {
			unread = append(unread, step.Executions()...)
		}
	}
	if len(unread) > 0 {
		rows, err := s.store.ReadBatchExecutions(ctx, unread)
		if err != nil {
			return nil, fmt.Errorf("read %d executions: %w", len(unread), err)
		}
		for _, row := range rows {
			plan.rows[row.ID] = row
		}
	}
	for _, step := range steps {
		if plan.isHinted(step) {
			continue
		}
		if err := step.Plan(ctx, plan); err != nil {
			return nil, err
		}
	}
	return plan, plan.encodeNewExecutions()
}

// spareRoom is how many queue heads are read beyond the capacity of the cached fleet, because the
// cache may be old.
const spareRoom = 8

// want turns the plan into locks.
func (s *Scheduler) want(ctx context.Context, plan *Plan, workers []placement.Worker) (admission.Want, error) {
	queues, err := s.admission.Resolve(ctx, plan.keys)
	if err != nil {
		return admission.Want{}, err
	}
	plan.queues = queues
	plan.rules.plainScopes(plan.scopes)
	if plan.scopeIDs, err = s.admission.ResolveScopes(ctx, plan.scopes); err != nil {
		return admission.Want{}, err
	}
	want := admission.Want{
		Queues: plan.releases, Workers: []int64{}, Executions: plan.ids, Resolved: make(map[int64]bool, len(queues)),
		StaleAfter: s.cfg.HeartbeatStaleAfter, WithoutStats: s.cfg.WithoutStats,
		Scopes: plan.wantedScopes(), Lost: plan.lost, Spare: make(map[int64]bool, len(plan.claims)),
	}
	for id := range plan.recount {
		want.Recount = append(want.Recount, id)
	}
	want.MaxHeads = plan.released() + spareRoom
	for _, w := range workers {
		want.MaxHeads += max(w.Room(), 0)
	}
	for key, id := range queues {
		want.Queues[id] += plan.hintReleases[key]
		want.Resolved[id] = true
		plan.firm[id] = plan.firm[id] || plan.firmBy[key]
	}
	for id := range want.Queues {
		want.Spare[id] = !plan.firm[id]
	}
	want.Quiet = s.memory.quiet(want.Queues)
	for _, w := range workers {
		if w.Standing != placement.Live { // it may have become live since it was read
			plan.workers[w.ID] = true
		}
	}
	for id := range plan.workers {
		want.Workers = append(want.Workers, id)
	}
	return want, nil
}

// lock takes the locks, reads the rows under them, and verifies the plan against these rows and
// rules. Afterwards the limits of the locked queues are in force.
func (s *Scheduler) lock(
	ctx context.Context, tx *store.Tx, plan *Plan, want admission.Want,
) (*admission.Ledger, error) {
	var workflows *store.Result[store.LockWorkflowsRow]
	want.First = func(p *store.Pipeline) {
		if brief(ctx) {
			p.Exec("SET LOCAL lock_timeout = '" + admission.BriefLockTimeout + "'")
		}
		if ids := slices.Sorted(maps.Keys(plan.workflows)); len(ids) > 0 {
			workflows = store.Many[store.LockWorkflowsRow](p, store.LockWorkflows, ids)
		}
	}
	ledger, err := admission.Lock(ctx, tx, want)
	if err != nil {
		return nil, err
	}
	crashpoint.Reach("batch:locked")
	if workflows != nil && plan.moved(workflows.Rows()) {
		return nil, errUnplanned
	}
	if ledger.Epoch != plan.rules.epoch {
		s.rules.invalidate(ledger.Epoch)
		s.admission.ForgetScopes()
		return nil, ErrNewRules
	}
	if covered, err := plan.verify(ctx, tx, ledger); err != nil {
		return nil, err
	} else if !covered {
		return nil, errUnplanned
	}
	queues := ledger.Queues()
	actions := ledger.SkippedActions()
	for _, q := range queues {
		actions = append(actions, q.ActionID)
	}
	if err := plan.rules.load(ctx, tx.Queries, actions, nil); err != nil {
		return nil, err
	}
	for _, q := range queues {
		if rule, ok := plan.Rule(&q.ActionID, ""); ok {
			ledger.Configure(q.ID, admission.QueueConfig{
				Limit: rule.Limits.Queue, MaxQueued: rule.Limits.MaxQueued, Timeout: rule.Limits.QueueTimeout,
			})
		}
	}
	return ledger, nil
}
