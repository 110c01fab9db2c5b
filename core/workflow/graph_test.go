package workflow_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/workflow"
)

// Both stored forms equal the definition in the file.
func TestStoredFormsAreEqual(t *testing.T) {
	t.Parallel()
	d := parse(t, everything)
	stored, err := d.JSON()
	require.NoError(t, err)
	again, err := workflow.ParseJSON(stored)
	require.NoError(t, err)
	requireEverything(t, again)
	require.Equal(t, "Check out", again.Label)
	require.Equal(t, []string{"shop", "money"}, again.Tags)
	require.Equal(t, d.Parameters, again.Parameters)
	twice, err := again.JSON()
	require.NoError(t, err)
	require.JSONEq(t, string(stored), string(twice))

	graph, err := d.TaskGraph()
	require.NoError(t, err)
	running, err := workflow.ParseTaskGraph(graph, nil)
	require.NoError(t, err)
	requireEverything(t, running)
	twice, err = running.TaskGraph()
	require.NoError(t, err)
	require.JSONEq(t, string(graph), string(twice))
}

// The task graph has the published shape.
func TestTaskGraphIsAsPublished(t *testing.T) {
	t.Parallel()
	graph, err := parse(t, everything).TaskGraph()
	require.NoError(t, err)
	var got struct {
		Nodes       map[string]json.RawMessage `json:"nodes"`
		EntryPoints json.RawMessage            `json:"entry_points"`
		Inbound     json.RawMessage            `json:"inbound_edges"`
		Outbound    json.RawMessage            `json:"outbound_edges"`
	}
	require.NoError(t, json.Unmarshal(graph, &got))
	require.JSONEq(t, `["reserve"]`, string(got.EntryPoints))
	require.JSONEq(t, `{"pay": ["reserve"], "prepare": ["reserve"], "tell": ["reserve"], "ship": ["pay", "prepare"]}`,
		string(got.Inbound))
	require.JSONEq(t, `{"reserve": ["pay", "prepare", "tell"], "pay": ["ship"], "prepare": ["ship"]}`,
		string(got.Outbound))
	require.JSONEq(t, `{
		"name": "reserve", "task_type": "action", "action": "shop.reserve",
		"input": {"cart": "{{ parameters.cart }}", "note": "for {{ parameters.cart.owner }}"},
		"permission_set_refs": ["shop.writer"],
		"worker_selector": {"zone": "{{ parameters.zone }}"},
		"worker_tolerations": [{"key": "dedicated", "value": "shop", "effect": "no_schedule"}],
		"worker_affinity": {"required": []},
		"when": "{{ parameters.cart != null }}", "with_items": null, "batch_size": null, "concurrency": null,
		"retry": {"count": 3, "delay": 2, "backoff": "Exponential", "max_delay": 10, "on_error": "{{ result().code != 'sold_out' }}"},
		"timeout": 30,
		"transitions": [
			{"when": "{{ succeeded() }}", "do_tasks": ["pay", "prepare"],
			 "publish": [{"name": "order", "value": "{{ result().id }}"}, {"name": "whole", "value": "{{ result() }}"}]},
			{"when": "failed() and not timed_out()", "publish": [], "do_tasks": ["tell"]}],
		"sub_tasks": null, "inbound_tasks": [], "join": null
	}`, string(got.Nodes["reserve"]))
	require.JSONEq(t, `{
		"name": "ship", "task_type": "action", "action": "shop.ship", "input": {"parcels": "{{ batch }}", "first": "{{ index }}"},
		"worker_selector": null, "worker_tolerations": null, "worker_affinity": null, "when": null,
		"with_items": "{{ parameters.cart.parcels }}", "batch_size": 2, "concurrency": 4, "retry": null, "timeout": null,
		"transitions": [], "sub_tasks": null, "inbound_tasks": ["pay", "prepare"], "join": 2
	}`, string(got.Nodes["ship"]))
	require.Contains(t, string(got.Nodes["prepare"]), `"sub_tasks":[{"name":"box"`)
}

// Definitions that the existing engine has stored are read, with its omissions.
func TestParseJSONOfTheExistingEngine(t *testing.T) {
	t.Parallel()
	d, err := workflow.ParseJSON([]byte(`{
		"ref": "", "label": "", "description": null, "version": "1.0.0", "parameters": null, "output": null, "vars": {"n": 12345678901234567},
		"tasks": [
			{"name": "a", "type": "action", "action": "core.echo", "input": {"text": "caf\u00e9 \ud83d\ude00"}, "worker_selector": null,
			 "trace_tag_template": null, "when": null, "with_items": null, "iterate_cache": null, "batch_size": 3, "concurrency": 0,
			 "retry": null, "timeout": 0, "join": 0, "tasks": null,
			 "next": [{"when": "{{ succeeded() }}", "publish": [{"x": "{{ result() }}"}, "whole"], "do": ["b"]}]},
			{"name": "b", "type": "action", "action": "core.echo", "input": {}, "next": [], "join": 1}
		],
		"output_map": null, "tags": [], "cancellation_policy": "cancel_running"}`))
	require.NoError(t, err)
	require.Equal(t, map[string]any{"n": int64(12345678901234567)}, d.Vars)
	require.Equal(t, map[string]any{"text": "café 😀"}, d.Task("a").Input.Raw())
	require.Equal(t, []string{"a"}, d.Task("b").Inbound)
	require.Equal(t, 1, d.Task("a").Concurrency)
	require.Equal(t, workflow.CancelRunning, d.Cancellation)

	_, err = workflow.ParseJSON([]byte(`{"version": "1", "strict": true, "tasks": [
		{"name": "a", "action": "core.echo", "next": [{"do": ["b"]}]}, {"name": "b", "action": "core.echo", "next": [{"do": ["a"]}]}]}`))
	require.ErrorContains(t, err, "a → b → a")
	var mistakes *workflow.MistakesError
	require.ErrorAs(t, err, &mistakes)
	_, err = workflow.ParseJSON([]byte(`{"version": "1", "tasks": [{"name": 7}]`))
	require.ErrorContains(t, err, "read a workflow's definition")
	_, err = workflow.ParseJSON([]byte(`{} {}`))
	require.Error(t, err)
}

// A graph that the existing engine has stored has only the tasks.
func TestParseTaskGraphOfOthers(t *testing.T) {
	t.Parallel()
	stored := []byte(`{"nodes": {
		"b": {"name": "b", "task_type": "action", "action": "core.echo", "input": {}, "permission_set_refs": null, "worker_selector": null,
		      "transitions": [], "sub_tasks": null, "inbound_tasks": ["a"], "join": 1},
		"a": {"name": "a", "task_type": "action", "action": "core.echo", "input": {"n": 9007199254740993}, "retry":
		      {"count": 2, "delay": 1, "backoff": "Linear", "max_delay": null, "on_error": null},
		      "transitions": [{"when": null, "publish": [{"name": "x", "expression": "{{ result() }}"}], "do_tasks": ["b"]}],
		      "inbound_tasks": []}},
		"entry_points": ["a"], "inbound_edges": {"b": ["a"]}, "outbound_edges": {"a": ["b"]}}`)
	rest := parse(t, everything)
	d, err := workflow.ParseTaskGraph(stored, rest)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, names(d.Tasks))
	require.Equal(t, map[string]any{"n": int64(9007199254740993)}, d.Task("a").Input.Raw())
	require.Equal(t, workflow.BackoffLinear, d.Task("a").Retry.Backoff)
	require.Equal(t, "{{ result() }}", d.Task("a").Next[0].Publish[0].Value.Raw())
	require.NotNil(t, d.Task("b").PermissionSets)
	require.Len(t, d.OutputMap, 2)
	require.Equal(t, rest.Vars, d.Vars)
	require.Equal(t, workflow.CancelRunning, d.Cancellation)
	bare, err := workflow.ParseTaskGraph(stored, nil)
	require.NoError(t, err)
	require.Empty(t, bare.OutputMap)

	_, err = workflow.ParseTaskGraph([]byte(`{"nodes": []}`), nil)
	require.ErrorContains(t, err, "read the task graph")
}
