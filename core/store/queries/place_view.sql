-- Fields of the pages of one queue and of one worker: waiting executions, running executions and their outcomes.
-- Everything is bounded, and found by the indexes that queue_view.sql names.

-- name: ViewLine :many
-- The waiting executions of a queue: of each lane a number from its head and a number before its
-- end, with their causes.
SELECT e.id, (CASE r.lane WHEN 1 THEN 'high' WHEN 0 THEN 'normal' ELSE 'low' END)::text AS lane, q.queue_order AS "order",
       q.enqueued_at AS since, e.parent, coalesce(p.action_ref, '')::text AS parent_ref, coalesce(e.workflow_task ->> 'task_name', '')::text AS task,
       coalesce('retry of ' || e.original_execution, 'rule ' || nullif(n.rule_ref, ''), 'by ' || nullif(i.login, ''),
                CASE WHEN e.parent IS NOT NULL THEN 'workflow' END, 'request')::text AS source
FROM (
    SELECT unnest(sqlc.arg(lanes)::smallint[]) AS lane, unnest(sqlc.arg(heads)::bigint[]) AS head
) r
CROSS JOIN LATERAL (
    (SELECT x.queue_order, x.enqueued_at, x.execution_id FROM execution_admission_entry x
     WHERE x.state_id = sqlc.arg(state)::bigint AND x.lane = r.lane AND x.queue_order >= r.head
     ORDER BY x.queue_order LIMIT sqlc.arg(first)::bigint)
    UNION ALL
    (SELECT x.queue_order, x.enqueued_at, x.execution_id FROM execution_admission_entry x
     WHERE x.state_id = sqlc.arg(state)::bigint AND x.lane = r.lane AND x.queue_order >= r.head
     ORDER BY x.queue_order DESC LIMIT sqlc.arg(last)::bigint)) q
JOIN execution e ON e.id = ANY (ARRAY[q.execution_id])
LEFT JOIN execution p ON p.id = ANY (ARRAY[e.parent])
LEFT JOIN enforcement n ON n.id = ANY (ARRAY[e.enforcement])
LEFT JOIN identity i ON i.id = ANY (ARRAY[e.executor])
ORDER BY r.lane DESC, q.queue_order;

-- name: ViewWorkerRuns :many
-- The present executions of a worker, the oldest first.
SELECT e.id, e.action_ref, e.status::text AS status, coalesce(e.started_at, e.admitted_at, e.updated) AS since,
       coalesce(concat_ws(' ', a.ref, nullif(s.group_key, '')), '')::text AS queue
FROM (SELECT attune_handed_to(sqlc.arg(worker)::bigint) AS execution) c
CROSS JOIN LATERAL (
    SELECT x.id, x.action_ref, x.status, x.started_at, x.admitted_at, x.updated FROM execution x
    WHERE x.id = ANY (ARRAY[c.execution]) AND x.status IN ('scheduled', 'running', 'canceling') OFFSET 0) e
LEFT JOIN execution_holder h ON h.execution = ANY (ARRAY[e.id])
LEFT JOIN execution_admission_state s ON s.id = h.state_id
LEFT JOIN action a ON a.id = s.action_id
ORDER BY since, e.id
LIMIT sqlc.arg(bound)::bigint;

-- name: ViewPublishedWorkerRuns :many
-- ViewWorkerRuns from the published schema, which indexes the statuses.
SELECT e.id, e.action_ref, e.status::text AS status, coalesce(e.started_at, e.updated) AS since
FROM unnest(ARRAY['scheduled', 'running', 'canceling']::execution_status_enum[]) AS s (status)
CROSS JOIN LATERAL (
    SELECT x.id, x.action_ref, x.status, x.started_at, x.updated FROM execution x
    WHERE x.status = s.status AND x.worker = sqlc.arg(worker)::bigint LIMIT sqlc.arg(bound)::bigint) e
ORDER BY since, e.id LIMIT sqlc.arg(bound)::bigint;

-- name: ViewWorkerChanges :many
-- The latest changes of a worker, the newest first, without changes of its own health report.
SELECT c.at, c.operation, c.changed_fields, coalesce(c.old_values ->> 'status', '')::text AS was,
       coalesce(c.new_values ->> 'status', '')::text AS status,
       coalesce((c.new_values ->> 'cordoned')::bool, false)::bool AS cordoned, coalesce(c.new_values ->> 'cordon_reason', '')::text AS cordon_reason,
       coalesce((c.new_values ->> 'draining')::bool, false)::bool AS draining, coalesce(c.new_values ->> 'host', '')::text AS host
FROM (SELECT h."time" AS at, h.operation, h.changed_fields, h.old_values, h.new_values FROM worker_history h
      WHERE h.entity_id = sqlc.arg(worker)::bigint AND h."time" > now() - make_interval(secs => sqlc.arg(seconds)::float8)
      ORDER BY h."time" DESC LIMIT sqlc.arg(scan)::bigint) c
WHERE c.operation = 'INSERT' OR c.changed_fields && ARRAY['status', 'cordoned', 'draining', 'host']
ORDER BY c.at DESC LIMIT sqlc.arg(bound)::bigint;

-- name: ViewWorkerRestarts :many
-- How often new processes took the names of workers lately, and what they found and abandoned. Every start changes
-- registered_at, and every change is a row of worker_history. Only workers that started lately are looked up.
SELECT w.id, w.name, r.restarts, (SELECT count(*) FROM (
           SELECT e.worker, e.finished_at FROM execution e WHERE e.finished_status = 'abandoned' ORDER BY e.id DESC LIMIT 1000) lost
           WHERE lost.worker = w.id AND lost.finished_at > now() - make_interval(secs => sqlc.arg(seconds)::float8))::bigint AS abandoned
FROM worker w CROSS JOIN LATERAL (
    SELECT count(*)::bigint AS restarts FROM (
        SELECT h.operation, h.old_values -> 'capabilities' ->> 'registered_at' AS before, h.new_values -> 'capabilities' ->> 'registered_at' AS after
        FROM worker_history h WHERE h.entity_id = w.id AND h."time" > now() - make_interval(secs => sqlc.arg(seconds)::float8)
        ORDER BY h."time" DESC LIMIT 1000) c
    WHERE c.operation = 'UPDATE' AND c.after IS DISTINCT FROM c.before AND c.after IS NOT NULL) r
WHERE w.worker_role::text <> 'sensor' AND r.restarts > 0
  AND CASE WHEN jsonb_typeof(w.capabilities -> 'registered_at') = 'number'
           THEN (w.capabilities ->> 'registered_at')::float8 > extract(epoch FROM now()) - sqlc.arg(seconds)::float8 ELSE false END
ORDER BY w.id;

-- name: ViewWorkerFacts :many
SELECT w.id, w.created, w.status::text AS status, coalesce((to_jsonb(w) ->> 'heartbeat_seen')::timestamptz, w.last_heartbeat) AS last_heartbeat,
       (to_regclass('worker_history') IS NOT NULL)::bool AS recorded
FROM worker w WHERE w.id = sqlc.arg(worker)::bigint;
