package bench

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/workflow"
)

// The workflows that can be measured: Config.Workflow.
const (
	List  = "list"  // one task over Executions items, Limit at a time
	Chain = "chain" // Executions tasks, one after the other
)

//go:embed workflow.sql
var workflowSQL string

//go:embed pace.sql
var paceSQL string

// definition is the workflow of a measurement.
func (c Config) definition() (*workflow.Definition, error) {
	noop := "bench.noop_0_0"
	type task map[string]any
	var tasks []task
	if c.Workflow == List {
		tasks = []task{{
			"name": "each", "action": noop, "with_items": fmt.Sprintf("{{ range(%d) }}", c.Executions),
			"concurrency": max(c.Limit, 1),
			"input":       map[string]any{"item": "{{ item }}"},
		}}
	}
	for i := range c.Executions {
		if c.Workflow == List {
			break
		}
		next := task{"name": fmt.Sprintf("t%d", i), "action": noop, "input": map[string]any{"n": i}}
		if i+1 < c.Executions {
			next["next"] = []any{map[string]any{"do": []string{fmt.Sprintf("t%d", i+1)}}}
		}
		tasks = append(tasks, next)
	}
	raw, err := json.Marshal(map[string]any{"version": "1.0.0", "tasks": tasks})
	if err != nil {
		return nil, fmt.Errorf("write the workflow: %w", err)
	}
	return workflow.ParseJSON(raw)
}

// seedWorkflow makes the action of the workflow.
func (m *measurement) seedWorkflow(ctx context.Context) error {
	definition, err := m.cfg.definition()
	if err != nil {
		return err
	}
	raw, err := definition.JSON()
	if err != nil {
		return fmt.Errorf("write the workflow: %w", err)
	}
	if _, err := m.store.Pool().Exec(ctx, workflowSQL, m.cfg.action(), raw); err != nil {
		return fmt.Errorf("make the workflow of the measurement: %w", err)
	}
	return nil
}

// action is the workflow's own.
func (c Config) action() string {
	return fmt.Sprintf("bench.%s_%d_%d", c.Workflow, c.Executions, c.Limit)
}

// begin requests the workflow.
func (m *measurement) begin(ctx context.Context) error {
	if _, err := submit.New(m.store, m.relay).Request(ctx, submit.Request{ActionRef: m.cfg.action()}); err != nil {
		return fmt.Errorf("request the workflow: %w", err)
	}
	return nil
}

// pace reads how long a task took, of the first and of the last fifth.
func (m *measurement) pace(ctx context.Context, report *Report) error {
	if err := m.store.Pool().QueryRow(ctx, paceSQL, m.after).Scan(&report.EarlyTask, &report.LateTask); err != nil {
		return fmt.Errorf("read the pace of the workflow: %w", err)
	}
	return nil
}
