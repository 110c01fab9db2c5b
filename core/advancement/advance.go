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
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/workflow"
)

const (
	statusRequested = lifecycle.StatusRequested
	statusRunning   = lifecycle.StatusRunning
)

// phase is how a batch treats a workflow.
type phase int

const (
	begins    phase = iota // its execution is requested; the batch creates its row
	continues              // it is open, and this engine wrote its state
	takenOver              // it is open; another engine started it, and its state comes from its rows
	late                   // it has ended; the ends of late children are counted and trigger nothing
	fails                  // it is open and cannot continue; the batch ends it as failed
)

// advance is the advance of one workflow in one batch.
type advance struct {
	phase phase
	inputs
	facts
	outcome
}

// inputs are what a batch reads before it decides.
type inputs struct {
	row       store.ReadWorkflowsRow    // begins: as it will be read
	begun     begun                     // begins only
	before    *workflow.State           // not if it begins
	source    *source                   // nil if it fails because it is unreadable
	inherited *inherited                // takenOver, and if it fails instead
	why       string                    // fails only
	ended     []store.ReadEndedTasksRow // unprocessed ends of children; none if it begins or is taken over
	happened  []workflow.Happening      // since before, in order
}

// outcome is what a batch writes.
type outcome struct {
	plan          *workflow.Plan
	newExecutions []*scheduler.NewExecution // in the order of plan.Start
	existing      []admission.Head          // existing children to request
	repeats       []repeat
	reopen        []int64 // settled tasks to wait for again
	settle        []store.ReadEndedTasksRow
	opening       *inquiry.Opening
	secrets       store.InsertSecretValuesParams
	result        json.RawMessage // of the execution, if plan.End
}

type repeat struct {
	execution int64
	reason    lifecycle.RetryReason
	delay     time.Duration
}

// decide evaluates the definition, and fetches the facts that it requests.
func (s *Step) decide(ctx context.Context, q *store.Queries, c *advance) error {
	c.facts = newFacts()
	if c.inherited != nil {
		for _, list := range c.inherited.keep { // not stored yet
			c.items[list.Task] = workflow.Slice{Items: list.Items}
		}
	}
	if c.phase == fails {
		c.giveUp(c.why)
	} else if err := c.decide(ctx, q); err != nil {
		return err
	}
	if c.phase == takenOver {
		c.inherited.complete(c.plan)
	}
	return s.complete(ctx, q, c)
}

func (c *advance) decide(ctx context.Context, q *store.Queries) error {
	var failure error // of the definition
	err := c.withFacts(ctx, q, func(facts workflow.Facts) error {
		c.plan, failure = c.evaluate(facts)
		if _, missing := errors.AsType[*workflow.NeedError](failure); missing {
			return failure
		}
		return nil
	})
	switch {
	case errors.Is(err, errTooMuch):
		c.giveUp(err.Error())
	case err != nil:
		return fmt.Errorf("advance workflow %d: %w", c.row.ID, err)
	case failure != nil:
		c.giveUp(failure.Error())
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
