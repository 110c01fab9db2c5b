package advancement

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/attune-go/attune/core/expr"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/schema"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/workflow"
)

// unrollAtOnce is how many children of a list Unroll renders and writes at once.
const unrollAtOnce = 500

// Unroll creates every missing child of the started lists of a workflow, as the published executor does: requested and
// not admitted. It returns their number. A replica that later advances the workflow requests each of them when it is
// due.
//
// The caller holds a transaction, and no replica runs.
func Unroll(ctx context.Context, q *store.Queries, cfg Config, id int64) (int, error) {
	rows, err := q.ReadWorkflows(ctx, []int64{id})
	if err != nil {
		return 0, fmt.Errorf("read workflow %d: %w", id, err)
	}
	if len(rows) == 0 || !rows[0].Open || rows[0].State == nil || rows[0].Source == nil {
		return 0, nil
	}
	c := &advance{phase: continues, inputs: inputs{row: rows[0]}, facts: newFacts()}
	s := NewStep(cfg, NewSources(), nil)
	if err := s.locate(ctx, q, c); err != nil {
		return 0, fmt.Errorf("workflow %d: %w", id, err)
	}
	if c.before.Status != lifecycle.StatusRunning {
		return 0, nil
	}
	made := 0
	after := *c.before
	after.Tasks = maps.Clone(c.before.Tasks)
	for _, task := range c.source.definition.Unmade(c.before) {
		n, err := s.unrollList(ctx, q, c, task)
		if err != nil {
			return made, fmt.Errorf("create the children of task %s of workflow %d: %w", task, id, err)
		}
		found := *c.before.Tasks[task]
		found.Found = true
		after.Tasks[task] = &found
		made += n
	}
	if made == 0 {
		return 0, nil
	}
	log := fmt.Sprintf("%d children made for the executor of the installation", made)
	c.plan = &workflow.Plan{State: &after, Log: []string{log}}
	if err := q.AdvanceWorkflows(ctx, text([]advanced{c.state()})); err != nil {
		return made, fmt.Errorf("write workflow %d: %w", id, err)
	}
	return made, nil
}

// unrollList creates the children of one list, in parts.
func (s *Step) unrollList(ctx context.Context, q *store.Queries, c *advance, task string) (int, error) {
	st, t := c.before.Tasks[task], c.source.definition.Task(task)
	made := 0
	for first := st.Next; first < st.Total; first += unrollAtOnce {
		count := min(unrollAtOnce, st.Total-first)
		c.items = map[string]workflow.Slice{}
		if err := c.fetchItems(ctx, q, map[string]workflow.Range{task: t.Items(first, count)}); err != nil {
			return made, err
		}
		var starts []workflow.Start
		var faults map[int]error
		err := c.withFacts(ctx, q, func(facts workflow.Facts) (err error) {
			starts, faults, err = c.source.definition.Rest(c.before, facts, task, first, count)
			return err
		})
		if err != nil {
			return made, err
		}
		there, err := c.made(ctx, q, starts)
		if err != nil {
			return made, err
		}
		starts = slices.DeleteFunc(starts, func(start workflow.Start) bool {
			return slices.ContainsFunc(there, func(row store.ReadMadeTasksRow) bool {
				return int(row.TaskIndex) == *start.Index
			})
		})
		if err := s.unrollPart(ctx, q, c, starts, faults); err != nil {
			return made, err
		}
		made += len(starts)
	}
	return made, nil
}

// unrollPart writes children. A child whose parameters cannot be rendered, or whose secrets cannot
// be stored, fails.
func (s *Step) unrollPart(
	ctx context.Context, q *store.Queries, c *advance, starts []workflow.Start, faults map[int]error,
) error {
	if len(starts) == 0 {
		return nil
	}
	ids, err := q.NewIDs(ctx, "execution", int32(len(starts)))
	if err != nil {
		return fmt.Errorf("allocate ids for %d executions: %w", len(starts), err)
	}
	actions, err := q.ReadActionRules(ctx, nil, []string{starts[0].Action})
	if err != nil {
		return fmt.Errorf("read action %s: %w", starts[0].Action, err)
	}
	var action int64
	var marked *schema.Schema
	for _, one := range actions {
		action = one.ID
		marked, _ = schema.Parse(one.ParamSchema) // an unreadable schema marks nothing
	}
	c.plan, c.newExecutions = &workflow.Plan{Start: starts}, nil
	for i, start := range starts {
		b := c.child(start, ids[i])
		b.ActionID, b.Status = action, "" // core.ask opens its inquiry when it is scheduled
		if fault := faults[*start.Index]; fault != nil {
			b.Refuse = fault.Error()
		}
		if b.Refuse == "" && (secret.Has(b.Config) || marked != nil && marked.HasSecrets()) {
			public, err := s.hide(ctx, q, c, expr.Value(start.Config), marked, secret.OfConfig, b.ID)
			if broken(err) {
				return err
			}
			if b.Config = nil; err != nil {
				b.Refuse = err.Error()
			} else {
				b.Config = text(public)
			}
		}
		if b.Refuse != "" {
			b.Status, b.Result = lifecycle.StatusFailed, text(map[string]any{"error": b.Refuse, "succeeded": false})
		}
		c.newExecutions = append(c.newExecutions, b)
	}
	return c.writeUnrolled(ctx, q)
}

func (c *advance) writeUnrolled(ctx context.Context, q *store.Queries) error {
	parts, err := scheduler.NewExecutionParts(c.newExecutions)
	if err != nil {
		return err
	}
	for _, part := range parts {
		if err := q.InsertNewExecutions(ctx, part); err != nil {
			return fmt.Errorf("insert %d executions: %w", len(c.newExecutions), err)
		}
	}
	var tasks store.InsertTasksParams
	c.tasks(&tasks)
	if err := q.InsertTasks(ctx, tasks); err != nil {
		return fmt.Errorf("insert %d tasks: %w", len(c.newExecutions), err)
	}
	if len(c.secrets.JsonPaths) > 0 {
		if err := q.InsertSecretValues(ctx, c.secrets); err != nil {
			return fmt.Errorf("insert the secrets of %d executions: %w", len(c.newExecutions), err)
		}
		c.secrets = store.InsertSecretValuesParams{}
	}
	return nil
}
