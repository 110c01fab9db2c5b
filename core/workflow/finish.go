package workflow

import (
	"fmt"
	"maps"
	"strings"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/phrase"
)

// endWhenIdle keeps workflows from hanging: it ends one in which no task runs, waits for a retry or is ready.
func (x *decision) endWhenIdle() error {
	if x.live > 0 {
		return nil
	}
	if x.state.Status == lifecycle.StatusCanceling {
		x.end(lifecycle.StatusCancelled, workflowCancelled)
	}
	begun := len(x.state.Tasks) > 0 || x.ahead[0].Kind == Started
	if !x.running() || !begun {
		return nil
	}
	if failed := x.unhandled(); len(failed) > 0 {
		x.end(lifecycle.StatusFailed, x.failure(failed))
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
			x.end(lifecycle.StatusFailed, fmt.Sprintf("output_map %s: %v", output.Name, err))
			return nil
		default:
			x.logf("output_map leaves %s out: %v", output.Name, err)
		}
	}
	x.complete(result)
	return nil
}

func (x *decision) complete(result map[string]any) {
	x.state.Status = lifecycle.StatusCompleted
	result["succeeded"] = true
	x.plan.End = &End{Status: lifecycle.StatusCompleted, Result: result}
	x.logf("the workflow completed")
}

// end ends the workflow with any status but completed.
func (x *decision) end(as lifecycle.Status, why string) {
	x.state.Status = as
	result := map[string]any{"error": why, "succeeded": false}
	if as != lifecycle.StatusCancelled {
		failed := []any{}
		for _, t := range x.unhandled() {
			failed = append(failed, t.Name)
		}
		result["failed_tasks"] = failed
	}
	x.plan.End = &End{Status: as, Error: why, Result: result}
	x.logf("the workflow ends %s: %s", as, why)
}

// unhandled are the failed tasks without a transition that led on.
func (x *decision) unhandled() []*Task {
	var failed []*Task
	for _, t := range x.def.All() {
		if x.state.unhandled(t) {
			failed = append(failed, t)
		}
	}
	return failed
}

// unhandled reports whether a failure is not handled, neither by the task nor by the parallel task around it.
func (s *State) unhandled(t *Task) bool {
	st := s.Tasks[t.Name]
	if st == nil || !st.Status.bad() || st.Handled || st.Next == 0 && st.Status == TaskCancelled {
		return false
	}
	return t.Within == nil || !s.Tasks[t.Within.Name].Handled
}

// failure describes the failed tasks, with the reasons that the state has.
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
	return phrase.Plural(len(failed), "task", "tasks") + " failed: " + strings.Join(names, ", ")
}

// Lists are the names of tasks for the published columns, in the order of the definition. Current are running and ready
// tasks. A handled failure counts as completed, a task that was cancelled before its start as skipped.
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

// merged is a copy of an object with the keys of more that it does not have.
func merged(object, more map[string]any) map[string]any {
	all := maps.Clone(more)
	maps.Copy(all, object)
	return all
}
