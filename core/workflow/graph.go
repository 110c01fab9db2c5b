package workflow

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/jsonvalue"
)

// The types below are the published forms, which other services read and write. Names and nulls are part of them.

type storedDefinition struct {
	Ref          string         `json:"ref"`
	Label        string         `json:"label"`
	Description  *string        `json:"description"`
	Version      string         `json:"version"`
	Parameters   map[string]any `json:"parameters"`
	Output       map[string]any `json:"output"`
	Vars         map[string]any `json:"vars"`
	Tasks        []storedTask   `json:"tasks"`
	OutputMap    map[string]any `json:"output_map"`
	Tags         []string       `json:"tags"`
	Cancellation Cancellation   `json:"cancellation_policy,omitempty"`
	Strict       bool           `json:"strict,omitempty"`
}

type storedTask struct {
	Name   string  `json:"name"`
	Type   Kind    `json:"type"`
	Action *string `json:"action"`
	Input  any     `json:"input,omitempty"`
	taskFields
	Next  []storedTransition `json:"next,omitempty"`
	Join  *int               `json:"join"`
	Tasks []storedTask       `json:"tasks"`
	Chart any                `json:"__chart_meta__,omitempty"`
}

// taskFields are equal in both published forms of a task.
type taskFields struct {
	PermissionSets *any         `json:"permission_set_refs,omitempty"`
	Selector       any          `json:"worker_selector"`
	Tolerations    any          `json:"worker_tolerations"`
	Affinity       any          `json:"worker_affinity"`
	When           *string      `json:"when"`
	WithItems      any          `json:"with_items"`
	BatchSize      *int         `json:"batch_size"`
	Concurrency    *int         `json:"concurrency"`
	Retry          *storedRetry `json:"retry"`
	Timeout        *int         `json:"timeout"`
}

type storedTransition struct {
	When    *string          `json:"when,omitempty"`
	Publish []map[string]any `json:"publish,omitempty"`
	Do      []string         `json:"do,omitempty"`
	Chart   any              `json:"__chart_meta__,omitempty"`
}

type storedRetry struct {
	Count    int     `json:"count"`
	Delay    int64   `json:"delay"`
	Backoff  string  `json:"backoff"`
	MaxDelay *int64  `json:"max_delay"`
	OnError  *string `json:"on_error"`
}

// taskGraph is the published column workflow_execution.task_graph.
type taskGraph struct {
	Nodes       map[string]graphNode `json:"nodes"`
	EntryPoints []string             `json:"entry_points"`
	Inbound     map[string][]string  `json:"inbound_edges"`
	Outbound    map[string][]string  `json:"outbound_edges"`
	// Workflow has the data that the published form has no place for. Other services ignore it.
	Workflow *graphRest `json:"workflow,omitempty"`
}

type graphRest struct {
	Ref          string         `json:"ref,omitempty"`
	Version      string         `json:"version"`
	Order        []string       `json:"order"`
	Vars         map[string]any `json:"vars,omitempty"`
	OutputMap    map[string]any `json:"output_map,omitempty"`
	Parameters   map[string]any `json:"parameters,omitempty"`
	Cancellation Cancellation   `json:"cancellation_policy"`
	Strict       bool           `json:"strict,omitempty"`
}

type graphNode struct {
	Name   string  `json:"name"`
	Type   Kind    `json:"task_type"`
	Action *string `json:"action"`
	Input  any     `json:"input"`
	taskFields
	Transitions []graphTransition `json:"transitions"`
	SubTasks    []graphNode       `json:"sub_tasks"`
	Inbound     []string          `json:"inbound_tasks"`
	Join        *int              `json:"join"`
}

type graphTransition struct {
	When    *string       `json:"when"`
	Publish []graphAssign `json:"publish"`
	Do      []string      `json:"do_tasks"`
}

type graphAssign struct {
	Name  string `json:"name"`
	Value any    `json:"value"`
}

// JSON is the form of workflow_definition.definition, which ParseJSON reads. Older keys are transitions in it, and
// join: all is a number.
func (d *Definition) JSON() (json.RawMessage, error) {
	stored := storedDefinition{
		Ref: d.Ref, Label: d.Label, Version: d.Version, Parameters: d.Parameters, Output: d.Output, Vars: d.Vars,
		OutputMap: rawOf(d.OutputMap), Tags: d.Tags, Description: given(d.Description), Tasks: storedTasks(d.Tasks),
		Strict: d.Strict,
	}
	if d.Cancellation != AllowFinish {
		stored.Cancellation = d.Cancellation
	}
	if stored.Vars == nil {
		stored.Vars = map[string]any{}
	}
	if stored.Tags == nil {
		stored.Tags = []string{}
	}
	return marshal(stored)
}

func marshal(v any) (json.RawMessage, error) {
	raw, err := jsonvalue.Encode(v)
	if err != nil {
		return nil, fmt.Errorf("write the definition of a workflow: %w", err)
	}
	return raw, nil
}

func storedTasks(tasks []*Task) []storedTask {
	list := make([]storedTask, 0, len(tasks))
	for _, t := range tasks {
		s := nodeFor(t).task()
		s.Input, s.Chart = raw(t.Input), t.Chart
		if s.Retry != nil {
			s.Retry.Backoff = string(t.Retry.Backoff)
		}
		for i, transition := range t.Next {
			s.Next[i].Chart = transition.Chart
		}
		if len(t.Tasks) > 0 {
			s.Tasks = storedTasks(t.Tasks)
		}
		list = append(list, s)
	}
	return list
}

// TaskGraph is the form of workflow_execution.task_graph, which ParseTaskGraph reads. The key workflow has all that the
// published form has no place for, so that a started workflow does not depend on its stored definition.
func (d *Definition) TaskGraph() (json.RawMessage, error) {
	g := taskGraph{
		Nodes: map[string]graphNode{}, EntryPoints: []string{}, Inbound: map[string][]string{},
		Outbound: map[string][]string{},
		Workflow: restOf(d),
	}
	for _, t := range d.Tasks {
		g.Nodes[t.Name] = nodeFor(t)
		g.Workflow.Order = append(g.Workflow.Order, t.Name)
		if len(t.Inbound) > 0 {
			g.Inbound[t.Name] = t.Inbound
		}
		if len(t.Outbound) > 0 {
			g.Outbound[t.Name] = t.Outbound
		}
	}
	for _, t := range d.entries {
		g.EntryPoints = append(g.EntryPoints, t.Name)
	}
	return marshal(g)
}

func restOf(d *Definition) *graphRest {
	return &graphRest{
		Ref: d.Ref, Version: d.Version, Vars: d.Vars, OutputMap: rawOf(d.OutputMap), Parameters: d.Parameters,
		Cancellation: d.Cancellation, Strict: d.Strict,
	}
}

func nodeFor(t *Task) graphNode {
	n := graphNode{
		Name: t.Name, Type: t.Kind, Action: given(t.Action), Input: raw(t.Input), Join: given(t.Join),
		taskFields: taskFields{
			Selector: raw(t.Selector), Tolerations: raw(t.Tolerations), Affinity: raw(t.Affinity), When: source(t.When),
			WithItems: raw(t.WithItems), BatchSize: given(t.BatchSize), Timeout: given(t.Timeout),
		},
		Transitions: []graphTransition{}, Inbound: []string{},
	}
	if n.Input == nil {
		n.Input = map[string]any{}
	}
	if t.PermissionSets != nil {
		sets := t.PermissionSets.Raw()
		n.PermissionSets = &sets
	}
	if t.WithItems != nil {
		n.Concurrency = &t.Concurrency
	}
	if r := t.Retry; r != nil {
		n.Retry = &storedRetry{
			Count: r.Count, Delay: int64(r.Delay / time.Second), OnError: source(r.OnError),
			Backoff: capital[r.Backoff],
		}
		n.Retry.MaxDelay = given(int64(r.MaxDelay / time.Second))
	}
	for _, transition := range t.Next {
		next := graphTransition{
			When: source(transition.When), Publish: []graphAssign{},
			Do: append([]string{}, transition.Do...),
		}
		for _, a := range transition.Publish {
			next.Publish = append(next.Publish, graphAssign{Name: a.Name, Value: a.Value.Raw()})
		}
		n.Transitions = append(n.Transitions, next)
	}
	for _, sub := range t.Tasks {
		n.SubTasks = append(n.SubTasks, nodeFor(sub))
	}
	n.Inbound = append(n.Inbound, t.Inbound...)
	return n
}

// capital is the spelling in task graphs.
var capital = map[Backoff]string{
	BackoffConstant: "Constant", BackoffLinear: "Linear", BackoffExponential: "Exponential",
}

func given[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

func raw(v *Value) any {
	if v == nil {
		return nil
	}
	return v.Raw()
}

func source(c *Condition) *string {
	if c == nil {
		return nil
	}
	return &c.source
}

func rawOf(list []Assignment) map[string]any {
	if list == nil {
		return nil
	}
	object := map[string]any{}
	for _, a := range list {
		object[a.Name] = a.Value.Raw()
	}
	return object
}
