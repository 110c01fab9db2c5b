package advancement

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/inquiry"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/retrypolicy"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/workflow"
)

const (
	statusRequested = lifecycle.StatusRequested
	statusRunning   = lifecycle.StatusRunning
)

// advance is the advance of one workflow in one batch.
type advance struct {
	id        int64            // of the workflow
	execution int64            // of its parent
	version   int64            // the version that was read
	closed    bool             // it ended with an unreadable state: only its late children are settled
	late      lifecycle.Status // its final status: its late children are counted; empty if it has not ended
	begun     *beginning
	seen      *scheduler.SeenWorkflow // its row, to be locked; nil if it begins or has ended
	parent    parent
	source    *source
	config    []byte // of the parent
	created   time.Time
	now       time.Time
	allowed   time.Duration // its timeout; 0 is none

	before   *workflow.State // nil if it begins
	happened []workflow.Happening
	ended    []store.ReadEndedTasksRow
	broken   string

	inherited *inherited // of a workflow that is taken over; else nil

	plan     *workflow.Plan
	results  map[string]workflow.Result
	children map[workflow.Child]any
	items    map[string]workflow.Slice
	read     int64 // bytes of results

	newExecutions []*scheduler.NewExecution
	existing      []admission.Head // existing children to request
	repeats       []repeat
	reopen        []int64 // settled tasks to wait for again
	settle        []settled
	opening       *inquiry.Opening
	secrets       store.InsertSecretValuesParams
	result        json.RawMessage // of the parent, when it ends
}

// parent is the execution of a workflow.
type parent struct {
	status    lifecycle.Status
	action    int64
	actionRef string
	priority  int16
	requested time.Time // scheduler.NewExecution.Requested of its tasks
}

// beginning is the start of a workflow.
type beginning struct {
	definition int64
	timeout    float64 // seconds; 0 is none
}

// settled is a processed task: its transitions have fired.
type settled struct{ task, execution int64 }

type repeat struct {
	execution int64
	reason    retrypolicy.Reason
	delay     time.Duration
}

// decide evaluates the definition, and fetches the facts that it requests.
func (s *Step) decide(ctx context.Context, plan *scheduler.Plan, c *advance) error {
	c.results, c.children, c.items = map[string]workflow.Result{}, map[workflow.Child]any{}, map[string]workflow.Slice{}
	if c.inherited != nil {
		for _, list := range c.inherited.keep { // not stored yet
			c.items[list.Task] = workflow.Slice{Items: list.Items}
		}
	}
	if c.broken != "" {
		c.giveUp(c.broken)
		return s.outcome(ctx, plan, c)
	}
	if err := c.decide(ctx, plan.Queries()); err != nil {
		return err
	}
	if c.inherited != nil {
		c.inherited.complete(c.plan)
	}
	return s.outcome(ctx, plan, c)
}

func (c *advance) decide(ctx context.Context, q *store.Queries) error {
	var decided *workflow.Plan
	var failure error // of the definition
	err := c.withFacts(ctx, q, func(facts workflow.Facts) (err error) {
		decided, err = c.evaluate(facts)
		if _, missing := errors.AsType[*workflow.NeedError](err); missing {
			return err
		}
		failure = err
		return nil
	})
	switch {
	case errors.Is(err, errTooMuch):
		c.giveUp(err.Error())
	case err != nil:
		return fmt.Errorf("advance workflow %d: %w", c.id, err)
	case failure != nil:
		c.giveUp(failure.Error())
	default:
		c.plan = decided
	}
	return nil
}

// evaluate calls the definition. A panic ends this workflow and no other.
func (c *advance) evaluate(facts workflow.Facts) (decided *workflow.Plan, err error) {
	defer func() {
		if defect := recover(); defect != nil {
			err = fmt.Errorf("a defect of the engine: %v\n%s", defect, debug.Stack())
		}
	}()
	return c.source.definition.Decide(c.before, c.happened, facts)
}

// giveUp ends a workflow whose decision fails.
func (c *advance) giveUp(why string) {
	state := &workflow.State{Variables: map[string]any{}, Tasks: map[string]*workflow.TaskState{}}
	if c.before != nil {
		*state = *c.before
	}
	state.Status = lifecycle.StatusFailed
	var stop []string
	for name, task := range state.Tasks {
		if !task.Status.Ended() {
			stop = append(stop, name)
		}
	}
	c.plan = &workflow.Plan{
		State: state, Stop: stop, Log: []string{"the workflow cannot go on: " + why},
		End: &workflow.End{
			Status: lifecycle.StatusFailed, Error: why,
			Result: map[string]any{"error": why, "succeeded": false},
		},
	}
}

// happen adds happenings other than the ends of children.
func (c *advance) happen(kinds ...workflow.HappeningKind) {
	for _, kind := range kinds {
		c.happened = append(c.happened, workflow.Happening{Kind: kind})
	}
}
