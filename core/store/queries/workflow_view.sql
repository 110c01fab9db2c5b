-- Workflows, for users, who name a workflow by its execution.

-- name: ViewWorkflowPage :many
-- A page of workflows, the newest first, from at most scan rows, or of the given ids. A task is one
-- that is under way or has failed. Few workflows are open, however many there have been.
WITH looked AS (
    SELECT w.id, w.execution, w.open, w.paused, w.pause_reason, w.current_tasks, w.completed_tasks, w.failed_tasks,
           w.skipped_tasks, w.task_graph, w.error_message
    FROM (
        (SELECT x.id, x.execution, x.open, x.paused, x.pause_reason, x.current_tasks, x.completed_tasks, x.failed_tasks,
                x.skipped_tasks, x.task_graph, x.error_message
         FROM workflow_execution x
         WHERE NOT sqlc.arg(only_open)::bool AND x.execution < sqlc.arg(before)::bigint AND x.execution >= sqlc.arg(floor)::bigint
           AND cardinality(sqlc.arg(ids)::bigint[]) = 0
         ORDER BY x.execution DESC LIMIT sqlc.arg(scan)::int)
        UNION ALL
        (SELECT x.id, x.execution, x.open, x.paused, x.pause_reason, x.current_tasks, x.completed_tasks, x.failed_tasks,
                x.skipped_tasks, x.task_graph, x.error_message
         FROM workflow_execution x
         WHERE sqlc.arg(only_open)::bool AND x.open AND x.execution < sqlc.arg(before)::bigint AND x.execution >= sqlc.arg(floor)::bigint
           AND cardinality(sqlc.arg(ids)::bigint[]) = 0
         ORDER BY x.execution DESC LIMIT sqlc.arg(scan)::int)
        UNION ALL
        (SELECT x.id, x.execution, x.open, x.paused, x.pause_reason, x.current_tasks, x.completed_tasks, x.failed_tasks,
                x.skipped_tasks, x.task_graph, x.error_message
         FROM workflow_execution x
         WHERE x.execution = ANY (sqlc.arg(ids)::bigint[]) AND x.execution < sqlc.arg(before)::bigint AND x.execution >= sqlc.arg(floor)::bigint
           AND (x.open OR NOT sqlc.arg(only_open)::bool))) w
)
SELECT w.id, w.execution, e.action_ref, e.status::text AS status, w.paused, coalesce(w.pause_reason, '')::text AS pause_reason,
       coalesce(CASE WHEN w.open AND e.parent IS NOT NULL THEN attune_paused_above(e.id) END, 0)::bigint AS paused_above,
       coalesce(w.current_tasks, '{}')::text[] AS current, coalesce(cardinality(w.completed_tasks), 0)::int AS completed,
       coalesce(cardinality(w.failed_tasks), 0)::int AS failed, coalesce(cardinality(w.skipped_tasks), 0)::int AS skipped,
       coalesce((SELECT sum(1 + CASE WHEN jsonb_typeof(n.value -> 'sub_tasks') = 'array' THEN jsonb_array_length(n.value -> 'sub_tasks') ELSE 0 END)
                 FROM jsonb_each(CASE WHEN jsonb_typeof(w.task_graph -> 'nodes') = 'object' THEN w.task_graph -> 'nodes' END) n), 0)::int AS total,
       left(coalesce(w.error_message, ''), 300)::text AS error, e.parent, e.created, e.started_at, e.finished_at
FROM looked w
JOIN execution e ON e.id = w.execution
WHERE (sqlc.arg(pattern)::text = '' OR e.action_ref ILIKE sqlc.arg(pattern)::text)
  AND (cardinality(sqlc.arg(statuses)::text[]) = 0 OR e.status::text = ANY (sqlc.arg(statuses)::text[])
       OR w.open AND 'paused' = ANY (sqlc.arg(statuses)::text[])
          AND CASE WHEN w.paused OR e.parent IS NULL THEN w.paused ELSE attune_paused_above(e.id) IS NOT NULL END)
  AND (NOT sqlc.arg(only_paused)::bool OR w.paused
       OR CASE WHEN w.open AND e.parent IS NOT NULL THEN attune_paused_above(e.id) IS NOT NULL ELSE false END)
  AND (NOT sqlc.arg(not_paused)::bool OR NOT w.open
       OR CASE WHEN w.paused OR e.parent IS NULL THEN NOT w.paused ELSE attune_paused_above(e.id) IS NULL END)
  AND e.action_ref ~* ALL (sqlc.arg(match)::text[])
  AND NOT (e.action_ref ~* ANY (sqlc.arg(unmatch)::text[]))
  AND (cardinality(sqlc.arg(errors)::text[]) + cardinality(sqlc.arg(not_errors)::text[]) = 0 OR (
       SELECT m.text ~* ALL (sqlc.arg(errors)::text[]) AND NOT (m.text ~* ANY (sqlc.arg(not_errors)::text[]))
       FROM (SELECT left(coalesce(w.error_message, ''), 300) AS text) m))
  AND (cardinality(sqlc.arg(tasks)::text[]) + cardinality(sqlc.arg(not_tasks)::text[]) = 0 OR (
       NOT EXISTS (SELECT FROM unnest(sqlc.arg(tasks)::text[]) AS x (expression)
                   WHERE NOT EXISTS (SELECT FROM unnest(w.current_tasks || w.failed_tasks) AS t (name) WHERE t.name ~* x.expression))
       AND NOT EXISTS (SELECT FROM unnest(w.current_tasks || w.failed_tasks) AS t (name) WHERE t.name ~* ANY (sqlc.arg(not_tasks)::text[]))))
  AND coalesce(cardinality(w.failed_tasks), 0) >= sqlc.arg(min_failed)::bigint AND coalesce(cardinality(w.failed_tasks), 0) <= sqlc.arg(max_failed)::bigint
  AND (sqlc.arg(parent)::bigint = 0 OR e.parent = sqlc.arg(parent)::bigint)
  AND (sqlc.arg(parented)::text = '' OR (sqlc.arg(parented)::text = 'any') = (e.parent IS NOT NULL))
  AND (NOT sqlc.arg(only_ended)::bool OR NOT w.open)
  AND (NOT sqlc.arg(only_trouble)::bool OR e.status IN ('failed', 'timeout', 'abandoned')
       OR w.open AND (w.paused OR cardinality(w.failed_tasks) > 0))
ORDER BY w.execution DESC
LIMIT sqlc.arg(page)::int;

-- name: ViewWorkflowEdge :many
-- The key at which a search over scan rows stops; no row if it reaches the end.
SELECT x.execution FROM workflow_execution x
WHERE x.execution < sqlc.arg(before)::bigint AND x.execution >= sqlc.arg(floor)::bigint
ORDER BY x.execution DESC OFFSET sqlc.arg(scan)::int LIMIT 1;

-- name: ViewWorkflow :one
-- One workflow, with the states of its tasks.
SELECT w.id, w.execution, e.action_ref, e.status::text AS status, w.paused, coalesce(w.pause_reason, '')::text AS pause_reason,
       coalesce(CASE WHEN w.open AND e.parent IS NOT NULL THEN attune_paused_above(e.id) END, 0)::bigint AS paused_above,
       coalesce(w.current_tasks, '{}')::text[] AS current, coalesce(w.completed_tasks, '{}')::text[] AS completed_tasks,
       coalesce(w.failed_tasks, '{}')::text[] AS failed_tasks, coalesce(w.skipped_tasks, '{}')::text[] AS skipped_tasks,
       w.task_graph, w.state, w.version, w.deadline, w.open, coalesce(d.ref, '')::text AS definition,
       CASE WHEN pg_column_size(w.variables) <= sqlc.arg(most)::int THEN w.variables END AS variables,
       coalesce(CASE WHEN pg_column_size(w.variables) > sqlc.arg(most)::int THEN octet_length(w.variables::text) END, 0)::bigint AS variables_bytes,
       coalesce(w.error_message, '')::text AS error, e.parent, e.created, e.started_at, e.finished_at,
       coalesce((SELECT p.id FROM execution p WHERE p.id = e.parent AND jsonb_typeof(e.workflow_task) = 'object'), 0)::bigint AS within_execution,
       coalesce(e.workflow_task ->> 'task_name', '')::text AS within_task,
       coalesce((SELECT s.definition FROM workflow_source s WHERE s.id = w.source), 'null'::jsonb)::jsonb AS source
FROM workflow_execution w
JOIN execution e ON e.id = w.execution
LEFT JOIN workflow_definition d ON d.id = w.workflow_def
WHERE w.execution = sqlc.arg(execution)::bigint;

-- name: ViewWorkflowOf :one
-- Whether an execution is a workflow, started or not, and the workflow of which it is a task.
SELECT e.status::text AS status, e.action_ref, coalesce(e.parent, 0)::bigint AS parent,
       coalesce(e.workflow_task ->> 'task_name', '')::text AS task,
       (EXISTS (SELECT FROM workflow_execution w WHERE w.execution = e.id)
        OR EXISTS (SELECT FROM action a WHERE a.id = e.action AND a.workflow_def IS NOT NULL))::bool AS workflow
FROM execution e
WHERE e.id = sqlc.arg(execution)::bigint;

-- name: ViewWorkflowTasks :many
-- The outcomes of the children of each task, the last retry of each. It reads at most scan
-- children.
WITH child AS (
    SELECT d.task_name, d.execution_id FROM workflow_task_dispatch d
    WHERE d.workflow_execution = sqlc.arg(workflow)::bigint
    LIMIT sqlc.arg(scan)::int
)
SELECT c.task_name, count(*)::int AS children,
       count(*) FILTER (WHERE e.status = 'completed')::int AS completed,
       count(*) FILTER (WHERE e.status IN ('failed', 'abandoned', 'cancelled'))::int AS failed,
       count(*) FILTER (WHERE e.status = 'timeout')::int AS timed_out,
       count(*) FILTER (WHERE e.status IN ('running', 'canceling'))::int AS running,
       count(*) FILTER (WHERE e.status IN ('requested', 'scheduling', 'scheduled'))::int AS waiting,
       coalesce(max(e.retry_count), 0)::int AS repeated,
       min(e.started_at)::timestamptz AS started, (CASE WHEN bool_and(e.finished_at IS NOT NULL) THEN max(e.finished_at) END)::timestamptz AS finished
FROM child c
JOIN execution e ON e.id = c.execution_id
GROUP BY c.task_name;

-- name: ViewWorkflowChildren :many
-- The first children of each task: unfinished ones, then unsuccessful ones, then the others, in the
-- order of their items. due is when a waiting retry is due; inquiry is the one that a child
-- waits for; nested marks a child that is a workflow; drawn marks a child from whose end the
-- workflow has advanced. A single task shows more children than several. For a completed child, the
-- error is an inquiry that could not be opened.
SELECT x.task_name, x.task_index AS index, x.execution, x.status, x.retry_count + 1 AS attempt, x.worker AS worker_id, x.worker_name, x.created,
       x.started_at, x.finished_at, x.due, x.inquiry, x.error, x.action_ref, x.drawn,
       EXISTS (SELECT FROM workflow_execution n WHERE n.execution = x.execution)::bool AS nested
FROM (
    SELECT d.task_name, d.task_index, e.id AS execution, e.status::text AS status, e.retry_count,
           e.worker, coalesce(v.name, '')::text AS worker_name, e.created, e.started_at, e.finished_at, r.due,
           coalesce(q.id, 0)::bigint AS inquiry, e.action_ref, d.settled AS drawn,
           coalesce(f.reason, CASE WHEN e.finished_status <> 'completed' AND pg_column_size(e.result) < 8000
                 THEN left(coalesce(e.result ->> 'error', e.result ->> 'message', e.result ->> 'reason'), 300) END, '')::text AS error,
           row_number() OVER (PARTITION BY d.task_name
                              ORDER BY CASE WHEN e.finished_status IS NULL THEN 0 WHEN e.finished_status = 'completed' THEN 2 ELSE 1 END,
                                       coalesce(d.task_index, -1)) AS place
    FROM (SELECT t.task_name, t.task_index, t.execution_id, t.settled FROM workflow_task_dispatch t
          WHERE t.workflow_execution = sqlc.arg(workflow)::bigint LIMIT sqlc.arg(scan)::int) d
    JOIN execution e ON e.id = d.execution_id
    LEFT JOIN worker v ON v.id = e.worker
    LEFT JOIN execution_retry r ON r.execution = e.id AND r.waiting AND e.status = 'requested'
    LEFT JOIN inquiry q ON q.execution = e.id AND q.status = 'pending'
    LEFT JOIN inquiry_fault f ON f.execution = e.id
) x
WHERE x.place <= CASE WHEN x.task_name = sqlc.arg(wide_task)::text THEN sqlc.arg(wide)::int ELSE sqlc.arg(each)::int END
ORDER BY x.task_name, x.place;

-- name: ViewWorkflowLog :many
-- The decisions, the last first.
SELECT l.version, l.at, l.lines FROM workflow_log l
WHERE l.workflow_execution = sqlc.arg(workflow)::bigint AND cardinality(l.lines) > 0
ORDER BY l.version DESC
LIMIT sqlc.arg(page)::int;

-- name: ViewFalseConditions :many
-- The false conditions in the log of a workflow, the last first.
SELECT x.line::text AS line
FROM workflow_execution w
JOIN workflow_log l ON l.workflow_execution = w.id
CROSS JOIN LATERAL unnest(l.lines) WITH ORDINALITY AS x (line, n)
WHERE w.execution = sqlc.arg(execution)::bigint AND x.line LIKE '% is false%'
ORDER BY l.version DESC, x.n DESC
LIMIT sqlc.arg(page)::int;

-- name: CountPausedWorkflows :one
-- How many workflows are paused, among a bounded number of open ones.
SELECT count(*) FROM (SELECT w.paused FROM workflow_execution w WHERE w.open ORDER BY w.id LIMIT sqlc.arg(bound)::bigint) o WHERE o.paused;
