package workflow

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/attune-go/attune/core/attune"
)

// Decide says what follows from what has happened, one thing after the other: a
// call with many gives what as many calls with one each would give in that order.
//
// A nil state is a workflow that was not begun. None of the arguments is changed.
// The only error besides a state that cannot be is a *NeedError: the caller loads
// what it names and asks again. What happens to a workflow that has ended is
// written down and has no consequences.
func (d *Definition) Decide(state *State, happened []Happening, facts Facts) (*Plan, error) {
	x, err := d.decisionOn(state, happened, facts)
	if err != nil {
		return nil, err
	}
	for ; len(x.ahead) > 0; x.ahead = x.ahead[1:] {
		steps := []func() error{
			x.take,        // what has happened is written down; tasks end by it
			x.follow,      // what has ended leads on, and what it leads to is started
			x.skipDead,    // joins that nobody can reach any more are given up
			x.endWhenIdle, // nothing runs, is held or ready: the workflow has ended
		}
		for _, step := range steps {
			if err := step(); err != nil {
				return nil, err
			}
		}
	}
	x.plan.More = x.lacks()
	return x.plan, nil
}

// Begin is the state of a workflow that was not begun.
func (d *Definition) Begin() *State {
	variables := maps.Clone(d.Vars)
	if variables == nil {
		variables = map[string]any{}
	}
	return &State{Status: attune.StatusRunning, Variables: variables, Tasks: map[string]*TaskState{}}
}

// decision is one call of Decide.
type decision struct {
	def   *Definition
	facts Facts
	plan  *Plan
	state *State // that of the plan
	given *State // never changed

	ahead []Happening      // what is still to be taken; the first is the current one
	ended []string         // tasks that have ended and have not led on yet
	lists map[string][]any // lists that were evaluated in this call
	owned map[string]bool  // tasks whose state is a copy

	ownsVariables bool
	cost          int  // steps of the expressions that were evaluated
	tried         bool // a child of a list was tried
	passedOn      int  // the size of the workflow's parameters, once it was asked for
	// live counts tasks that run or are ready, waiting those at their joins.
	live, waiting int
}

var errStatus = errors.New("a state has a status")

func (d *Definition) decisionOn(given *State, happened []Happening, facts Facts) (*decision, error) {
	if given == nil {
		given = d.Begin()
	}
	if given.Status == "" {
		return nil, fmt.Errorf("decide a workflow: %w", errStatus)
	}
	state := *given
	state.Tasks, state.Held = maps.Clone(given.Tasks), slices.Clone(given.Held)
	if state.Tasks == nil {
		state.Tasks = map[string]*TaskState{}
	}
	x := &decision{
		def: d, facts: facts, state: &state, given: given, ahead: happened,
		plan: &Plan{State: &state}, lists: map[string][]any{}, owned: map[string]bool{},
	}
	for name, st := range state.Tasks {
		if x.expected(name, st) {
			x.weigh(st.Status, 1)
		}
	}
	return x, nil
}

// expected reports whether something may still come of a task. Of one that its
// definition does not have any more only the ends of its children do.
func (x *decision) expected(name string, st *TaskState) bool {
	return x.def.Task(name) != nil || st.Status == TaskRunning && st.Open > 0
}

// weigh keeps the counts of tasks that something is still expected of.
func (x *decision) weigh(status TaskStatus, by int) {
	switch status {
	case TaskRunning, TaskReady:
		x.live += by
	case TaskWaiting:
		x.waiting += by
	case TaskCompleted, TaskFailed, TaskTimeout, TaskCancelled, TaskSkipped:
	}
}

// own returns the state of a task to be changed.
func (x *decision) own(name string) *TaskState {
	st := x.state.Tasks[name]
	if x.owned[name] {
		return st
	}
	changed := &TaskState{}
	if st != nil {
		*changed = *st
		changed.Arrived = slices.Clone(st.Arrived)
	}
	x.owned[name] = true
	x.state.Tasks[name] = changed
	return changed
}

// move gives a task another status; everything that changes one goes through here.
func (x *decision) move(name string, to TaskStatus) *TaskState {
	st := x.own(name)
	x.weigh(st.Status, -1)
	x.weigh(to, 1)
	st.Status = to
	if to.Ended() {
		st.Arrived = nil // nothing asks for them any more
	}
	return st
}

// finish says that a task has ended; what it leads to is looked at by follow.
func (x *decision) finish(name string, as TaskStatus, why string) {
	st := x.move(name, as)
	if why != "" && st.Why == "" {
		st.Why = why
	}
	x.ended = append(x.ended, name)
}

// running reports whether the workflow goes on at all.
func (x *decision) running() bool { return x.state.Status == attune.StatusRunning }

func (x *decision) logf(format string, args ...any) {
	x.plan.Log = append(x.plan.Log, fmt.Sprintf(format, args...))
}

// needs reports whether an error says that facts are missing. All other errors are
// of the definition, and fail a task.
func needs(err error) *NeedError {
	need, _ := errors.AsType[*NeedError](err)
	return need
}
