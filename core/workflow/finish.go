package workflow

import (
	"fmt"
	"maps"
	"strings"

	"github.com/attune-go/attune/core/attune"
)

// endWhenIdle is the rule that keeps workflows from hanging: one in which no task
// runs, waits for a repetition or is ready has ended, whatever else is in its state.
func (x *decision) endWhenIdle() error {
	if x.live > 0 {
		return nil
	}
	if x.state.Status == attune.StatusCanceling {
		x.end(attune.StatusCancelled, workflowCancelled)
	}
	if !x.running() {
		return nil
	}
	if !x.begun() {
		return nil
	}
	if failed := x.unhandled(); len(failed) > 0 {
		x.fail(x.failure(failed))
		return nil
	}
	result := map[string]any{}
	for _, output := range x.def.OutputMap {
		value, err := x.value(output.Value, scope{x: x})
		switch {
		case err == nil:
			result[output.Name] = value
		case needs(err) != nil:
			return err
		case x.def.onError().fail:
			x.fail(fmt.Sprintf("output_map %s: %v", output.Name, err))
			return nil
		default:
			x.logf("output_map leaves %s out: %v", output.Name, err)
		}
	}
	x.complete(result)
	return nil
}

// complete ends the workflow as completed.
func (x *decision) complete(result map[string]any) {
	x.state.Status = attune.StatusCompleted
	result["succeeded"] = true
	x.plan.End = &End{Status: attune.StatusCompleted, Result: result}
	x.logf("the workflow completed")
}

// begun reports whether the workflow was started, now or before.
func (x *decision) begun() bool {
	return len(x.state.Tasks) > 0 || x.ahead[0].Kind == Started
}

// fail ends the workflow as failed.
func (x *decision) fail(why string) { x.end(attune.StatusFailed, why) }

// end ends the workflow otherwise than it should.
func (x *decision) end(as attune.Status, why string) {
	x.state.Status = as
	result := map[string]any{"error": why, "succeeded": false}
	if as != attune.StatusCancelled {
		failed := []any{}
		for _, t := range x.unhandled() {
			failed = append(failed, t.Name)
		}
		result["failed_tasks"] = failed
	}
	x.plan.End = &End{Status: as, Error: why, Result: result}
	x.logf("the workflow ends %s: %s", as, why)
}

// unhandled are the tasks that have failed without a transition that led on.
func (x *decision) unhandled() []*Task {
	var failed []*Task
	for _, t := range x.def.All() {
		if x.state.unhandled(t) {
			failed = append(failed, t)
		}
	}
	return failed
}

// unhandled reports whether a task has failed and nothing answers it. The parallel
// task around one answers for it.
func (s *State) unhandled(t *Task) bool {
	st := s.Tasks[t.Name]
	if st == nil || !st.Status.bad() || st.Handled || st.Next == 0 && st.Status == TaskCancelled {
		return false
	}
	return t.Within == nil || !s.Tasks[t.Within.Name].Handled
}

// failure says which tasks have failed, and why as far as it is known here.
func (x *decision) failure(failed []*Task) string {
	const most = 10
	var names []string
	for _, t := range failed {
		if len(names) == most {
			names = append(names, fmt.Sprintf("and %d more", len(failed)-most))
			break
		}
		name, st := t.Name, x.state.Tasks[t.Name]
		switch {
		case st.Why != "":
			name += " (" + st.Why + ")"
		case t.WithItems != nil:
			name += fmt.Sprintf(" (%d of %d)", st.Total-st.Succeeded, st.Total)
		case st.Status != TaskFailed:
			name += " (" + st.summary(t) + ")"
		}
		names = append(names, name)
	}
	return counted(len(failed), "task") + " failed: " + strings.Join(names, ", ")
}

// Lists are the names of tasks as the published columns have them, in the order of
// the definition. Current are those that run or are ready; a handled failure
// counts as completed; what was cancelled before it began counts as skipped.
func (s *State) Lists(d *Definition) Lists {
	var lists Lists
	for _, t := range d.All() {
		st := s.Tasks[t.Name]
		if st == nil {
			continue
		}
		list := &lists.Completed
		switch {
		case st.Status == TaskWaiting || st.Status == "":
			continue
		case !st.Status.Ended():
			list = &lists.Current
		case st.Status == TaskSkipped, st.Status == TaskCancelled && st.Next == 0:
			list = &lists.Skipped
		case s.unhandled(t):
			list = &lists.Failed
		}
		*list = append(*list, t.Name)
	}
	return lists
}

// merged is a copy of an object with more keys; those it has already win.
func merged(object, more map[string]any) map[string]any {
	all := maps.Clone(more)
	maps.Copy(all, object)
	return all
}
