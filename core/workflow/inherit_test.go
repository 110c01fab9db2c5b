package workflow_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/workflow"
)

const inheritable = `
version: "1"
tasks:
  - {name: each, action: pk.a, with_items: [1, 2, 3, 4, 5, 6], concurrency: 2, next: [{do: [both]}]}
  - name: both
    type: parallel
    tasks: [{name: disk, action: pk.a}, {name: net, action: pk.a}]
    next: [{when: "{{ failed() }}", do: [sorry]}, {do: [end]}]
  - {name: sorry, action: pk.a}
  - {name: end, action: pk.a}
`

// What other engines leave is counted, and only lists of entries that were not created in full are evaluated again.
func TestTheStateOfAnotherEngineIsInherited(t *testing.T) {
	t.Parallel()
	const completed, running, requested = lifecycle.StatusCompleted, lifecycle.StatusRunning, lifecycle.StatusRequested
	child := func(task string, index int, status lifecycle.Status) workflow.InheritedChild {
		return workflow.InheritedChild{
			Child: workflow.Child{Task: task, Index: index}, Status: status, Ended: status.Terminal(),
			Waits: status == requested,
		}
	}
	list := func(statuses ...lifecycle.Status) (children []workflow.InheritedChild) {
		for i, status := range statuses {
			if status != "" {
				children = append(children, child("each", i, status))
			}
		}
		return children
	}
	begun := workflow.Lists{Completed: []string{"each"}}
	for name, c := range map[string]struct {
		from  workflow.Inherited
		task  string
		want  workflow.TaskState
		keeps int // items
		due   int
	}{
		"a window of a list": {
			workflow.Inherited{Children: list(completed, "", running, requested, requested, requested)}, "each",
			workflow.TaskState{
				Status: workflow.TaskRunning, Items: 6, Total: 6, Made: 6, Found: true, Next: 4, Open: 2, Succeeded: 2,
			},
			0, 1,
		},
		"a list that was not created in full": {
			workflow.Inherited{Children: list(completed, running, requested)}, "each",
			workflow.TaskState{
				Status: workflow.TaskRunning, Items: 6, Total: 6, Made: 3, Found: true, Next: 3, Open: 2, Succeeded: 1,
			},
			6, 1,
		},
		"a list whose last items may have been deleted": {
			workflow.Inherited{Children: list(running)}, "each",
			workflow.TaskState{
				Status: workflow.TaskRunning, Items: 1, Total: 1, Made: 1, Found: true, Next: 1, Open: 1,
			},
			0, 0,
		},
		"one that is being cancelled": {
			workflow.Inherited{Children: list(completed, running, requested), Canceling: true}, "each",
			workflow.TaskState{
				Status: workflow.TaskRunning, Items: 3, Total: 3, Made: 3, Found: true, Next: 3, Open: 2, Succeeded: 1,
			},
			0, 1,
		},
		"a parallel task of which one part has ended": {
			workflow.Inherited{
				Lists:    workflow.Lists{Completed: []string{"each", "disk"}, Current: []string{"both", "net"}},
				Children: []workflow.InheritedChild{child("net", 0, running)},
			}, "both",
			workflow.TaskState{Status: workflow.TaskRunning, Total: 2, Next: 2, Open: 1, Succeeded: 1}, 0, 0,
		},
		"a current task without a child": {
			workflow.Inherited{Lists: workflow.Lists{Completed: []string{"each", "both"}, Current: []string{"end"}}},
			"end",
			workflow.TaskState{Status: workflow.TaskRunning, Total: 1, Next: 1, Open: 1}, 0, 0,
		},
		"the same in a paused workflow": {
			workflow.Inherited{
				Lists: workflow.Lists{Completed: []string{"each"}, Current: []string{"end"}}, Paused: true,
			},
			"end",
			workflow.TaskState{Status: workflow.TaskReady}, 0, 0,
		},
		"a skipped task": {
			workflow.Inherited{Lists: workflow.Lists{Completed: []string{"each"}, Skipped: []string{"sorry"}}},
			"sorry",
			workflow.TaskState{Status: workflow.TaskSkipped}, 0, 0,
		},
		"a task that the graph does not have": {
			workflow.Inherited{Lists: begun, Children: []workflow.InheritedChild{child("old", 0, running)}}, "old",
			workflow.TaskState{Status: workflow.TaskRunning, Total: 1, Next: 1, Open: 1}, 0, 0,
		},
		"a list whose executions are gone": {
			workflow.Inherited{Lists: begun}, "each",
			workflow.TaskState{Status: workflow.TaskCompleted, Items: 1, Total: 1, Next: 1, Succeeded: 1}, 0, 0,
		},
		"a failure that a transition handled": {
			workflow.Inherited{
				Lists: workflow.Lists{Completed: []string{"each", "both"}},
				Children: []workflow.InheritedChild{
					child("both", 0, lifecycle.StatusFailed), {Child: workflow.Child{Task: "sorry"},
						TriggeredBy: "both"},
				},
			}, "both",
			workflow.TaskState{Status: workflow.TaskFailed, Total: 1, Next: 1, Failed: 1, Handled: true}, 0, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			definition, mistakes, _ := workflow.Parse("flow", []byte(inheritable))
			require.Empty(t, mistakes)
			got, err := definition.Inherit(c.from, workflow.Facts{})
			require.NoError(t, err)
			require.Equal(t, &c.want, got.State.Tasks[c.task])
			require.Len(t, got.Due, c.due)
			items := 0
			for _, kept := range got.Keep {
				items += len(kept.Items)
			}
			require.Equal(t, c.keeps, items)
		})
	}
}

// The graph of another engine is lenient and has one child for each item, as that engine reads it.
func TestTheGraphOfAnotherEngineIsLenient(t *testing.T) {
	t.Parallel()
	present, mistakes, _ := workflow.Parse("flow", []byte(`
version: "1"
strict: true
cancellation_policy: cancel_running
tasks: [{name: a, action: pk.a}]
output_map: {x: 1}
`))
	require.Empty(t, mistakes)
	graph := `{"nodes": {"a": {"name": "a", "task_type": "action", "action": "pk.a", "input": {}, "with_items": "{{ [1] }}",
		"batch_size": 2, "transitions": [], "inbound_tasks": []}}, "entry_points": ["a"]}`
	d, err := workflow.ParseTaskGraph([]byte(graph), present)
	require.NoError(t, err)
	require.False(t, d.Strict)
	require.Zero(t, d.Task("a").BatchSize)
	require.Equal(t, workflow.CancelRunning, d.Cancellation)
	require.Len(t, d.OutputMap, 1)
}
