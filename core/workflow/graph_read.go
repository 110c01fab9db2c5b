package workflow

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/attune-go/attune/core/jsonvalue"
)

// ParseTaskGraph reads the definition of a started workflow, of TaskGraph or of another engine. The latter has no order
// of tasks, which are then sorted by name, and no vars, output map and cancellation, which are then those of rest
// unless it is nil. It is lenient and ignores batch_size, as that engine does. The error is a *MistakesError if the
// definition cannot run.
func ParseTaskGraph(stored []byte, rest *Definition) (*Definition, error) {
	var g taskGraph
	if err := jsonvalue.Decode(stored, &g); err != nil {
		return nil, fmt.Errorf("read the task graph of a workflow: %w", err)
	}
	form := storedDefinition{Version: "1"}
	order := slices.Sorted(maps.Keys(g.Nodes))
	w := g.Workflow
	if w != nil {
		order = w.Order
	} else if rest != nil {
		w = restOf(rest)
		w.Strict = false
	}
	if w != nil {
		form.Ref, form.Version, form.Vars, form.OutputMap = w.Ref, w.Version, w.Vars, w.OutputMap
		form.Parameters, form.Cancellation, form.Strict = w.Parameters, w.Cancellation, w.Strict
	}
	for _, name := range order {
		node, ok := g.Nodes[name]
		if !ok {
			return nil, fmt.Errorf("read the task graph of a workflow: there is no node %s", name)
		}
		if g.Workflow == nil {
			node.BatchSize = nil
		}
		form.Tasks = append(form.Tasks, node.task())
	}
	again, err := marshal(form)
	if err != nil {
		return nil, err
	}
	return ParseJSON(again)
}

// task converts a node to the form of definitions.
func (n graphNode) task() storedTask {
	t := storedTask{
		Name: n.Name, Type: n.Type, Action: n.Action, Input: n.Input, taskFields: n.taskFields, Join: n.Join,
	}
	for _, transition := range n.Transitions {
		next := storedTransition{When: transition.When, Do: transition.Do}
		for _, a := range transition.Publish {
			next.Publish = append(next.Publish, map[string]any{a.Name: a.Value})
		}
		t.Next = append(t.Next, next)
	}
	for _, sub := range n.SubTasks {
		t.Tasks = append(t.Tasks, sub.task())
	}
	return t
}

// UnmarshalJSON distinguishes null permission sets from missing ones.
func (n *graphNode) UnmarshalJSON(raw []byte) error {
	type plain graphNode
	if err := jsonvalue.Decode(raw, (*plain)(n)); err != nil {
		return fmt.Errorf("read a task: %w", err)
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		return fmt.Errorf("read a task: %w", err)
	}
	if sets, ok := keys["permission_set_refs"]; ok && string(sets) == "null" {
		n.PermissionSets = new(any)
	}
	return nil
}

// UnmarshalJSON also reads the value of older assignments, whose key is expression.
func (a *graphAssign) UnmarshalJSON(raw []byte) error {
	var stored struct {
		Name       string `json:"name"`
		Value      any    `json:"value"`
		Expression any    `json:"expression"`
	}
	if err := jsonvalue.Decode(raw, &stored); err != nil {
		return fmt.Errorf("read an assignment: %w", err)
	}
	a.Name, a.Value = stored.Name, stored.Value
	if a.Value == nil {
		a.Value = stored.Expression
	}
	return nil
}
