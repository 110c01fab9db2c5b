package workflow

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/expr"
	"github.com/attune-go/attune/core/yamldoc"
)

// follow fires the transitions of ended tasks, in the order of their ends, until no further task ends.
func (x *decision) follow() error {
	for len(x.ended) > 0 && x.running() {
		t := x.def.Task(x.ended[0])
		x.ended = x.ended[1:]
		if t.Within == nil {
			if err := x.lead(t); err != nil {
				return err
			}
		} else if st := x.countWithin(t); st.Open == 0 && st.Status == TaskRunning {
			x.finish(t.Within.Name, st.outcome(), "")
			x.logf("%s %s", t.Within.Name, st.outcome())
		}
	}
	return nil
}

// lead fires all matching transitions of an ended task, then starts their targets, which see all published variables.
func (x *decision) lead(t *Task) error {
	var targets []string
	var wrong error
	fired := 0
	for i := range t.Next {
		matches, err := x.fire(t, i)
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
	x.handle(t, wrong, fired, x.leadsOn(t, targets))
	for _, target := range targets {
		if err := x.arrive(target, t.Name); err != nil {
			return err
		}
	}
	return nil
}

// leadsOn reports whether a task leads to another task than its ended ancestors, which do not run again.
func (x *decision) leadsOn(t *Task, targets []string) bool {
	return slices.ContainsFunc(targets, func(name string) bool {
		st := x.state.Tasks[name]
		return st == nil || !st.Status.Ended() || !x.def.reaches(x.def.Task(name), t)
	})
}

// handle marks the failure of a task as handled if a transition leads on. In a strict workflow an error in a transition
// fails the task, unless another one fires.
func (x *decision) handle(t *Task, wrong error, fired int, leads bool) {
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

func (s TaskStatus) bad() bool {
	return s == TaskFailed || s == TaskTimeout || s == TaskCancelled
}

// fire reports whether the nth transition of a task fires, and publishes its variables at once: their values see the
// variables before. Except for a NeedError, only a strict workflow returns an error.
func (x *decision) fire(t *Task, n int) (bool, error) {
	transition, in := &t.Next[n], x.scopeAfter(t)
	if transition.When != nil {
		matches, err := x.matches(t, n, in)
		if err != nil || !matches {
			return false, err
		}
	}
	var names []string
	var values []any
	for _, p := range transition.Publish {
		value, err := x.value(p.Value, in)
		switch {
		case err == nil:
			names, values = append(names, p.Name), append(values, value)
		case needs(err) != nil || x.def.onError().fail:
			return false, fmt.Errorf("publish %s: %w", p.Name, err)
		default:
			x.logf("%s does not publish %s: %v", t.Name, p.Name, err)
		}
	}
	x.publish(t, names, values)
	return true, nil
}

// matches reports whether the condition of the nth transition of a task holds. A lenient workflow has the published
// rules: a condition within text is a template, whose rendered text decides. In a condition with an error the first
// call decides; without a call it holds if it has no braces, and otherwise if the task has succeeded.
func (x *decision) matches(t *Task, n int, in scope) (bool, error) {
	when, status := t.Next[n].When, x.state.Tasks[t.Name].Status
	if x.def.onError().fail {
		holds, err := x.holds(when, in)
		if err != nil {
			err = fmt.Errorf("when: %w", err)
		} else if !holds {
			x.notFired(t, n, in)
		}
		return holds, err
	}
	var holds, otherwise bool
	var err error
	if when.text == nil {
		otherwise = truthOf(when.source)
		holds, err = x.holds(when, in)
	} else {
		otherwise = kindSucceeded.holdsFor(status)
		var text any
		text, err = x.value(when.text, in)
		holds = err == nil && truthOf(expr.Text(text))
	}
	if err == nil && !holds && when.broken == nil {
		x.notFired(t, n, in)
	}
	if err == nil || needs(err) != nil {
		return holds, err
	}
	if kind := when.kind(); kind != kindCustom {
		otherwise = kind.holdsFor(status)
	}
	x.logf("the condition of transition %d of %s counts as %t: %v", n+1, t.Name, otherwise, err)
	return otherwise, nil
}

// notFired logs a false condition with its values, unless it only asks for the status of the task.
func (x *decision) notFired(t *Task, n int, in scope) {
	when := t.Next[n].When
	if values := when.operands(in); values != "" || when.kind() == kindCustom {
		x.logf("transition %d of %s does not fire: %s is false%s", n+1, t.Name, yamldoc.Shorten(when.Source()), values)
	}
}

func (x *decision) publish(t *Task, names []string, values []any) {
	if len(names) == 0 {
		return
	}
	if !x.ownsVariables {
		x.state.Variables, x.ownsVariables = maps.Clone(x.state.Variables), true
		if x.state.Variables == nil {
			x.state.Variables = map[string]any{}
		}
	}
	for i, name := range names {
		x.state.Variables[name] = values[i]
	}
	slices.Sort(names)
	x.logf("%s publishes %s", t.Name, strings.Join(slices.Compact(names), ", "))
}
