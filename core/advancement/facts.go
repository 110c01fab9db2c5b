package advancement

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/attune-go/attune/core/expr"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/workflow"
)

// maxResults bounds the results of one decision, as text. Larger ones could exhaust the memory of
// one replica after the other.
const maxResults = 32 << 20

// errTooMuch means that a decision needs too large results; no query failed.
var errTooMuch = errors.New("are too large")

// facts are what a decision has received so far.
type facts struct {
	results  map[string]workflow.Result
	children map[workflow.Child]any
	items    map[string]workflow.Slice
	asked    map[string]int // number of requested items, by task; the start index does not change
	read     int64          // bytes of results
}

func newFacts() facts {
	return facts{
		results: map[string]workflow.Result{}, children: map[workflow.Child]any{}, items: map[string]workflow.Slice{},
	}
}

// fetch reads the facts that a decision requests.
func (c *advance) fetch(ctx context.Context, q *store.Queries, need *workflow.NeedError) error {
	if err := c.fetchResults(ctx, q, need.Results); err != nil {
		return err
	}
	if err := c.fetchChildren(ctx, q, need.Children); err != nil {
		return err
	}
	return c.fetchItems(ctx, q, need.Items)
}

// fetchResults reads the results of the children of these tasks.
func (c *advance) fetchResults(ctx context.Context, q *store.Queries, tasks []string) error {
	if len(tasks) == 0 {
		return nil
	}
	bytes, err := q.SizeOfTaskResults(ctx, tasks, c.row.ID)
	if err != nil {
		return fmt.Errorf("measure the results of %d tasks: %w", len(tasks), err)
	}
	if c.read += bytes; c.read > maxResults {
		return fmt.Errorf("the results of tasks (with %s %d MB) %w: %d MB is the most; store large results elsewhere "+
			"and refer to them", strings.Join(tasks, ", "), c.read>>20, errTooMuch, maxResults>>20)
	}
	whole := store.ReadTaskResultsParams{Workflow: c.row.ID, Tasks: tasks}
	for range tasks {
		whole.Firsts, whole.Lasts = append(whole.Firsts, -1), append(whole.Lasts, math.MaxInt32)
	}
	rows, err := q.ReadTaskResults(ctx, whole)
	if err != nil {
		return fmt.Errorf("read the results of %d tasks: %w", len(tasks), err)
	}
	byTask := map[string][]store.ReadTaskResultsRow{}
	for _, row := range rows {
		byTask[row.TaskName] = append(byTask[row.TaskName], row)
	}
	for _, name := range tasks {
		c.results[name] = c.resultOf(name, byTask[name])
	}
	return nil
}

// fetchChildren reads the results of single children.
func (c *advance) fetchChildren(ctx context.Context, q *store.Queries, children []workflow.Child) error {
	if len(children) == 0 {
		return nil
	}
	single := store.ReadTaskResultsParams{Workflow: c.row.ID}
	for _, child := range children {
		first, last := int32(child.Index), int32(child.Index)
		if last == 0 {
			first = -1 // the child of a task without a list
		}
		single.Tasks = append(single.Tasks, child.Task)
		single.Firsts, single.Lasts = append(single.Firsts, first), append(single.Lasts, last)
		c.children[child] = nil
	}
	rows, err := q.ReadTaskResults(ctx, single)
	if err != nil {
		return fmt.Errorf("read the results of %d children: %w", len(children), err)
	}
	for _, row := range rows {
		c.children[workflow.Child{Task: row.TaskName, Index: max(int(row.TaskIndex), 0)}] = valueOf(row)
	}
	return nil
}

// resultOf builds the result of a task from its children.
func (c *advance) resultOf(name string, rows []store.ReadTaskResultsRow) workflow.Result {
	task := c.source.definition.Task(name)
	values := make(map[int]any, len(rows))
	for _, row := range rows {
		values[max(int(row.TaskIndex), 0)] = valueOf(row)
	}
	return task.ResultOf(nil, values) // the decision counts them
}

// valueOf is the result of a child, including an inquiry's answer.
func valueOf(row store.ReadTaskResultsRow) any {
	value, err := expr.FromJSON(row.Result)
	if err != nil {
		value = nil // only NULL is no JSON
	}
	value = secret.Trace(value, secret.OfResult, row.Execution)
	if row.Fault != "" { // its inquiry could not be opened
		return map[string]any{"error": row.Fault, "result": value}
	}
	if row.Asked != "responded" {
		return value
	}
	response, err := expr.FromJSON(row.Response)
	if err != nil {
		response = nil
	}
	answered, _ := secret.Trace(map[string]any{"response": response}, secret.OfResult, row.Execution).(map[string]any)
	return workflow.Answered(value, answered["response"])
}

func (c *advance) fetchItems(ctx context.Context, q *store.Queries, parts map[string]workflow.Range) error {
	if len(parts) == 0 {
		return nil
	}
	var wanted store.ReadWorkflowItemsParams
	for task, part := range parts {
		wanted.Workflows, wanted.Tasks = append(wanted.Workflows, c.row.ID), append(wanted.Tasks, task)
		wanted.Froms, wanted.Counts = append(wanted.Froms, int32(part.From)), append(wanted.Counts, int32(part.Count))
	}
	rows, err := q.ReadWorkflowItems(ctx, wanted)
	if err != nil {
		return fmt.Errorf("read the items of %d lists: %w", len(parts), err)
	}
	for task, part := range parts {
		c.items[task] = workflow.Slice{From: part.From}
	}
	for _, row := range rows {
		item, err := expr.FromJSON(row.Item)
		if err != nil {
			return fmt.Errorf("read item %d of %s: %w", row.Index, row.TaskName, err)
		}
		part := c.items[row.TaskName]
		part.Items = append(part.Items, item)
		c.items[row.TaskName] = part
	}
	return nil
}

// lacks reports whether the decision requests facts that it has not received, and records them as received. Each
// request for facts restarts the decision, which ends only because every request must ask for new facts.
func (f *facts) lacks(need *workflow.NeedError) bool {
	lacks := false
	for _, task := range need.Results {
		_, there := f.results[task]
		lacks = lacks || !there
	}
	for _, child := range need.Children {
		_, there := f.children[child]
		lacks = lacks || !there
	}
	for task, part := range need.Items {
		lacks = lacks || part.Count > f.asked[task]
		f.asked[task] = max(f.asked[task], part.Count)
	}
	return lacks
}

var errSameFacts = errors.New("the decision requests facts that it has received")

// withFacts repeats a decision with more facts until it requests no new ones.
func (c *advance) withFacts(ctx context.Context, q *store.Queries, decide func(workflow.Facts) error) error {
	facts := workflow.Facts{
		Parameters: traced(c.source.parameters(c.row.Config), secret.OfConfig, c.row.Execution),
		Execution:  c.row.Execution, Begun: c.row.Created, Now: c.row.At,
		Allowed: time.Duration(c.row.AllowedSeconds * float64(time.Second)),
		Results: c.results, Items: c.items, Children: c.children,
	}
	for c.asked = map[string]int{}; ; {
		err := decide(facts)
		need, missing := errors.AsType[*workflow.NeedError](err)
		if !missing {
			return err
		}
		if !c.lacks(need) {
			return fmt.Errorf("%w: %w", errSameFacts, need)
		}
		if err := c.fetch(ctx, q, need); err != nil {
			return err
		}
	}
}

// traced are values in which every secret records its origin.
func traced(values map[string]any, entity string, id int64) map[string]any {
	all, ok := secret.Trace(expr.Value(values), entity, id).(map[string]any)
	if !ok {
		return map[string]any{}
	}
	return all
}
