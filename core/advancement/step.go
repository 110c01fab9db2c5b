package advancement

import (
	"context"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/batch"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
)

// Config configures the advance of workflows.
type Config struct {
	// ActionTimeouts says whether timeout_seconds of the action of a workflow takes effect: true,
	// false, or origin, which is true except on the schema of an existing installation. Empty means
	// true.
	ActionTimeouts string
	// Keys decrypt and encrypt secrets in rendered templates.
	Keys secret.Keyring
	// UnreportedAfter is how long the end of a child may stay unreported before it is processed
	// anyway. Default 10 s.
	UnreportedAfter time.Duration
	// Stopped is called after a batch that requested the end of tasks. It must not block.
	Stopped func()
	// Gate pauses the Runner during a fault of the installation. May be nil.
	Gate *batch.Gate
	// Now is the clock of caches. Default time.Now.
	Now func() time.Time
}

func (c Config) withDefaults() Config {
	if c.UnreportedAfter <= 0 {
		c.UnreportedAfter = 10 * time.Second
	}
	if c.Stopped == nil {
		c.Stopped = func() {}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Request asks for the start or advance of one workflow.
type Request struct {
	// Start is the execution of a workflow to start, else 0.
	Start int64
	// Workflow is the row of a started workflow, else 0.
	Workflow int64
	// Children are executions of its tasks that were reported as ended.
	Children []int64
	// Broken is why the workflow cannot continue; it is ended as failed. Empty if it can.
	Broken string
}

// Step starts and advances workflows, as part of a batch.
type Step struct {
	cfg      Config
	sources  *Sources
	requests []Request
	advances []*advance
	unfit    []unfit
	later    []Request
	closed   []store.ReadEndedTasksRow // late children of ended workflows with an unreadable state: they only settle
}

// Limits of the children of one batch, by number and by bytes of parameters. A workflow beyond them
// gets a batch of its own.
const (
	maxNewExecutions     = 1000
	maxNewExecutionBytes = 32 << 20
)

// unfit is the execution of a workflow that cannot start.
type unfit struct {
	execution, action int64
	actionRef, why    string
}

// NewStep makes the step for these requests, each workflow once.
func NewStep(cfg Config, sources *Sources, requests []Request) *Step {
	return &Step{cfg: cfg.withDefaults(), sources: sources, requests: requests}
}

// Executions implements scheduler.Step.
func (s *Step) Executions() []int64 {
	var ids []int64
	for _, request := range s.requests {
		if request.Start != 0 {
			ids = append(ids, request.Start)
		}
	}
	return ids
}

// Plan implements scheduler.Step: it decides about each workflow, and requests the locks.
func (s *Step) Plan(ctx context.Context, plan *scheduler.Plan) error {
	s.advances, s.unfit, s.later, s.closed = nil, nil, nil, nil
	if err := s.readStarts(ctx, plan); err != nil {
		return err
	}
	if err := s.readWorkflows(ctx, plan); err != nil {
		return err
	}
	newExecutions, bytes := 0, 0
	for i, c := range s.advances {
		if err := ctx.Err(); err != nil { // decisions take time without a query
			return fmt.Errorf("advance %d workflows: %w", len(s.advances), context.Cause(ctx))
		}
		if err := s.decide(ctx, plan.Queries(), c); err != nil {
			return err
		}
		newExecutions, bytes = newExecutions+len(c.plan.Start), bytes+c.plan.Bytes
		if (newExecutions > maxNewExecutions || bytes > maxNewExecutionBytes) && i > 0 {
			s.postpone(i)
			break
		}
		if c.plan.More {
			s.later = append(s.later, Request{Workflow: c.row.ID})
		}
	}
	for _, c := range s.advances {
		if c.phase != begins {
			plan.NeedWorkflow(scheduler.SeenWorkflow{
				ID: c.row.ID, Version: c.row.Version, Status: c.row.Status, Paused: c.row.Paused, Open: c.row.Open,
			})
		}
	}
	return s.planNewExecutions(ctx, plan)
}

// Apply implements scheduler.Step.
func (s *Step) Apply(batch *scheduler.Batch) {
	for _, one := range s.unfit {
		fact, ok := batch.Ledger.Fact(one.execution)
		if ok && fact.Status == statusRequested {
			batch.Fail(one.execution, one.action, one.actionRef, "the workflow cannot be started", one.why)
		}
	}
	s.write(batch)
	for _, c := range s.advances {
		for _, b := range c.newExecutions {
			batch.Create(b)
		}
		for _, r := range c.repeats {
			batch.Repeat(r.execution, r.reason, r.delay)
		}
		c.requestExisting(batch)
		c.announce(batch)
	}
}

// postpone leaves the workflows from the nth on to another batch.
func (s *Step) postpone(n int) {
	for _, c := range s.advances[n:] {
		request := Request{Workflow: c.row.ID, Broken: c.why}
		if c.phase == begins {
			request = Request{Start: c.row.Execution}
		}
		for _, ended := range c.ended {
			request.Children = append(request.Children, ended.Execution)
		}
		s.later = append(s.later, request)
	}
	s.advances = s.advances[:n]
}

// Again lists requests for the rest of the batch. It is valid after the batch.
func (s *Step) Again() []Request { return s.later }

var _ scheduler.Step = (*Step)(nil)
