package workflow

import (
	"slices"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/yamldoc"
)

// repeatable are the ends that a task may ask to be repeated. What somebody has
// cancelled is not.
var repeatable = []attune.Status{attune.StatusFailed, attune.StatusTimeout, attune.StatusAbandoned}

// repeat repeats a child that has ended, if its task says so: after a pause, and
// while the workflow is paused only when it is resumed.
func (x *decision) repeat(t *Task, h Happening) (bool, error) {
	if !x.running() || !t.repeatable(h) {
		return false, nil
	}
	if wanted, err := x.wanted(t, h); !wanted || err != nil {
		return false, err
	}
	r := Repeat{Task: t.Name, Index: h.Index, Delay: t.Retry.Wait(h.Retries + 1), Reason: "failed"}
	if h.Status == attune.StatusTimeout {
		r.Reason = "timeout"
	}
	what := x.nameOf(t.Name, h.Index)
	if x.state.Paused {
		x.state.Held = append(x.state.Held, r)
		x.logf("%s %s and is repeated after the workflow is resumed (%d of %d)", what, said(h.Status), h.Retries+1,
			t.Retry.Count)
		return true, nil
	}
	x.plan.Repeat = append(x.plan.Repeat, r)
	x.logf("%s %s and is repeated in %s (%d of %d)", what, said(h.Status), r.Delay, h.Retries+1, t.Retry.Count)
	return true, nil
}

// nameOf is a child in words.
func (x *decision) nameOf(task string, index int) string {
	if t := x.def.Task(task); t != nil && t.WithItems != nil {
		return t.part(index) + " of " + task
	}
	return task
}

// wanted asks on_error about the end of a child. One that cannot be evaluated
// repeats nothing.
func (x *decision) wanted(t *Task, h Happening) (bool, error) {
	if t.Retry.OnError == nil {
		return true, nil
	}
	in := x.scopeOf(t)
	in.outcome = outcome{status: statusOf(h.Status), result: func() (any, error) {
		value, ok := x.facts.Children[Child{Task: t.Name, Index: h.Index}]
		if !ok {
			return nil, x.needChildren(t)
		}
		return ViewOf(value), nil
	}}
	holds, err := x.holds(t.Retry.OnError, in)
	switch {
	case needs(err) != nil:
		return false, err
	case err != nil:
		x.logf("%s is not repeated: retry.on_error: %v", t.Name, err)
	case !holds:
		x.logf("%s is not repeated: %s is false%s", t.Name, yamldoc.Shorten(t.Retry.OnError.Source()),
			t.Retry.OnError.operands(in))
	}
	return holds && err == nil, nil
}

// needChildren asks for what all children have given that on_error is asked about in
// this call and that were not given: each asking decides anew from the beginning.
func (x *decision) needChildren(t *Task) error {
	need, asked := &NeedError{}, map[Child]bool{}
	for _, h := range x.ahead {
		key := Child{Task: h.Task, Index: h.Index}
		if h.Task != t.Name || !t.repeatable(h) || asked[key] {
			continue
		}
		if _, given := x.facts.Children[key]; !given {
			need.Children, asked[key] = append(need.Children, key), true
		}
	}
	return need
}

// repeatable reports whether what has happened is an end that the task may ask to be
// repeated.
func (t *Task) repeatable(h Happening) bool {
	return h.Kind == ChildEnded && t.Retry != nil && h.Retries < t.Retry.Count && slices.Contains(repeatable, h.Status)
}

// statusOf is the status of a child as that of a task.
func statusOf(status attune.Status) TaskStatus {
	switch status {
	case attune.StatusCompleted:
		return TaskCompleted
	case attune.StatusTimeout:
		return TaskTimeout
	case attune.StatusCancelled:
		return TaskCancelled
	default:
		return TaskFailed
	}
}
