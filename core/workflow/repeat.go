package workflow

import (
	"slices"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/yamldoc"
)

// repeatable are the statuses of children that may be retried; cancelled ones may not.
var repeatable = []lifecycle.Status{lifecycle.StatusFailed, lifecycle.StatusTimeout, lifecycle.StatusAbandoned}

// repeat retries an ended child after a delay, if its task says so. A paused workflow holds the retry until it is
// resumed.
func (x *decision) repeat(t *Task, h Happening) (bool, error) {
	if !x.running() || !t.repeatable(h) {
		return false, nil
	}
	if wanted, err := x.wanted(t, h); !wanted || err != nil {
		return false, err
	}
	r := Repeat{Task: t.Name, Index: h.Index, Delay: t.Retry.Wait(h.Retries + 1), Reason: "failed"}
	if h.Status == lifecycle.StatusTimeout {
		r.Reason = "timeout"
	}
	what := x.nameOf(t.Name, h.Index)
	if x.state.Paused {
		x.state.Held = append(x.state.Held, r)
		x.logf("%s %s and is repeated after the workflow is resumed (%d of %d)", what, endText(h.Status), h.Retries+1,
			t.Retry.Count)
		return true, nil
	}
	x.plan.Repeat = append(x.plan.Repeat, r)
	x.logf("%s %s and is repeated in %s (%d of %d)", what, endText(h.Status), r.Delay, h.Retries+1, t.Retry.Count)
	return true, nil
}

// nameOf describes a child.
func (x *decision) nameOf(task string, index int) string {
	if t := x.def.Task(task); t != nil && t.WithItems != nil {
		return t.part(index) + " of " + task
	}
	return task
}

// wanted evaluates on_error for the end of a child. With an error there is no retry.
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

// needChildren asks for all missing results that on_error needs in this call, since each NeedError restarts the
// decision.
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

// repeatable reports whether the happening is an end that the task may retry.
func (t *Task) repeatable(h Happening) bool {
	return h.Kind == ChildEnded && t.Retry != nil && h.Retries < t.Retry.Count && slices.Contains(repeatable, h.Status)
}

// statusOf converts the status of a child to that of a task.
func statusOf(status lifecycle.Status) TaskStatus {
	switch status {
	case lifecycle.StatusCompleted:
		return TaskCompleted
	case lifecycle.StatusTimeout:
		return TaskTimeout
	case lifecycle.StatusCancelled:
		return TaskCancelled
	default:
		return TaskFailed
	}
}
