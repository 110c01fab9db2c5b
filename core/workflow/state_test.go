package workflow_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/workflow"
)

func TestAStoredStateIsReadUnchanged(t *testing.T) {
	t.Parallel()
	done := workflow.TaskState{Status: workflow.TaskCompleted, Total: 1, Next: 1, Succeeded: 1}
	handled, listed, explained := done, done, done
	handled.Handled, listed.Items, explained.Why = true, 1, "so"
	s := &workflow.State{
		Status: lifecycle.StatusRunning,
		Paused: true,
		Tasks: map[string]*workflow.TaskState{
			"a": &done, "b": &handled, "c": &listed, "d": &explained,
			"e": {Status: workflow.TaskWaiting, Arrived: []string{"a", "b"}},
			"f": {
				Status: workflow.TaskRunning, Items: 7, Total: 4, Next: 3, Open: 1, Succeeded: 1, Failed: 1,
				TimedOut: 1, Cancelled: 1,
			},
			"g": {Status: workflow.TaskSkipped, Why: "its condition is false"},
			"h": {Status: workflow.TaskCompleted},
		},
		Held: []workflow.Repeat{{Task: "f", Index: 2, Delay: time.Second, Reason: "failed"}},
	}
	raw, err := workflow.MarshalState(s)
	require.NoError(t, err)
	require.Contains(t, string(raw), `"done":["a"]`)
	back, err := workflow.ParseState(raw)
	require.NoError(t, err)
	require.Equal(t, s, back)

	_, err = workflow.ParseState([]byte("no state"))
	require.ErrorContains(t, err, "read the state of a workflow: ")
	back, err = workflow.ParseState([]byte(`{"status": "running", "tasks": {"a": null}}`))
	require.NoError(t, err)
	require.Empty(t, back.Tasks)
}

func TestAStateOfNothingIsRefused(t *testing.T) {
	t.Parallel()
	_, err := define(t, "- {name: a, action: core.a}").Decide(&workflow.State{}, nil, workflow.Facts{})
	require.EqualError(t, err, "decide a workflow: a state has a status")
}

// A task that is taken out of the definition while it runs does not keep the
// workflow from its end.
func TestATaskThatTheDefinitionDoesNotHaveAnyMoreDoesNotHang(t *testing.T) {
	t.Parallel()
	w := start(t, `
- {name: a, action: core.a}
- {name: b, action: core.b, with_items: "{{ range(5) }}", concurrency: 2}
`)
	w.tell(pause)
	w.tell(resume)
	w.state.Tasks["gone"] = &workflow.TaskState{Status: workflow.TaskReady}
	w.def = define(t, `
- {name: a, action: core.a}
`)
	w.ends("a", completed)
	w.item("b", 0, completed)
	require.Nil(t, w.end)
	w.item("b", 1, failed)
	w.said("b failed: the definition does not have it any more")
	w.hasEnded(completed)
}

func TestViewsHaveTheKeysOfTheDataOrTheOutput(t *testing.T) {
	t.Parallel()
	type object = map[string]any
	data := object{"a": int64(1), "b": int64(2)}
	for name, c := range map[string]struct{ result, view any }{
		"nothing":         {nil, nil},
		"text":            {"text", "text"},
		"data":            {object{"data": data}, object{"data": data, "a": int64(1), "b": int64(2)}},
		"its own win":     {object{"data": data, "a": 9}, object{"data": data, "a": int64(9), "b": int64(2)}},
		"data, no object": {object{"data": "x", "stdout": `{"k": 1}`}, object{"data": "x", "stdout": `{"k": 1}`}},
		"printed": {
			object{"stdout": ` {"k": 1.5, "n": 2}`},
			object{"stdout": ` {"k": 1.5, "n": 2}`, "k": json.Number("1.5"), "n": int64(2)},
		},
		"data is null":    {object{"data": nil, "stdout": `{"k": 1}`}, object{"data": nil, "stdout": `{"k": 1}`}},
		"printed more":    {object{"stdout": `{"k": 1} and more`}, object{"stdout": `{"k": 1} and more`}},
		"printed a list":  {object{"stdout": `[1]`}, object{"stdout": `[1]`}},
		"printed no JSON": {object{"stdout": `{"k"`}, object{"stdout": `{"k"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.view, workflow.ViewOf(c.result))
		})
	}
	require.Equal(t, object{"a": 1, "response": "yes"}, workflow.Answered(object{"a": 1, "response": "older"}, "yes"))
	require.Equal(t, object{"result": "x", "response": "yes"}, workflow.Answered("x", "yes"))
	require.Equal(t, object{"response": nil}, workflow.Answered(nil, nil))
}
