package measure

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/attune-go/attune/core/workflow"
)

// The values of Config.Workflow.
const (
	List  = "list"  // one task over Executions items, Limit at a time
	Chain = "chain" // Executions tasks, one after the other
)

// definition is the workflow of a measurement.
func (c Config) definition() (*workflow.Definition, error) {
	const noop = "bench.noop_0_0"
	tasks := []map[string]any{{
		"name": "each", "action": noop, "with_items": fmt.Sprintf("{{ range(%d) }}", c.Executions),
		"concurrency": max(c.Limit, 1), "input": map[string]any{"item": "{{ item }}"},
	}}
	if c.Workflow == Chain {
		tasks = make([]map[string]any, c.Executions)
		for i := range tasks {
			tasks[i] = map[string]any{"name": fmt.Sprintf("t%d", i), "action": noop, "input": map[string]any{"n": i}}
			if i > 0 {
				tasks[i-1]["next"] = []any{map[string]any{"do": []string{fmt.Sprintf("t%d", i)}}}
			}
		}
	}
	raw, err := json.Marshal(map[string]any{"version": "1.0.0", "tasks": tasks})
	if err != nil {
		return nil, fmt.Errorf("encode the workflow: %w", err)
	}
	return workflow.ParseJSON(raw)
}

// seedWorkflow inserts the action of the workflow.
func (m *measurement) seedWorkflow(ctx context.Context) error {
	definition, err := m.cfg.definition()
	if err != nil {
		return err
	}
	raw, err := definition.JSON()
	if err != nil {
		return fmt.Errorf("encode the workflow: %w", err)
	}
	if _, err := m.store.Pool().Exec(ctx, sql.Workflow, m.cfg.action(), raw); err != nil {
		return fmt.Errorf("insert the workflow: %w", err)
	}
	return nil
}

// action returns the ref of the workflow's action.
func (c Config) action() string {
	return fmt.Sprintf("bench.%s_%d_%d", c.Workflow, c.Executions, c.Limit)
}
