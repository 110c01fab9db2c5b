package workflow

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/attune-go/attune/core/expr"
)

// scope resolves the names and functions of an expression: parameters, variables (workflow, vars, variables, or their
// bare names), task and tasks, item, index and batch, system, config and keystore. result(), succeeded() and so on are
// about an ended task: that of a transition, or the predecessor of a task that starts.
type scope struct {
	x       *decision
	outcome outcome
	place   *place
}

// outcome is the end of a task or a child. The zero value has a null result, and has neither succeeded nor failed.
type outcome struct {
	status TaskStatus
	result func() (any, error)
}

var _ expr.Scope = scope{}

func (x *decision) scopeOf(t *Task) scope {
	if t.Within != nil {
		t = t.Within
	}
	if cause := x.def.Task(x.cause(t)); cause != nil && x.state.Tasks[cause.Name] != nil {
		return x.scopeAfter(cause)
	}
	return scope{x: x}
}

// scopeAfter is the scope of an ended task's transitions. A skipped task has no result.
func (x *decision) scopeAfter(t *Task) scope {
	status := x.state.Tasks[t.Name].Status
	if status == TaskSkipped {
		return scope{x: x, outcome: outcome{status: status}}
	}
	return scope{x: x, outcome: outcome{status: status, result: func() (any, error) {
		result, _, err := x.result(t)
		return result.Value, err
	}}}
}

// Lookup implements expr.Scope.
func (s scope) Lookup(name string) (any, bool, error) {
	switch name {
	case "parameters":
		return object(s.x.facts.Parameters), true, nil
	case "workflow", "vars", "variables":
		return object(s.x.state.Variables), true, nil
	case "task", "tasks":
		return tasksObject{s.x}, true, nil
	case "config":
		return s.x.facts.Config, true, nil
	case "keystore":
		return s.x.facts.Keystore, true, nil
	case "system":
		return map[string]any{
			"workflow_start": s.x.facts.Begun.UTC().Format(time.RFC3339Nano),
			"execution_id":   s.x.facts.Execution,
		}, true, nil
	}
	if s.place != nil {
		switch {
		case name == "item":
			return s.place.item, true, nil
		case name == "index":
			return int64(s.place.index), true, nil
		case name == "batch" && s.place.batch != nil:
			return s.place.batch, true, nil
		}
	}
	value, known := s.x.state.Variables[name]
	return value, known, nil
}

// Call implements expr.Scope.
func (s scope) Call(name string, arguments []any) (any, bool, error) {
	status := s.outcome.status
	var value any
	switch name {
	case "result":
		if s.outcome.result != nil && len(arguments) == 0 {
			result, err := s.outcome.result()
			if err != nil {
				return nil, true, err
			}
			if value = result; value == nil {
				value = map[string]any{}
			}
		}
	case "succeeded":
		value = status == TaskCompleted || status == TaskSkipped
	case "failed":
		value = status == TaskFailed || status == TaskCancelled
	case "timed_out":
		value = status == TaskTimeout
	case "cancelled":
		value = status == TaskCancelled
	default:
		return nil, false, nil
	}
	if len(arguments) > 0 {
		return nil, true, fmt.Errorf("it takes no arguments")
	}
	return value, true, nil
}

// tasksObject has the ended tasks; Get fetches their results one by one.
type tasksObject struct{ x *decision }

// Keys implements expr.Object.
func (o tasksObject) Keys() []string {
	var names []string
	for name, st := range o.x.state.Tasks {
		if st.Status.Ended() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Get implements expr.Object.
func (o tasksObject) Get(name string) (any, bool, error) {
	t := o.x.def.Task(name)
	if t == nil {
		return nil, false, nil
	}
	result, known, err := o.x.result(t)
	return taskObject{result.View}, known, err
}

// taskObject is task.NAME, the view of its result. If that has no field result, task.NAME.result is the same view.
type taskObject struct{ view any }

var _ expr.Valued = taskObject{}

// Value implements expr.Valued.
func (o taskObject) Value() any { return o.view }

// Keys implements expr.Object.
func (o taskObject) Keys() []string {
	fields, _ := o.view.(map[string]any)
	return slices.Sorted(maps.Keys(fields))
}

// Get implements expr.Object.
func (o taskObject) Get(name string) (any, bool, error) {
	fields, _ := o.view.(map[string]any)
	if value, known := fields[name]; known {
		return value, true, nil
	}
	return o.view, name == "result", nil
}

// result is the result of a task; known is false until it has ended.
func (x *decision) result(t *Task) (r Result, known bool, err error) {
	st := x.state.Tasks[t.Name]
	switch {
	case st == nil || !st.Status.Ended():
		return Result{}, false, nil
	case st.Status == TaskSkipped:
		return Result{}, true, nil
	case t.Kind == KindParallel && st.Next > 0:
		r, err = x.results(t)
		return r, true, err
	case st.Next == 0 && st.Status == TaskCompleted && t.WithItems != nil:
		return st.ofList(Result{}), true, nil
	case st.Next == 0:
		why := map[string]any{"error": st.Why}
		return Result{Value: why, View: why}, true, nil
	}
	r, given := x.facts.Results[t.Name]
	if !given {
		return Result{}, true, &NeedError{Results: []string{t.Name}}
	}
	if t.WithItems != nil {
		r = st.ofList(r)
	}
	return r, true, nil
}

// results are those of a parallel task, by the tasks within.
func (x *decision) results(t *Task) (Result, error) {
	values, views := map[string]any{}, map[string]any{}
	missing := &NeedError{}
	for _, sub := range t.Tasks {
		r, _, err := x.result(sub)
		if need := needs(err); need != nil {
			missing.Results = append(missing.Results, need.Results...)
		}
		values[sub.Name], views[sub.Name] = r.Value, r.View
	}
	if len(missing.Results) > 0 {
		return Result{}, missing
	}
	return Result{Value: values, View: views}, nil
}

// value evaluates a value of the definition. If results are missing, the NeedError has all that the value mentions.
func (x *decision) value(v *Value, in scope) (any, error) {
	var cost expr.Budget
	value, err := v.evalWithin(in, &cost)
	x.cost += cost.Steps()
	if need := needs(err); need != nil {
		return nil, x.foresee(need, v.Raw())
	}
	return value, err
}

// holds evaluates a condition of the definition.
func (x *decision) holds(c *Condition, in scope) (bool, error) {
	var cost expr.Budget
	holds, err := c.holdsWithin(in, &cost)
	x.cost += cost.Steps()
	if need := needs(err); need != nil {
		return false, x.foresee(need, "{{ "+c.Expression()+" }}")
	}
	return holds, err
}

func object(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}
