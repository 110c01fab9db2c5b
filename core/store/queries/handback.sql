-- Returns an adopted database to the executor of its installation.

-- name: LockForHandBack :exec
-- Takes the locks under which executions are admitted: no replica decides meanwhile.
SELECT count(*) FROM (SELECT s.id FROM execution_admission_state s ORDER BY s.id FOR UPDATE) l;

-- name: LiveReplicas :many
-- Replicas that have reported lately.
SELECT r.id, r.host, r.pid, extract(epoch FROM now() - r.last_seen)::float8 AS age
FROM engine_replica r
WHERE r.state <> 'vanished' AND r.last_seen > now() - make_interval(secs => sqlc.arg(silent_seconds)::float8)
ORDER BY r.started, r.id;

-- name: KnownReplicas :many
-- All replicas with a row, also the vanished ones, whose connections the broker may not have given up.
SELECT r.id FROM engine_replica r;

-- name: BatchQueues :many
-- Workers whose queues may hold batches, and how many executions each has not started.
SELECT w.id, w.name, coalesce(w.capabilities -> 'batch' = 'true', false)::bool AS batch,
       (SELECT count(*) FROM execution e WHERE e.worker = w.id AND e.status = 'scheduled' AND e.finished_status IS NULL) AS unstarted
FROM worker w
ORDER BY w.id;

-- name: LiveExecutions :many
-- A page of unfinished executions with their positions. list is the task of a child of a list, and
-- empty for all others.
SELECT e.id, coalesce(e.action, 0)::bigint AS action, e.action_ref, e.status::text AS status, e.config,
       (h.state_id IS NOT NULL)::bool AS holds, e.admitted_at,
       (q.id IS NOT NULL)::bool AS waits, coalesce(q.lane, 0)::smallint AS lane, coalesce(q.queue_order, 0)::bigint AS queue_order,
       coalesce(q.enqueued_at, e.created)::timestamptz AS enqueued_at, coalesce(s.group_key, '')::text AS group_key,
       coalesce(e.parent, 0)::bigint AS parent, coalesce(i.index, 0)::int AS index,
       coalesce(CASE WHEN i.index IS NOT NULL THEN e.workflow_task ->> 'task_name' END, '')::text AS list
FROM execution e
LEFT JOIN LATERAL (SELECT CASE WHEN jsonb_typeof(e.workflow_task -> 'task_index') = 'number'
    THEN (e.workflow_task ->> 'task_index')::numeric END AS index) i ON true
LEFT JOIN execution_admission_entry q ON q.execution_id = e.id
LEFT JOIN execution_holder h ON h.execution = e.id
LEFT JOIN execution_admission_state s ON s.id = coalesce(h.state_id, q.state_id)
WHERE e.finished_status IS NULL AND e.id > sqlc.arg(after)::bigint
ORDER BY e.id
LIMIT sqlc.arg(page)::int;

-- name: ListWindows :many
-- How many children of these lists the other executor runs at once, by the graph that it reads.
SELECT r.parent::bigint AS parent, r.task::text AS task,
       CASE WHEN jsonb_typeof(n.concurrency) = 'number' THEN (n.concurrency)::numeric ELSE 1 END::int AS most
FROM (SELECT unnest(sqlc.arg(parents)::bigint[]) AS parent, unnest(sqlc.arg(tasks)::text[]) AS task) r
JOIN workflow_execution w ON w.execution = r.parent
CROSS JOIN LATERAL (SELECT w.task_graph -> 'nodes' -> r.task -> 'concurrency' AS concurrency) n;

-- name: UnmadeLists :many
-- Workflows with lists that still lack children.
SELECT DISTINCT w.id
FROM workflow_item i JOIN workflow_execution w ON w.id = i.workflow_execution
WHERE w.open
ORDER BY w.id;

-- name: ClearEntries :exec
DELETE FROM execution_admission_entry;

-- name: UpsertStates :many
-- The states of the queues, with an empty key for no group. Our own counters become zero, so that a
-- replica that starts nevertheless takes the queues over.
INSERT INTO execution_admission_state AS s (action_id, group_key, max_concurrent)
SELECT r.action, nullif(r.key, ''), r.most
FROM (SELECT unnest(sqlc.arg(actions)::bigint[]) AS action, unnest(sqlc.arg(keys)::text[]) AS key,
             unnest(sqlc.arg(maxima)::int[]) AS most) r
ON CONFLICT (action_id, group_key_normalized) DO UPDATE SET max_concurrent = excluded.max_concurrent
RETURNING s.id, s.action_id, coalesce(s.group_key, '')::text AS group_key;

-- name: InsertEntries :exec
INSERT INTO execution_admission_entry (state_id, execution_id, status, queue_order, enqueued_at, activated_at)
SELECT r.state, r.execution, CASE WHEN r.active THEN 'active' ELSE 'queued' END, r.place, r.enqueued,
       CASE WHEN r.active THEN r.activated END
FROM (SELECT unnest(sqlc.arg(states)::bigint[]) AS state, unnest(sqlc.arg(executions)::bigint[]) AS execution,
             unnest(sqlc.arg(active)::bool[]) AS active, unnest(sqlc.arg(places)::bigint[]) AS place,
             unnest(sqlc.arg(enqueued)::timestamptz[]) AS enqueued, unnest(sqlc.arg(activated)::timestamptz[]) AS activated) r;

-- name: FinishStates :exec
-- Limits as the policies say, positions behind every entry, and no counters of ours. A queue
-- without entries keeps the count of its holders: no replica takes it over again.
UPDATE execution_admission_state s
SET max_concurrent = coalesce(r.most, s.max_concurrent), queued_count = 0, queued_high = 0, queued_low = 0,
    active_count = CASE WHEN EXISTS (SELECT FROM execution_admission_entry q WHERE q.state_id = s.id) THEN 0 ELSE s.active_count END,
    next_queue_order = greatest(s.next_queue_order, coalesce(
        (SELECT max(q.queue_order) FROM execution_admission_entry q WHERE q.state_id = s.id), 0) + 1)
FROM execution_admission_state t
LEFT JOIN (SELECT unnest(sqlc.arg(actions)::bigint[]) AS action, unnest(sqlc.arg(maxima)::int[]) AS most) r ON r.action = t.action_id
WHERE t.id = s.id;

-- name: WriteQueueStats :exec
-- The published statistics, by the entries.
INSERT INTO queue_stats AS t
    (action_id, queue_length, active_count, max_concurrent, oldest_enqueued_at, total_enqueued, total_completed)
SELECT s.action_id, sum(n.queued)::int, sum(n.active)::int,
       least(coalesce(sum(s.max_concurrent) FILTER (WHERE NOT s.unlimited), 1), 2147483647)::int, min(n.oldest),
       sum(s.total_enqueued)::bigint, sum(s.total_completed)::bigint
FROM execution_admission_state s
LEFT JOIN LATERAL (
    SELECT count(*) FILTER (WHERE q.status = 'queued') AS queued, count(*) FILTER (WHERE q.status = 'active') AS active,
           min(q.enqueued_at) FILTER (WHERE q.status = 'queued') AS oldest
    FROM execution_admission_entry q WHERE q.state_id = s.id) n ON true
GROUP BY s.action_id
ORDER BY s.action_id
ON CONFLICT (action_id) DO UPDATE
SET queue_length = excluded.queue_length, active_count = excluded.active_count, max_concurrent = excluded.max_concurrent,
    oldest_enqueued_at = excluded.oldest_enqueued_at, last_updated = now();

-- name: ReadRequests :many
-- The contents of the messages about these executions.
SELECT e.id, e.action, e.action_ref, e.parent, e.enforcement, e.config
FROM execution e
WHERE e.id = ANY (sqlc.arg(ids)::bigint[]);

-- name: UnsettledEnds :many
-- Ended children whose workflow has not advanced yet. The lists of a workflow that was not taken over count; its
-- executor repeats a child once for each message.
SELECT e.id, coalesce(e.action, 0)::bigint AS action, e.action_ref, e.status::text AS status, e.result
FROM workflow_task_dispatch d
JOIN workflow_execution w ON w.id = d.workflow_execution
JOIN execution e ON e.id = d.execution_id
WHERE NOT d.settled AND w.open AND e.finished_status IS NOT NULL
  AND (w.state IS NOT NULL
       OR NOT (d.task_name = ANY (coalesce(w.completed_tasks, '{}') || coalesce(w.failed_tasks, '{}')))
          AND NOT EXISTS (SELECT FROM execution r WHERE r.original_execution = e.id))
ORDER BY e.id;

-- name: NotUnderstood :many
-- Features that the executor of an existing installation does not know: their number, the first
-- ids, and a note each.
SELECT x.kind::text AS kind, count(*) AS n,
       coalesce((array_agg(x.id ORDER BY x.id))[1:20], '{}')::bigint[] AS ids,
       coalesce((array_agg(coalesce(x.note, '') ORDER BY x.id))[1:20], '{}')::text[] AS notes
FROM (
    SELECT 'paused queues' AS kind, s.id, a.ref || coalesce(' ' || s.group_key, '') AS note
    FROM execution_admission_state s JOIN action a ON a.id = s.action_id WHERE s.paused
    UNION ALL
    SELECT 'limit overrides', s.id, a.ref || ' ' || s.limit_override
    FROM execution_admission_state s JOIN action a ON a.id = s.action_id WHERE s.limit_override IS NOT NULL
    UNION ALL
    SELECT 'rates and quotas', p.id, p.ref FROM policy p WHERE p.kind <> 'concurrency'
    UNION ALL
    SELECT 'shared limits', p.id, p.ref FROM policy p WHERE p.kind = 'concurrency' AND p.action IS NULL
    UNION ALL
    SELECT 'adaptive limits', p.id, p.ref FROM policy p WHERE p.adaptive_min IS NOT NULL
    UNION ALL
    SELECT 'queue bounds', p.id, p.ref FROM policy p
    WHERE p.max_queue_length IS NOT NULL OR p.queue_timeout_seconds IS NOT NULL OR p.retry_place IS NOT NULL
    UNION ALL
    SELECT 'priorities', q.execution_id, CASE WHEN q.lane > 0 THEN 'high' ELSE 'low' END
    FROM execution_admission_entry q WHERE q.lane <> 0
    UNION ALL
    SELECT 'pending retries', r.execution, to_char(r.due AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
    FROM execution_retry r WHERE r.waiting AND r.due > now()
    UNION ALL
    SELECT 'cancel requests', c.execution, c.reason
    FROM execution_cancel c JOIN execution e ON e.id = c.execution WHERE e.finished_status IS NULL AND e.status <> 'canceling'
    UNION ALL
    SELECT 'paused workflows', w.execution, NULL FROM workflow_execution w WHERE w.paused AND w.open
    UNION ALL
    SELECT 'parallel tasks', w.execution, string_agg(t.name, ', ' ORDER BY t.name)
    FROM workflow_execution w
    JOIN workflow_definition d ON d.id = w.workflow_def
    LEFT JOIN workflow_source s ON s.id = w.source
    CROSS JOIN LATERAL (
        SELECT p ->> 'name' AS name
        FROM jsonb_path_query(coalesce(s.definition, d.definition), '$.tasks[*] ? (@.type == "parallel")') p) t
    WHERE w.open AND NOT coalesce(w.state -> 'done' ? t.name, false)
      AND coalesce(w.state -> 'tasks' -> t.name ->> 'status', 'ready') IN ('waiting', 'ready', 'running')
    GROUP BY w.execution
    UNION ALL
    SELECT 'workflow deadlines', w.execution, to_char(w.deadline AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
    FROM workflow_execution w WHERE w.deadline IS NOT NULL AND w.open
    UNION ALL
    SELECT 'inquiries', i.id, e.action_ref
    FROM inquiry i JOIN execution e ON e.id = i.execution WHERE i.status = 'pending' AND e.action_ref <> 'core.ask'
    UNION ALL
    SELECT 'dead letters', d.id, d.routing_key FROM dead_letter d WHERE d.decision IS NULL
    UNION ALL
    SELECT 'strict workflows', d.id, d.ref FROM workflow_definition d WHERE d.definition -> 'strict' = 'true'
    UNION ALL
    SELECT 'action retries', a.id, a.ref FROM action a WHERE a.max_retries > 0
    UNION ALL
    SELECT 'action timeouts', a.id, a.ref FROM action a
    WHERE a.timeout_seconds IS NOT NULL OR a.scheduled_timeout_seconds IS NOT NULL
    UNION ALL
    SELECT 'draining workers', w.id, w.name FROM worker w WHERE w.draining
) x
GROUP BY x.kind
ORDER BY x.kind;
