package filter

import (
	"slices"

	"github.com/attune-go/attune/core/monitor"
)

// Workflows are the fields for workflows.
var Workflows = Schema{
	{Name: "status", Kind: Word, Values: workflowWords(), Help: "one of its statuses, or that it is paused"},
	{Name: "action", Kind: Text, Help: "its action; a star stands for anything"},
	{Name: "task", Kind: Text, Help: "a task that is on its way or has failed"},
	{Name: "age", Kind: Age, Help: "how long ago it was requested"},
	{Name: "failed", Kind: Number, Help: "how many of its tasks have failed"},
	{
		Name: "parent", Kind: Text, Values: []string{monitor.ParentedAny, monitor.ParentedNone},
		Help: "the execution that has started it",
	},
	{Name: "error", Kind: Within, Help: "why it failed"},
	{Name: "id", Kind: ID, Help: "the number of its execution"},
}

func workflowWords() []string { return append(statusWords(), monitor.WorkflowPaused) }

// ForWorkflows turns a query into a filter of the database. A text without a field matches the action, a number the
// id. An error is an *Error.
func ForWorkflows(q *Query) (monitor.WorkflowFilter, error) {
	return alternatives(q, addToWorkflows, func(f *monitor.WorkflowFilter) *[]monitor.WorkflowFilter { return &f.Or })
}

func addToWorkflows(f *monitor.WorkflowFilter, t Term) (err error) {
	switch t.Field {
	case "":
		return addText(t, &f.IDs, &f.Match, &f.Unmatch)
	case "status":
		f.Statuses, err = narrowed(t, workflowWords(), f.Statuses)
		// Paused is no status of the execution but comes on top of it.
		f.NotPaused = f.NotPaused || err == nil && t.Not && slices.Contains(t.Values, monitor.WorkflowPaused)
		return err
	case "action":
		return addPattern(t, &f.Match, &f.Unmatch)
	case "task":
		return addPattern(t, &f.Tasks, &f.NotTasks)
	case "error":
		return addPattern(t, &f.Errors, &f.NotErrors)
	case "parent":
		return addParent(t, &f.Parent, &f.Parented)
	case "id":
		return addIDs(t, &f.IDs)
	case "age":
		addAge(t, &f.MinAge, &f.MaxAge)
	case "failed":
		return addCount(t, &f.MinFailed, &f.MaxFailed)
	}
	return nil
}
