package workflow

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/attune-go/attune/core/lifecycle"
)

// Decide plans the consequences of happenings. A call with several is equal to one call for each, in order.
//
// A nil state is a workflow that has not begun. Decide changes none of its arguments. Except for an invalid state, its
// only error is a *NeedError: the caller loads the named facts and calls again. Happenings of an ended workflow are
// recorded without consequences.
func (d *Definition) Decide(state *State, happened []Happening, facts Facts) (*Plan, error) {
	x, err := d.decisionOn(state, happened, facts)
	if err != nil {
		return nil, err
	}
	for ; len(x.ahead) > 0; x.ahead = x.ahead[1:] {
		steps := []func() error{
			x.apply,       // may end tasks
			x.follow,      // fires the transitions of ended tasks
			x.skipDead,    // skips joins that cannot be reached any more
			x.endWhenIdle, // ends the workflow if nothing runs, is held or ready
		}
		for _, step := range steps {
			if err := step(); err != nil {
				return nil, err
			}
		}
	}
	x.plan.More = x.more()
	return x.plan, nil
}

// Begin is the state of a workflow that has not begun.
func (d *Definition) Begin() *State {
	variables := maps.Clone(d.Vars)
	if variables == nil {
		variables = map[string]any{}
	}
	return &State{Status: lifecycle.StatusRunning, Variables: variables, Tasks: map[string]*TaskState{}}
}

// decision is one call of Decide.
type decision struct {
	def   *Definition
	facts Facts
	plan  *Plan
	state *State // that of the plan
	given *State // never changed

	ahead []Happening      // the current and all further ones
	ended []string         // ended tasks whose transitions have not fired yet
	lists map[string][]any // lists that this call has evaluated
	owned map[string]bool  // tasks whose state is a copy

	ownsVariables bool
	cost          int  // steps of all evaluated expressions
	tried         bool // a child of a list was rendered
	passedOn      int  // the size of the workflow's parameters, 0 if unknown
	// live counts running and ready tasks, waiting the tasks at their joins.
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
		// A task that was removed from the definition counts while it has running children.
		if d.Task(name) != nil || st.Status == TaskRunning && st.Open > 0 {
			x.weigh(st.Status, 1)
		}
	}
	return x, nil
}

// weigh updates the counts of unfinished tasks.
func (x *decision) weigh(status TaskStatus, by int) {
	switch status {
	case TaskRunning, TaskReady:
		x.live += by
	case TaskWaiting:
		x.waiting += by
	case TaskCompleted, TaskFailed, TaskTimeout, TaskCancelled, TaskSkipped:
	}
}

// own returns a copy of a task's state that may be changed.
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

// move changes the status of a task; nothing else does, so that the counts stay right.
func (x *decision) move(name string, to TaskStatus) *TaskState {
	st := x.own(name)
	x.weigh(st.Status, -1)
	x.weigh(to, 1)
	st.Status = to
	if to.Ended() {
		st.Arrived = nil // not needed any more
	}
	return st
}

// finish ends a task; follow fires its transitions.
func (x *decision) finish(name string, as TaskStatus, why string) {
	st := x.move(name, as)
	if why != "" && st.Why == "" {
		st.Why = why
	}
	x.ended = append(x.ended, name)
}

func (x *decision) running() bool { return x.state.Status == lifecycle.StatusRunning }

func (x *decision) logf(format string, args ...any) {
	x.plan.Log = append(x.plan.Log, fmt.Sprintf(format, args...))
}

// needs returns the *NeedError of an error, or nil. All other errors are in the definition and fail a task.
func needs(err error) *NeedError {
	need, _ := errors.AsType[*NeedError](err)
	return need
}
