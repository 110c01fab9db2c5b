package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// node is the part of a task of the stored graph that advancing reads.
type node struct {
	Action      *string         `json:"action"`
	Input       json.RawMessage `json:"input"`
	WithItems   any             `json:"with_items"`
	Concurrency *int            `json:"concurrency"`
	Transitions []struct {
		When *string  `json:"when"`
		Do   []string `json:"do_tasks"`
	} `json:"transitions"`
}

// task is the place of a child in its workflow.
type task struct {
	Workflow int64  `json:"workflow_execution"`
	Name     string `json:"task_name"`
	Index    *int   `json:"task_index"`
}

// advance advances the workflow of a completed child, and requests the new executions after its
// transaction. It renders no templates: an input with one is an error.
func (e *Executor) advance(ctx context.Context, id int64) error {
	var about task
	var status string
	var raw json.RawMessage
	err := e.pool.QueryRow(ctx, "SELECT status::text, workflow_task FROM execution WHERE id = $1", id).Scan(&status,
		&raw)
	if err != nil {
		return fmt.Errorf("read completed execution %d: %w", id, err)
	}
	if json.Unmarshal(raw, &about) != nil || about.Workflow == 0 {
		return nil //nolint:nilerr // it belongs to no workflow
	}
	var due []int64
	err = pgx.BeginFunc(ctx, e.pool, func(tx pgx.Tx) error {
		a := &advancing{tx: tx, task: about, status: status}
		err := a.run(ctx)
		due = a.due
		return err
	})
	if err != nil {
		return fmt.Errorf("advance workflow %d after execution %d: %w", about.Workflow, id, err)
	}
	for _, id := range due {
		if err := e.Request(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// advancing is one step of one workflow.
type advancing struct {
	tx     pgx.Tx
	task   task
	status string // of the completed child

	parent            int64
	nodes             map[string]node
	completed, failed []string
	scheduled         []string
	due               []int64 // executions to request
}

func (a *advancing) run(ctx context.Context) error {
	var graph struct {
		Nodes map[string]node `json:"nodes"`
	}
	var status string
	var raw json.RawMessage
	err := a.tx.QueryRow(ctx, `SELECT execution, status::text, task_graph, completed_tasks, failed_tasks
		FROM workflow_execution WHERE id = $1 FOR UPDATE`, a.task.Workflow).
		Scan(&a.parent, &status, &raw, &a.completed, &a.failed)
	if err != nil {
		return err
	}
	if status == "completed" || status == "failed" {
		return nil
	}
	if err := json.Unmarshal(raw, &graph); err != nil {
		return err
	}
	a.nodes = graph.Nodes
	if a.nodes[a.task.Name].WithItems != nil {
		ended, err := a.list(ctx)
		if err != nil || !ended {
			return err
		}
	}
	if slices.Contains(a.completed, a.task.Name) || slices.Contains(a.failed, a.task.Name) {
		return nil
	}
	if err := a.follow(ctx); err != nil {
		return err
	}
	return a.write(ctx)
}

// list requests the next child of a list if its concurrency allows one more, and reports whether all
// children have ended. The outcome of the list becomes the status.
func (a *advancing) list(ctx context.Context) (bool, error) {
	var busy int
	var open, failed bool
	var next int64
	err := a.tx.QueryRow(ctx, `SELECT count(*) FILTER (WHERE status IN ('scheduling', 'scheduled', 'running')),
			bool_or(status NOT IN ('completed', 'failed', 'timeout', 'cancelled')), bool_or(status IN ('failed', 'timeout')),
			coalesce((array_agg(id ORDER BY (workflow_task ->> 'task_index')::int, id) FILTER (WHERE status = 'requested'))[1], 0)
		FROM execution WHERE parent = $1 AND workflow_task ->> 'task_name' = $2`, a.parent, a.task.Name).
		Scan(&busy, &open, &failed, &next)
	if err != nil {
		return false, err
	}
	limit := 1
	if given := a.nodes[a.task.Name].Concurrency; given != nil {
		limit = *given
	}
	if next != 0 && busy < limit {
		a.due = append(a.due, next)
	}
	if a.status = "completed"; failed {
		a.status = "failed"
	}
	return !open, nil
}

// follow evaluates the transitions of the completed task and starts the tasks that they name.
func (a *advancing) follow(ctx context.Context) error {
	for _, transition := range a.nodes[a.task.Name].Transitions {
		fires, err := a.fires(transition.When)
		if err != nil {
			return err
		}
		for _, target := range transition.Do {
			if !fires || slices.Contains(a.completed, target) || slices.Contains(a.failed, target) {
				continue
			}
			if err := a.start(ctx, target); err != nil {
				return err
			}
		}
	}
	if a.status == "completed" || len(a.scheduled) > 0 {
		a.completed = append(a.completed, a.task.Name)
	} else {
		a.failed = append(a.failed, a.task.Name)
	}
	return nil
}

func (a *advancing) fires(when *string) (bool, error) {
	if when == nil {
		return true, nil
	}
	text := strings.ReplaceAll(strings.ToLower(*when), " ", "")
	switch {
	case strings.Contains(text, "succeeded()"):
		return a.status == "completed", nil
	case strings.Contains(text, "failed()"):
		return a.status != "completed" && a.status != "timeout", nil
	case strings.Contains(text, "timed_out()"):
		return a.status == "timeout", nil
	default:
		return false, fmt.Errorf("condition %s: this executor evaluates no expressions", *when)
	}
}

// start inserts the child of a task without a list, once.
func (a *advancing) start(ctx context.Context, target string) error {
	next := a.nodes[target]
	if next.Action == nil || next.WithItems != nil {
		return errors.New("this executor starts only tasks with an action and without a list")
	}
	if strings.Contains(string(next.Input), "{{") {
		return fmt.Errorf("input of %s: this executor renders no templates", target)
	}
	var input json.RawMessage
	if text := string(next.Input); text != "" && text != "null" && text != "{}" {
		input = next.Input
	}
	about, err := json.Marshal(map[string]any{
		"workflow_execution": a.task.Workflow, "task_name": target, "triggered_by": a.task.Name,
		"retry_count": 0, "max_retries": 0, "timed_out": false,
	})
	if err != nil {
		return err
	}
	var child int64
	err = a.tx.QueryRow(ctx, `INSERT INTO execution
			(action, action_ref, config, parent, enforcement, executor, env_vars, workflow_task)
		SELECT (SELECT id FROM action WHERE ref = $2), $2, coalesce($3::jsonb, p.config), p.id, p.enforcement, p.executor,
			p.env_vars, $4
		FROM execution p WHERE p.id = $1 RETURNING id`, a.parent, *next.Action, input, json.RawMessage(about)).Scan(&child)
	if err != nil {
		return err
	}
	tag, err := a.tx.Exec(ctx, `INSERT INTO workflow_task_dispatch (workflow_execution, task_name, execution_id)
		VALUES ($1, $2, $3)
		ON CONFLICT (workflow_execution, task_name, (COALESCE(task_index, -1))) DO NOTHING`, a.task.Workflow, target, child)
	if err != nil {
		return err
	}
	if tag.RowsAffected() == 0 {
		_, err := a.tx.Exec(ctx, "DELETE FROM execution WHERE id = $1", child)
		return err
	}
	a.scheduled, a.due = append(a.scheduled, target), append(a.due, child)
	return nil
}

// write stores the progress, and ends the workflow after its last execution.
func (a *advancing) write(ctx context.Context) error {
	var open int
	err := a.tx.QueryRow(ctx, `SELECT count(*) FROM execution WHERE parent = $1
		AND status NOT IN ('completed', 'failed', 'timeout', 'cancelled')`, a.parent).Scan(&open)
	if err != nil {
		return err
	}
	status := "running"
	if open == 0 {
		status = "completed"
		if len(a.failed) > 0 {
			status = "failed"
		}
	}
	_, err = a.tx.Exec(ctx, `UPDATE workflow_execution SET completed_tasks = $2, failed_tasks = $3, current_tasks = $4,
			status = $5::text::execution_status_enum WHERE id = $1`,
		a.task.Workflow, a.completed, a.failed, append([]string{}, a.scheduled...), status)
	if err != nil || open > 0 {
		return err
	}
	result, err := json.Marshal(map[string]any{"succeeded": status == "completed"})
	if err != nil {
		return err
	}
	_, err = a.tx.Exec(ctx, "UPDATE execution SET status = $2::text::execution_status_enum, result = $3 WHERE id = $1",
		a.parent, status, json.RawMessage(result))
	return err
}
