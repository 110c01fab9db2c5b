-- Workflows in progress. Every writer has locked the workflow's row first, before any queue and any
-- execution, and repeats the version that was read.

-- name: LockWorkflows :many
SELECT w.id, w.version, w.status, w.paused, w.open
FROM workflow_execution w
WHERE w.id = ANY (sqlc.arg(ids)::bigint[])
ORDER BY w.id
FOR NO KEY UPDATE;

-- name: ReadWorkflowStarts :many
-- Requested executions of workflows. workflow is 0 while none exists; held is set if a workflow
-- above it is paused; depth is its nesting, counted as far as it matters. requested is when the work
-- of its tasks was requested: a workflow above it is under way.
SELECT e.id, e.status, e.config, e.created, coalesce(e.priority, 0)::smallint AS priority, e.action_ref, a.workflow_def,
       d.ref AS definition_ref, d.definition, coalesce(d.param_schema, a.param_schema) AS param_schema,
       coalesce(attune_task_timeout(e.workflow_task), CASE WHEN attune_honours(sqlc.arg(action_timeouts)::text) THEN a.timeout_seconds END, 0)::float8 AS timeout_seconds,
       coalesce((SELECT w.id FROM workflow_execution w WHERE w.execution = e.id), 0)::bigint AS workflow, now()::timestamptz AS at,
       (e.parent IS NOT NULL AND attune_paused_above(e.id) IS NOT NULL)::bool AS held,
       coalesce(attune_depth(e.id, 20), 0)::int AS depth,
       CASE WHEN e.parent IS NULL THEN e.created ELSE 'epoch' END::timestamptz AS requested
FROM execution e
JOIN LATERAL (
    SELECT x.workflow_def, x.param_schema, x.timeout_seconds FROM action x WHERE x.id = e.action
    UNION ALL
    SELECT x.workflow_def, x.param_schema, x.timeout_seconds FROM action x WHERE e.action IS NULL AND x.ref = e.action_ref
) a ON true
JOIN workflow_definition d ON d.id = a.workflow_def
WHERE e.id = ANY (sqlc.arg(ids)::bigint[]);

-- name: ReadWorkflows :many
-- The state of workflows, read without locks. held is set if a workflow above it is paused.
SELECT w.id, w.version, w.status, w.paused, w.open, w.execution, w.source, w.state, w.variables, w.created,
       (e.parent IS NOT NULL AND attune_paused_above(e.id) IS NOT NULL)::bool AS held,
       (w.deadline IS NOT NULL AND w.deadline <= now())::bool AS overdue,
       coalesce(extract(epoch FROM w.deadline - w.created), 0)::float8 AS allowed_seconds,
       e.status AS parent_status, e.config, coalesce(e.priority, 0)::smallint AS priority, e.action_ref, coalesce(e.action, 0)::bigint AS action,
       EXISTS (SELECT FROM execution_cancel c WHERE c.execution = e.id) AS cancel_asked, now()::timestamptz AS at,
       CASE WHEN e.parent IS NULL THEN e.created ELSE 'epoch' END::timestamptz AS requested
FROM workflow_execution w
JOIN execution e ON e.id = w.execution
WHERE w.id = ANY (sqlc.arg(ids)::bigint[])
ORDER BY w.id;

-- name: ReadWorkflowSources :many
-- The definitions with which workflows were started.
SELECT s.id, s.definition, s.param_schema FROM workflow_source s WHERE s.id = ANY (sqlc.arg(ids)::bigint[]);

-- name: ReadEndedTasks :many
-- Ended children that are not processed: reported ones, and ones whose report is overdue. It
-- excludes children that still hold a slot, because their end is not processed, and children with
-- an open or pending inquiry. asked is the outcome of an inquiry that a result opened, empty
-- without one. The workflow does not wait for inquiries about a child that came through the API.
SELECT d.id, d.workflow_execution, d.task_name, coalesce(d.task_index, 0)::int AS task_index, e.id AS execution, e.status, e.retry_count,
       EXISTS (SELECT FROM execution_cancel n WHERE n.execution = e.id) AS cancel_asked,
       coalesce(CASE WHEN q.asks THEN q.status::text END, CASE WHEN f.execution IS NOT NULL THEN 'refused' ELSE '' END)::text AS asked
FROM (SELECT unnest(sqlc.arg(workflows)::bigint[]) AS id) w
CROSS JOIN LATERAL (
    SELECT t.id, t.workflow_execution, t.task_name, t.task_index, t.execution_id FROM workflow_task_dispatch t
    WHERE t.workflow_execution = w.id AND NOT t.settled OFFSET 0
) d
CROSS JOIN LATERAL (
    SELECT x.id, x.status, x.retry_count, x.updated, x.result
    FROM execution x WHERE x.id = d.execution_id OFFSET 0
) e
LEFT JOIN LATERAL (SELECT i.status, attune_inquiry_of(e.result) IS NOT NULL AS asks FROM inquiry i WHERE i.execution = e.id OFFSET 0) q ON true
LEFT JOIN LATERAL (SELECT x.execution FROM inquiry_fault x WHERE x.execution = e.id OFFSET 0) f ON true
WHERE e.status IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned')
  AND NOT EXISTS (SELECT FROM execution_holder h WHERE h.execution = ANY (ARRAY[e.id]))
  AND (e.id = ANY (sqlc.arg(reported)::bigint[]) OR e.updated < now() - make_interval(secs => sqlc.arg(unreported_after)::float8))
  AND NOT coalesce(e.status = 'completed' AND q.asks AND q.status = 'pending', false)
  AND (q.status IS NOT NULL OR f.execution IS NOT NULL OR e.status <> 'completed'
       OR CASE WHEN pg_column_size(e.result) < 1048576 THEN attune_inquiry_of(e.result) IS NULL ELSE true END)
ORDER BY d.workflow_execution, e.updated, e.id
LIMIT sqlc.arg(most)::int;

-- name: ReadTaskResults :many
-- The results of children of tasks, each from a first to a last index. The child of a task without a list has -1.
SELECT d.task_name, coalesce(d.task_index, -1)::int AS task_index, e.id AS execution, e.result, q.response,
       coalesce(q.status::text, '')::text AS asked, coalesce(f.reason, '')::text AS fault
FROM (SELECT unnest(sqlc.arg(tasks)::text[]) AS task, unnest(sqlc.arg(firsts)::int[]) AS first, unnest(sqlc.arg(lasts)::int[]) AS last) r
CROSS JOIN LATERAL (
    SELECT x.task_name, x.task_index, x.execution_id FROM workflow_task_dispatch x
    WHERE x.workflow_execution = sqlc.arg(workflow)::bigint AND x.task_name = r.task
      AND coalesce(x.task_index, -1) BETWEEN r.first AND r.last
    OFFSET 0
) d
JOIN execution e ON e.id = d.execution_id
LEFT JOIN inquiry q ON q.execution = e.id
LEFT JOIN inquiry_fault f ON f.execution = e.id;

-- name: ReadOwnChildren :many
-- The executions that are tasks of the workflow.
SELECT e.id FROM execution e
WHERE e.id = ANY (sqlc.arg(ids)::bigint[]) AND jsonb_typeof(e.workflow_task) = 'object'
  AND (e.workflow_task ->> 'workflow_execution')::bigint = sqlc.arg(workflow)::bigint;

-- name: ReadSettledTasks :many
SELECT d.id, d.task_name, coalesce(d.task_index, 0)::int AS task_index, d.execution_id AS execution
FROM workflow_task_dispatch d
WHERE d.workflow_execution = sqlc.arg(workflow) AND d.task_name = ANY (sqlc.arg(tasks)::text[]) AND d.settled;

-- name: ReopenTasks :exec
-- Reopens tasks whose children are repeated after all.
UPDATE workflow_task_dispatch SET settled = false, updated = now() WHERE id = ANY (sqlc.arg(ids)::bigint[]);

-- name: FollowRetries :exec
-- An operator may have retried a child while its task was settled: the reopened task waits for the
-- newest attempt. It runs after ReopenTasks, whose lock waits for the operator's transaction.
WITH RECURSIVE chain AS (
    SELECT d.id AS task, d.execution_id AS execution, 0 AS n
    FROM workflow_task_dispatch d WHERE d.id = ANY (sqlc.arg(ids)::bigint[])
    UNION ALL
    SELECT c.task, r.execution, c.n + 1
    FROM chain c
    CROSS JOIN LATERAL (SELECT t.execution FROM execution_retry t WHERE t.failed = c.execution OFFSET 0) r
    WHERE c.n < 1000 AND EXISTS (SELECT FROM execution x WHERE x.id = r.execution)
), newest AS (
    SELECT DISTINCT ON (c.task) c.task, c.execution FROM chain c WHERE c.n > 0 ORDER BY c.task, c.n DESC
)
UPDATE workflow_task_dispatch d SET execution_id = n.execution FROM newest n WHERE d.id = ANY (ARRAY[n.task]);

-- name: ReadWorkflowItems :many
-- Parts of kept lists.
SELECT i.workflow_execution, i.task_name, i.index, i.item
FROM (SELECT unnest(sqlc.arg(workflows)::bigint[]) AS workflow, unnest(sqlc.arg(tasks)::text[]) AS task,
             unnest(sqlc.arg(froms)::int[]) AS first, unnest(sqlc.arg(counts)::int[]) AS n) r
JOIN workflow_item i ON i.workflow_execution = r.workflow AND i.task_name = r.task AND i.index >= r.first AND i.index < r.first + r.n
ORDER BY i.workflow_execution, i.task_name, i.index;

-- name: KeepWorkflowSource :one
-- Equal definitions are stored once. Each use is recorded, so that retention does not delete the
-- definition before a workflow refers to it.
INSERT INTO workflow_source AS s (digest, definition, param_schema)
VALUES (sqlc.arg(digest), sqlc.arg(definition), sqlc.narg(param_schema))
ON CONFLICT (digest) DO UPDATE SET used = greatest(s.used, now())
RETURNING s.id;

-- name: InsertWorkflows :exec
-- Takes one object with its columns for each workflow, and sets its execution running.
WITH given AS MATERIALIZED (
    SELECT (g.v ->> 'id')::bigint AS id, (g.v ->> 'execution')::bigint AS execution, (g.v ->> 'definition')::bigint AS definition,
           (g.v ->> 'source')::bigint AS source, g.v -> 'graph' AS graph, (g.v ->> 'timeout')::float8 AS timeout
    FROM (SELECT jsonb_array_elements(sqlc.arg(workflows)::jsonb) AS v) g
), begun AS (
    UPDATE execution e SET status = 'running', started_at = now(), workflow_def = g.definition
    FROM given g
    WHERE e.id = ANY (ARRAY[g.execution]) AND e.status = 'requested' AND e.worker IS NULL
      AND NOT EXISTS (SELECT FROM execution_holder h WHERE h.execution = ANY (ARRAY[e.id]))
    RETURNING e.id
), made AS (
    INSERT INTO workflow_execution (id, execution, workflow_def, source, task_graph, status, deadline)
    SELECT g.id, g.execution, g.definition, g.source, g.graph, 'running', now() + make_interval(secs => nullif(g.timeout, 0))
    FROM given g
    ORDER BY g.id
    RETURNING id
)
SELECT attune_expect((SELECT count(*) FROM begun) + (SELECT count(*) FROM made), 2 * jsonb_array_length(sqlc.arg(workflows)::jsonb)::bigint, 'started workflows');

-- name: AdvanceWorkflows :exec
-- Takes one object with the new state for each workflow. It repeats the version that was read
-- (invariant S11).
WITH changed AS (
    UPDATE workflow_execution w
    SET version = w.version + 1, state = g.v -> 'state', variables = g.v -> 'variables', status = (g.v ->> 'status')::execution_status_enum,
        error_message = coalesce(g.v ->> 'error', w.error_message), open = (g.v ->> 'open')::bool, updated = now(),
        current_tasks = ARRAY(SELECT t.name FROM jsonb_array_elements_text(g.v -> 'current') t (name)),
        completed_tasks = ARRAY(SELECT t.name FROM jsonb_array_elements_text(g.v -> 'completed') t (name)),
        failed_tasks = ARRAY(SELECT t.name FROM jsonb_array_elements_text(g.v -> 'failed') t (name)),
        skipped_tasks = ARRAY(SELECT t.name FROM jsonb_array_elements_text(g.v -> 'skipped') t (name))
    FROM (SELECT jsonb_array_elements(sqlc.arg(workflows)::jsonb) AS v) g
    WHERE w.id = (g.v ->> 'id')::bigint AND w.version = (g.v ->> 'version')::bigint AND w.open = (g.v ->> 'was_open')::bool
    RETURNING w.id, w.version, g.v -> 'log' AS log
), logged AS (
    INSERT INTO workflow_log (workflow_execution, version, lines)
    SELECT c.id, c.version, ARRAY(SELECT t.line FROM jsonb_array_elements_text(c.log) t (line)) FROM changed c
)
SELECT attune_expect((SELECT count(*) FROM changed), jsonb_array_length(sqlc.arg(workflows)::jsonb)::bigint, 'advanced workflows');

-- name: SettleTasks :exec
-- Requires the child that was read: another program may have repeated it meanwhile.
WITH settled AS (
    UPDATE workflow_task_dispatch d SET settled = true, updated = now()
    FROM (SELECT unnest(sqlc.arg(ids)::bigint[]) AS id, unnest(sqlc.arg(executions)::bigint[]) AS execution) r
    WHERE d.id = ANY (ARRAY[r.id]) AND d.execution_id = r.execution AND NOT d.settled
    RETURNING d.id
)
SELECT attune_expect((SELECT count(*) FROM settled), cardinality(sqlc.arg(ids)::bigint[])::bigint, 'settled tasks');

-- name: InsertTasks :exec
-- One child for each (workflow, task, index), ever (invariant S10). Index -1 means none. A row of
-- another engine without a child is taken over.
WITH made AS (
    INSERT INTO workflow_task_dispatch (workflow_execution, task_name, task_index, execution_id)
    SELECT r.workflow, r.task, nullif(r.index, -1), r.execution
    FROM (SELECT unnest(sqlc.arg(workflows)::bigint[]) AS workflow, unnest(sqlc.arg(tasks)::text[]) AS task,
                 unnest(sqlc.arg(indexes)::int[]) AS index, unnest(sqlc.arg(executions)::bigint[]) AS execution) r
    ORDER BY r.workflow, r.task, r.index
    ON CONFLICT (workflow_execution, task_name, (COALESCE(task_index, -1))) DO UPDATE
    SET execution_id = excluded.execution_id, settled = false WHERE workflow_task_dispatch.execution_id IS NULL
    RETURNING id
)
SELECT attune_expect((SELECT count(*) FROM made), cardinality(sqlc.arg(executions)::bigint[])::bigint, 'new tasks');

-- name: RunWorkflowParents :exec
-- Sets executions running whose workflow another engine created and did not mark.
WITH changed AS (
    UPDATE execution e SET status = 'running', started_at = coalesce(e.started_at, now())
    WHERE e.id = ANY (sqlc.arg(ids)::bigint[]) AND (e.status = 'requested' OR e.status = 'scheduling') AND e.worker IS NULL
      AND NOT EXISTS (SELECT FROM execution_holder h WHERE h.execution = ANY (ARRAY[e.id]))
    RETURNING e.id
)
SELECT attune_expect((SELECT count(*) FROM changed), cardinality(sqlc.arg(ids)::bigint[])::bigint, 'executions of workflows');

-- name: KeepWorkflowItems :exec
INSERT INTO workflow_item (workflow_execution, task_name, index, item)
SELECT sqlc.arg(workflow)::bigint, sqlc.arg(task)::text, (i.n - 1)::int, i.item
FROM jsonb_array_elements(sqlc.arg(items)::jsonb) WITH ORDINALITY i (item, n);

-- name: DropWorkflowItems :exec
-- Deletes the lists of ended tasks.
DELETE FROM workflow_item i
USING (SELECT unnest(sqlc.arg(workflows)::bigint[]) AS workflow, unnest(sqlc.arg(tasks)::text[]) AS task) r
WHERE i.workflow_execution = r.workflow AND i.task_name = r.task;

-- name: EndWorkflowParents :exec
WITH changed AS (
    UPDATE execution e
    SET status = r.status::execution_status_enum, result = r.result
    FROM (
        SELECT unnest(sqlc.arg(ids)::bigint[]) AS id, unnest(sqlc.arg(statuses)::text[]) AS status, unnest(sqlc.arg(results)::jsonb[]) AS result
    ) r
    WHERE e.id = ANY (ARRAY[r.id]) AND e.status IN ('running', 'canceling') AND e.worker IS NULL
    RETURNING e.id
)
SELECT attune_expect((SELECT count(*) FROM changed), cardinality(sqlc.arg(ids)::bigint[])::bigint, 'ended workflows');

-- name: StopTasks :exec
-- Requests the end of live children; a loop stops them. With allow_finish, started children may
-- finish. actor and reason are those of the workflow's own request.
INSERT INTO execution_cancel AS c (execution, actor, reason)
SELECT e.id, coalesce(n.actor, 'workflow'), coalesce(n.reason, sqlc.arg(reason)::text)
FROM workflow_task_dispatch d
JOIN execution e ON e.id = d.execution_id
LEFT JOIN LATERAL (
    SELECT x.actor, x.reason FROM workflow_execution w JOIN execution_cancel x ON x.execution = w.execution
    WHERE w.id = sqlc.arg(workflow) OFFSET 0
) n ON true
WHERE d.workflow_execution = sqlc.arg(workflow) AND NOT d.settled AND d.task_name = ANY (sqlc.arg(tasks)::text[])
  AND e.status NOT IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned')
  AND NOT (sqlc.arg(allow_finish)::bool AND e.status IN ('running', 'canceling') AND e.worker IS NOT NULL)
ORDER BY e.id
ON CONFLICT (execution) DO NOTHING;

-- name: OpenWorkflowsOf :many
SELECT w.id::bigint AS id FROM workflow_execution w WHERE w.execution = ANY (sqlc.arg(executions)::bigint[]) AND w.open ORDER BY w.id;

-- name: FindWorkflows :many
-- A page of open workflows. due are the ones that can continue: it or a parent was paused or
-- resumed, its timeout has passed, another program ended or cancelled it, another engine left it,
-- one of its children ended without a report, or it has no child left. A canceling workflow waits
-- only for its children. unasked are ended children whose inquiry was never opened.
SELECT w.id::bigint AS id, coalesce(o.unasked, '{}')::bigint[] AS unasked,
       (w.state IS NULL
        OR p.status IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned')
        OR w.state ->> 'status' <> 'canceling'
           AND (p.paused IS DISTINCT FROM coalesce((w.state ->> 'paused')::bool, false)
                OR coalesce(w.deadline <= now(), false)
                OR p.status = 'canceling'
                OR w.status IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned')
                OR EXISTS (SELECT FROM execution_cancel n WHERE n.execution = w.execution))
        OR (coalesce(o.due, NOT p.paused) AND w.updated < now() - make_interval(secs => sqlc.arg(unreported_after)::float8)))::bool AS due
FROM (SELECT x.id, x.execution, x.state, x.status, x.paused, x.deadline, x.updated FROM workflow_execution x WHERE x.open AND x.id > sqlc.arg(after)::bigint ORDER BY x.id LIMIT sqlc.arg(page)::int) w
CROSS JOIN LATERAL (
    SELECT e.status, w.paused OR e.parent IS NOT NULL AND attune_paused_above(e.id) IS NOT NULL AS paused
    FROM execution e WHERE e.id = w.execution OFFSET 0
) p
LEFT JOIN LATERAL (
    SELECT bool_or(e.status IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned') AND NOT e.holds
                   AND e.updated < now() - make_interval(secs => sqlc.arg(unreported_after)::float8)
                   AND NOT EXISTS (SELECT FROM inquiry q WHERE q.execution = e.id AND q.status = 'pending'
                                   AND e.status = 'completed' AND attune_inquiry_of(e.result) IS NOT NULL)) AS due,
           array_agg(e.id) FILTER (WHERE e.status = 'completed' AND NOT e.holds
                   AND e.updated < now() - make_interval(secs => sqlc.arg(unreported_after)::float8)
                   AND pg_column_size(e.result) < 1048576 AND attune_inquiry_of(e.result) IS NOT NULL
                   AND NOT EXISTS (SELECT FROM inquiry q WHERE q.execution = e.id)
                   AND NOT EXISTS (SELECT FROM inquiry_fault q WHERE q.execution = e.id)) AS unasked
    FROM (SELECT t.execution_id FROM workflow_task_dispatch t WHERE t.workflow_execution = w.id AND NOT t.settled OFFSET 0) d
    CROSS JOIN LATERAL (
        SELECT x.id, x.status, x.updated, x.result,
               EXISTS (SELECT FROM execution_holder h WHERE h.execution = ANY (ARRAY[x.id])) AS holds
        FROM execution x WHERE x.id = d.execution_id OFFSET 0
    ) e
) o ON true
ORDER BY w.id;

-- name: ReadWorkflowOrigin :one
-- What another engine stored about a workflow. Its task graph is the definition that it started; the present definition
-- has the rest.
SELECT w.task_graph, d.definition, coalesce(d.param_schema, a.param_schema) AS param_schema,
       coalesce(w.current_tasks, '{}')::text[] AS current_tasks, coalesce(w.completed_tasks, '{}')::text[] AS completed_tasks,
       coalesce(w.failed_tasks, '{}')::text[] AS failed_tasks, coalesce(w.skipped_tasks, '{}')::text[] AS skipped_tasks
FROM workflow_execution w
JOIN workflow_definition d ON d.id = w.workflow_def
JOIN execution e ON e.id = w.execution
LEFT JOIN action a ON a.id = e.action
WHERE w.id = sqlc.arg(id);

-- name: ReadWorkflowChildren :many
-- The children of a workflow that another engine started: the last retry of each task and item. The row of the task may
-- be gone with an earlier retry. An execution that holds a slot or has a pending inquiry counts as not ended. waits is
-- true for an execution without a place in a queue.
SELECT e.task_name::text AS task_name, e.task_index::int AS task_index, e.triggered_by::text AS triggered_by, e.id AS execution,
       e.status, e.updated, e.retry_count, e.action, e.action_ref, e.parent, e.enforcement, e.config,
       (e.status IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned')
        AND NOT EXISTS (SELECT FROM execution_holder h WHERE h.execution = ANY (ARRAY[e.id]))
        AND NOT EXISTS (SELECT FROM inquiry i WHERE i.execution = e.id AND i.status = 'pending'))::bool AS ended,
       (e.status = 'requested' AND NOT EXISTS (SELECT FROM execution_admission_entry q WHERE q.execution_id = e.id))::bool AS waits
FROM (
    SELECT DISTINCT ON (t.task_name, t.task_index) x.id, x.status, x.updated, x.retry_count, x.action, x.action_ref, x.parent, x.enforcement, x.config,
           t.task_name, t.task_index, coalesce(x.workflow_task ->> 'triggered_by', '') AS triggered_by
    FROM execution x
    CROSS JOIN LATERAL (
        SELECT x.workflow_task ->> 'task_name' AS task_name,
               coalesce(CASE WHEN jsonb_typeof(x.workflow_task -> 'task_index') = 'number' THEN (x.workflow_task ->> 'task_index')::numeric END, -1) AS task_index
    ) t
    WHERE (x.workflow_task ->> 'workflow_execution')::bigint = sqlc.arg(id)::bigint AND jsonb_typeof(x.workflow_task) = 'object'
      AND t.task_name IS NOT NULL
    ORDER BY t.task_name, t.task_index, x.retry_count DESC, x.id DESC
) e
ORDER BY e.task_name, e.task_index;

-- name: ReadMadeTasks :many
-- The existing children among the ones that a workflow creates.
SELECT d.task_name, coalesce(d.task_index, 0)::int AS task_index, e.id AS execution, e.action, e.action_ref,
       e.parent, e.enforcement, e.config, e.status
FROM (SELECT unnest(sqlc.arg(tasks)::text[]) AS task, unnest(sqlc.arg(indexes)::int[]) AS index) r
JOIN workflow_task_dispatch d ON d.workflow_execution = sqlc.arg(workflow)::bigint AND d.task_name = r.task
                             AND coalesce(d.task_index, -1) = r.index
JOIN execution e ON e.id = d.execution_id
ORDER BY e.id;

-- name: AdoptWorkflow :exec
-- Takes over a workflow of another engine: its definition, the last retry of each child, and which ends were processed.
WITH kept AS (
    UPDATE workflow_execution w SET source = sqlc.narg(source)::bigint WHERE w.id = sqlc.arg(id)
)
INSERT INTO workflow_task_dispatch (workflow_execution, task_name, task_index, execution_id, settled)
SELECT sqlc.arg(id), r.task, nullif(r.index, -1), r.execution, r.settled
FROM (SELECT unnest(sqlc.arg(tasks)::text[]) AS task, unnest(sqlc.arg(indexes)::int[]) AS index,
             unnest(sqlc.arg(executions)::bigint[]) AS execution, unnest(sqlc.arg(settled)::bool[]) AS settled) r
ORDER BY r.task, r.index
ON CONFLICT (workflow_execution, task_name, (COALESCE(task_index, -1))) DO UPDATE
SET execution_id = excluded.execution_id, settled = excluded.settled;
