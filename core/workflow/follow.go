package workflow

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// follow looks at the transitions of tasks that have ended, in the order in which
// they have, until nothing more ends by it.
func (x *decision) follow() error {
	for len(x.ended) > 0 && x.running() {
		t := x.def.Task(x.ended[0])
		x.ended = x.ended[1:]
		lead := x.lead
		if t.Within != nil {
			lead = x.gather
		}
		if err := lead(t); err != nil {
			return err
		}
	}
	return nil
}

// gather counts a task that has ended in the parallel one that it belongs to.
func (x *decision) gather(t *Task) error {
	st := x.own(t.Within.Name)
	st.Open--
	st.count(x.state.Tasks[t.Name].Status.asOfChild())
	if st.Open == 0 && st.Status == TaskRunning {
		x.finish(t.Within.Name, st.outcome(), "")
		x.logf("%s %s", t.Within.Name, st.outcome())
	}
	return nil
}

// lead evaluates the transitions of a task that has ended, all that match fire, and
// then starts what they lead to: it sees what all of them have published.
func (x *decision) lead(t *Task) error {
	var targets []string
	var wrong error
	fired := 0
	for i := range t.Next {
		matches, err := x.fire(t, &t.Next[i])
		switch {
		case needs(err) != nil:
			return err
		case err != nil:
			wrong = fmt.Errorf("transition %d: %w", i+1, err)
			x.logf("transition %d of %s does not fire: %v", i+1, t.Name, err)
		case matches:
			fired++
			targets = append(targets, t.Next[i].Do...)
		}
	}
	x.answer(t, wrong, fired, len(targets) > 0)
	for _, target := range targets {
		if err := x.arrive(target, t.Name); err != nil {
			return err
		}
	}
	return nil
}

// answer decides what the transitions say about their task: one that leads on
// handles its failure; an error in one fails the task, unless another has fired.
func (x *decision) answer(t *Task, wrong error, fired int, leads bool) {
	status := x.state.Tasks[t.Name].Status
	if wrong != nil && fired == 0 {
		if st := x.own(t.Name); st.Why == "" || !status.bad() {
			st.Why = wrong.Error()
		}
		if !status.bad() {
			x.move(t.Name, TaskFailed)
		}
		return
	}
	if status.bad() && leads {
		x.own(t.Name).Handled = true
	}
}

// bad reports whether a task has ended otherwise than it should.
func (s TaskStatus) bad() bool {
	return s == TaskFailed || s == TaskTimeout || s == TaskCancelled
}

// fire reports whether a transition fires, and publishes what it says if so: all of
// it sees the variables as they were before, and is assigned together or not at all.
func (x *decision) fire(t *Task, transition *Transition) (bool, error) {
	scope := x.scopeAfter(t)
	if transition.When != nil {
		holds, err := x.holds(transition.When, scope)
		if err != nil {
			return false, fmt.Errorf("when: %w", err)
		}
		if !holds {
			return false, nil
		}
	}
	published := make([]any, len(transition.Publish))
	for i, p := range transition.Publish {
		var err error
		if published[i], err = x.value(p.Value, scope); err != nil {
			return false, fmt.Errorf("publish %s: %w", p.Name, err)
		}
	}
	x.publish(t, transition.Publish, published)
	return true, nil
}

func (x *decision) publish(t *Task, names []Assignment, values []any) {
	if len(names) == 0 {
		return
	}
	if !x.ownsVariables {
		x.state.Variables, x.ownsVariables = maps.Clone(x.state.Variables), true
		if x.state.Variables == nil {
			x.state.Variables = map[string]any{}
		}
	}
	said := make([]string, len(names))
	for i, p := range names {
		x.state.Variables[p.Name], said[i] = values[i], p.Name
	}
	slices.Sort(said)
	x.logf("%s publishes %s", t.Name, strings.Join(slices.Compact(said), ", "))
}
