package workflow

import (
	"fmt"
	"slices"

	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/yamldoc"
)

// arrive records that a predecessor leads to a task, and starts it when enough have arrived.
func (x *decision) arrive(name, from string) error {
	t := x.def.Task(name)
	if t == nil {
		return nil
	}
	st := x.state.Tasks[name]
	if st != nil && (st.Status != TaskWaiting || slices.Contains(st.Arrived, from)) {
		return nil // the first arrivals have started it
	}
	st = x.own(name)
	st.Arrived = append(st.Arrived, from)
	if len(st.Arrived) < t.Join {
		x.move(name, TaskWaiting)
		x.logf("join of %s: %d of %d have arrived", name, len(st.Arrived), t.Join)
		return nil
	}
	return x.start(t)
}

// start runs a task, or makes it ready while the workflow is paused.
func (x *decision) start(t *Task) error {
	if x.state.Paused {
		x.move(t.Name, TaskReady)
		x.logf("%s is ready, and starts when the workflow is resumed", t.Name)
		return nil
	}
	return x.run(t)
}

// run runs a task. An error in its definition fails it.
func (x *decision) run(t *Task) error {
	err := x.try(t)
	if err == nil || needs(err) != nil {
		return err
	}
	x.logf("%s failed before it was started: %v", t.Name, err)
	x.finish(t.Name, TaskFailed, err.Error())
	return nil
}

func (x *decision) try(t *Task) error {
	if t.Action == "" && t.Kind != KindParallel {
		x.omit(t)
		return nil
	}
	if t.When != nil && x.def.Strict { // the published executor stores it and never evaluates it
		holds, err := x.holds(t.When, x.scopeOf(t))
		switch {
		case err != nil:
			return fmt.Errorf("when: %w", err)
		case !holds:
			why := fmt.Sprintf("its condition %s is false%s", yamldoc.Shorten(t.When.Source()),
				t.When.operands(x.scopeOf(t)))
			x.logf("%s is skipped: %s", t.Name, why)
			x.finish(t.Name, TaskSkipped, why)
			return nil
		}
	}
	switch {
	case t.Kind == KindParallel:
		return x.runParallel(t)
	case t.WithItems != nil:
		return x.runList(t)
	default:
		return x.runOne(t)
	}
}

// omit skips a task without an action. Its transitions do not fire.
func (x *decision) omit(t *Task) {
	const why = "it has no action"
	x.logf("warning: %s is skipped: %s", t.Name, why)
	if t.Within != nil { // the parallel task counts it
		x.finish(t.Name, TaskSkipped, why)
		return
	}
	x.move(t.Name, TaskSkipped).Why = why
}

func (x *decision) runOne(t *Task) error {
	child, err := x.child(t, nil)
	if err != nil {
		return err
	}
	st := x.move(t.Name, TaskRunning)
	st.Total, st.Next, st.Open = 1, 1, 1
	x.put(t, child)
	x.logf("%s is started%s", t.Name, x.after(t))
	return nil
}

// runParallel starts all tasks within.
func (x *decision) runParallel(t *Task) error {
	st := x.move(t.Name, TaskRunning)
	st.Total, st.Next, st.Open = len(t.Tasks), len(t.Tasks), len(t.Tasks)
	x.logf("%s starts %s%s", t.Name, phrase.Plural(len(t.Tasks), "task", "tasks"), x.after(t))
	if len(t.Tasks) == 0 {
		x.finish(t.Name, TaskCompleted, "")
	}
	for _, sub := range t.Tasks {
		x.own(sub.Name).Arrived = []string{t.Name}
		if err := x.run(sub); err != nil {
			return err
		}
	}
	return nil
}

// child renders one child of a task; at is its place in the list of the task, nil without a list.
func (x *decision) child(t *Task, at *place) (Start, error) {
	child := Start{Task: t.Name, Action: t.Action, Timeout: t.Timeout, TriggeredBy: x.cause(t)}
	if t.Retry != nil {
		child.MaxRetries = t.Retry.Count
	}
	if at != nil {
		child.Index = &at.index
		if t.BatchSize > 0 {
			child.Batch = &at.index
		}
	}
	in := x.scopeOf(t)
	in.place = at
	for _, render := range []func(*Start, *Task, scope) error{x.input, x.permissions, x.placement} {
		if err := render(&child, t, in); err != nil {
			return Start{}, err
		}
	}
	return child, nil
}

// cause is the last predecessor of a task, empty for an entry.
func (x *decision) cause(t *Task) string {
	if st := x.state.Tasks[t.Name]; st != nil && len(st.Arrived) > 0 {
		return st.Arrived[len(st.Arrived)-1]
	}
	return ""
}

// after describes the cause of a task.
func (x *decision) after(t *Task) string {
	if cause := x.cause(t); cause != "" && t.Within == nil {
		return " after " + cause
	}
	return ""
}

// input renders the parameters of a child. A task without input passes on those of the workflow.
func (x *decision) input(child *Start, t *Task, in scope) error {
	if t.Input == nil {
		child.Config = object(x.facts.Parameters)
		return nil
	}
	value, err := x.value(t.Input, in)
	if err != nil {
		return fmt.Errorf("input: %w", err)
	}
	config, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("input: an object is expected, not %s", kind(value))
	}
	child.Config = config
	return nil
}

func (x *decision) permissions(child *Start, t *Task, in scope) error {
	if t.PermissionSets == nil {
		return nil
	}
	value, err := x.value(t.PermissionSets, in)
	if err != nil {
		return fmt.Errorf("permission_set_refs: %w", err)
	}
	child.PermissionSets = []string{}
	for _, item := range asList(value) {
		ref, ok := item.(string)
		if !ok {
			return fmt.Errorf("permission_set_refs: names are expected, not %s", kind(item))
		}
		if ref != "" {
			child.PermissionSets = append(child.PermissionSets, ref)
		}
	}
	return nil
}

// placement renders the placement of a child. A null value becomes an empty one, which removes that of the action.
func (x *decision) placement(child *Start, t *Task, in scope) error {
	for _, field := range []struct {
		name    string
		from    *Value
		to      *any
		nothing any
	}{
		{"worker_selector", t.Selector, &child.Selector, map[string]any{}},
		{"worker_tolerations", t.Tolerations, &child.Tolerations, []any{}},
		{"worker_affinity", t.Affinity, &child.Affinity, map[string]any{}},
	} {
		if field.from == nil {
			continue
		}
		value, err := x.value(field.from, in)
		if err != nil {
			return fmt.Errorf("%s: %w", field.name, err)
		}
		if value == nil {
			value = field.nothing
		}
		*field.to = value
	}
	return nil
}

// asList treats null as an empty list, and any other value as a list with that one item.
func asList(value any) []any {
	switch v := value.(type) {
	case nil:
		return nil
	case []any:
		return v
	default:
		return []any{v}
	}
}
