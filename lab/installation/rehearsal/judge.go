package rehearsal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/attune-go/attune/core/workflow"
	"github.com/attune-go/attune/lab/installation/worker"
	"github.com/attune-go/attune/lab/query"
)

// assess compares the installation with the expectations.
func (r *rehearsal) assess(ctx context.Context) error {
	if err := r.judgeExecutions(ctx); err != nil {
		return err
	}
	after, err := r.checksums(ctx)
	if err != nil {
		return err
	}
	for what, sum := range after {
		got := "untouched"
		if sum != r.before[what] {
			got = "changed"
		}
		r.found(Outcome{What: what, Want: "untouched", Got: got, OK: sum == r.before[what]})
	}
	for _, count := range []struct {
		what, sql string
		want      int
	}{
		{
			"events and enforcements, each with one execution that completes",
			`SELECT count(*) FROM enforcement f JOIN execution e ON e.enforcement = f.id AND e.parent IS NULL
				WHERE f.rule_ref = 'demo.on_tick' AND f.status = 'processed' AND e.status = 'completed'`, r.enforcements,
		},
		{
			"messages that cannot be read, kept as dead letters",
			`SELECT count(*) FROM dead_letter WHERE reason <> 'expired'`, r.broken,
		},
		{"slots that are still held", `SELECT count(*) FROM execution_holder`, 0},
		{"statistics that differ from the queues", `SELECT count(*) FROM queue_stats q
			JOIN (SELECT action_id, sum(active_count) AS active, sum(queued_count) AS queued FROM execution_admission_state GROUP BY 1) s
			ON s.action_id = q.action_id WHERE (q.active_count, q.queue_length) IS DISTINCT FROM (s.active, s.queued)`, 0},
	} {
		var got int
		if err := r.pool.QueryRow(ctx, count.sql).Scan(&got); err != nil {
			return fmt.Errorf("count %s: %w", count.what, err)
		}
		r.found(Outcome{What: count.what, Want: fmt.Sprint(count.want), Got: fmt.Sprint(got), OK: got == count.want})
	}
	var repeated string
	err = r.pool.QueryRow(ctx, `SELECT coalesce(string_agg(format('%s as %s (%s)', e.original_execution, e.id, e.retry_reason), ', ' ORDER BY e.id), 'none')
		FROM execution e JOIN execution o ON o.id = e.original_execution WHERE o.started_at IS NOT NULL`).Scan(&repeated)
	if err != nil {
		return fmt.Errorf("read retries: %w", err)
	}
	r.found(Outcome{
		What: "retries of executions that had begun", Want: "none", Got: repeated,
		OK: repeated == "none",
	})
	most := atOnce(r.worker.Runs(), "demo.limited")
	r.found(Outcome{
		What: "executions of the action with two slots that ran at the same time", Want: "at most 2",
		Got: fmt.Sprint(most), OK: most <= 2,
	})
	return nil
}

func (r *rehearsal) judgeExecutions(ctx context.Context) error {
	runs := map[int64]int{}
	for _, run := range r.worker.Runs() {
		runs[run.Job.ExecutionID]++
	}
	for _, x := range r.expected {
		var status string
		err := r.pool.QueryRow(ctx, "SELECT status::text FROM execution WHERE id = $1", x.execution).Scan(&status)
		if err != nil {
			return fmt.Errorf("read execution %d: %w", x.execution, err)
		}
		o := Outcome{
			What: x.what, ID: x.execution, Want: strings.Join(x.want, " or "), Got: status,
			OK: slices.Contains(x.want, status),
		}
		if n := runs[x.execution]; n > x.runs {
			o.Got, o.OK = fmt.Sprintf("%s, started %d times", status, n), false
		}
		r.found(o)
	}
	return nil
}

func (r *rehearsal) found(o Outcome) { r.report.Outcomes = append(r.report.Outcomes, o) }

// atOnce returns the highest number of jobs of an action that ran at the same time.
func atOnce(runs []worker.Run, ref string) (most int) {
	type change struct {
		at time.Time
		by int
	}
	var changes []change
	for _, run := range runs {
		if run.Job.ActionRef == ref {
			changes = append(changes, change{run.Start, 1})
			if !run.End.IsZero() {
				changes = append(changes, change{run.End, -1})
			}
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.by, b.by)) })
	now := 0
	for _, c := range changes {
		now += c.by
		most = max(most, now)
	}
	return most
}

func (r *rehearsal) expect(execution int64, what string, runs int, want ...string) {
	r.expected = append(r.expected, expectation{execution: execution, what: what, runs: runs, want: want})
}

func (r *rehearsal) exec(ctx context.Context, sql string, args ...any) error {
	mode := pgx.QueryExecModeExec
	if len(args) == 0 {
		mode = pgx.QueryExecModeSimpleProtocol // several statements
	}
	if _, err := r.pool.Exec(ctx, sql, append([]any{mode}, args...)...); err != nil {
		return fmt.Errorf("%.60s: %w", sql, err)
	}
	return nil
}

func (r *rehearsal) ids(ctx context.Context, sql string, args ...any) ([]int64, error) {
	ids, err := query.Column[int64](ctx, r.pool, fmt.Sprintf("%.60s", sql), sql, args...)
	slices.Sort(ids)
	return ids, err
}

// add inserts an execution of the given age.
func (r *rehearsal) add(ctx context.Context, action, status string, age time.Duration, worker string) (id int64,
	err error,
) {
	err = r.pool.QueryRow(ctx, `INSERT INTO execution (action, action_ref, status, worker, created, updated, started_at, result)
		SELECT a.id, a.ref, $2::text::execution_status_enum, (SELECT w.id FROM worker w WHERE w.name = $3), t.at, t.at,
			CASE WHEN $2 NOT IN ('requested', 'scheduling', 'scheduled') THEN t.at END,
			CASE WHEN $2 IN ('completed', 'failed') THEN jsonb_build_object('succeeded', $2 = 'completed', 'data', '{"code": 7}'::jsonb) END
		FROM action a, (SELECT now() - $4::interval AS at) t WHERE a.ref = $1 RETURNING id`,
		action, status, worker, age).Scan(&id)
	if err != nil {
		return 0, fmt.Errorf("add an execution of %s: %w", action, err)
	}
	return id, nil
}

// workflow inserts a running workflow without children.
func (r *rehearsal) workflow(ctx context.Context, action, params, what string,
	want ...string,
) (parent, workflow int64, err error) {
	if parent, err = r.add(ctx, action, "running", 5*time.Minute, ""); err != nil {
		return 0, 0, err
	}
	r.expect(parent, what, 0, want...)
	if err := r.exec(ctx, "UPDATE execution SET config = $2::text::jsonb WHERE id = $1", parent, params); err != nil {
		return 0, 0, err
	}
	graph, err := r.graph(ctx, action)
	if err != nil {
		return 0, 0, err
	}
	err = r.pool.QueryRow(ctx, `INSERT INTO workflow_execution (execution, workflow_def, task_graph, status, variables)
		SELECT e.id, d.id, $2::text::jsonb, 'running', coalesce(d.definition -> 'vars', '{}')
		FROM execution e JOIN action a ON a.id = e.action JOIN workflow_definition d ON d.id = a.workflow_def WHERE e.id = $1 RETURNING id`,
		parent, graph).Scan(&workflow)
	if err != nil {
		return 0, 0, fmt.Errorf("add a workflow: %w", err)
	}
	return parent, workflow, nil
}

// graph is the task graph of an action's workflow, without what only our engine adds.
func (r *rehearsal) graph(ctx context.Context, action string) (string, error) {
	var stored []byte
	err := r.pool.QueryRow(ctx, `SELECT definition FROM workflow_definition WHERE ref = $1`, action).Scan(&stored)
	if err != nil {
		return "", fmt.Errorf("read workflow %s: %w", action, err)
	}
	definition, err := workflow.ParseJSON(stored)
	if err != nil {
		return "", fmt.Errorf("read workflow %s: %w", action, err)
	}
	raw, err := definition.TaskGraph()
	if err != nil {
		return "", err
	}
	graph := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &graph); err != nil {
		return "", fmt.Errorf("read the task graph of %s: %w", action, err)
	}
	delete(graph, "workflow")
	raw, err = json.Marshal(graph)
	return string(raw), err
}

// child inserts the execution of a task and its dispatch row. Item -1 means no list.
func (r *rehearsal) child(ctx context.Context, parent, workflow int64, action, task string, item int, status,
	worker string,
) (int64, error) {
	if status == "requested" {
		worker = ""
	}
	id, err := r.add(ctx, action, status, 0, worker)
	if err != nil {
		return 0, err
	}
	err = r.exec(ctx, `UPDATE execution SET parent = $2, workflow_task = jsonb_build_object('workflow_execution', $3::bigint, 'task_name', $4::text,
		'task_index', nullif($5::int, -1), 'task_batch', NULL, 'retry_count', 0, 'max_retries', 0, 'timed_out', false) WHERE id = $1`,
		id, parent, workflow, task, item)
	if err != nil {
		return 0, err
	}
	return id, r.exec(ctx, `INSERT INTO workflow_task_dispatch (workflow_execution, task_name, task_index, execution_id)
		VALUES ($1, $2, nullif($3::int, -1), $4)`, workflow, task, item, id)
}

var errTimeout = errors.New("the time is over")

// await polls until the query returns true.
func (r *rehearsal) await(ctx context.Context, what, sql string, args ...any) error {
	deadline := time.Now().Add(r.cfg.Timeout)
	for {
		var done bool
		if err := r.pool.QueryRow(ctx, sql, args...).Scan(&done); err != nil {
			return fmt.Errorf("wait until %s: %w", what, err)
		}
		if done {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("wait until %s: %w", what, errTimeout)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w", what, ctx.Err())
		case <-time.After(poll):
		}
	}
}
