package workflow

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/expr"
	"github.com/attune-go/attune/core/yamldoc"
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
	x.answer(t, wrong, fired, x.leadsOn(t, targets))
	for _, target := range targets {
		if err := x.arrive(target, t.Name); err != nil {
			return err
		}
	}
	return nil
}

// leadsOn reports whether a task leads to another one than those that have led to it
// and have ended: these are not run again.
func (x *decision) leadsOn(t *Task, targets []string) bool {
	return slices.ContainsFunc(targets, func(name string) bool {
		st := x.state.Tasks[name]
		return st == nil || !st.Status.Ended() || !x.def.reaches(x.def.Task(name), t)
	})
}

// answer decides what the transitions say about their task: one that leads on
// handles its failure. What strict workflows have an error in one fail is the task,
// unless another one fires.
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

// fire reports whether the nth transition of a task fires, and publishes what it says if
// so: all of it sees the variables as they were before, and is assigned together. An
// error is returned in a strict workflow only.
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

// matches reports whether the condition of the nth transition of a task holds. In a
// lenient workflow a condition between text is a template whose text is read, and a
// condition with an error counts as published: the first call that it mentions
// decides; without one it holds if it has no braces, and otherwise if the task has
// succeeded.
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

// notFired logs a condition that is false with the values behind it. One that only asks how
// the task has ended is not worth a line.
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
