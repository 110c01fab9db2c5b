-- Traces: the origins of executions, and the rows whose spans are to be sent.

-- name: ReadTraceSeed :one
SELECT s.seed FROM trace_seed s WHERE s.one;

-- name: AddTracePending :exec
-- Names rows that have ended.
INSERT INTO trace_pending (kind, subject)
SELECT sqlc.arg(kind)::text, unnest(sqlc.arg(subjects)::bigint[]);

-- name: AddTraceOrigins :exec
INSERT INTO trace_origin (kind, subject, traceparent)
SELECT sqlc.arg(kind)::text, unnest(sqlc.arg(subjects)::bigint[]), sqlc.arg(traceparent)::text
ON CONFLICT DO NOTHING;

-- name: ReadTraceOrigins :many
-- The event, the enforcement without an event, or the first execution from which an execution follows:
-- through the execution that it repeats, its workflow, and its enforcement. An id without a row (an
-- execution that its transaction has yet to insert) has none; enforcements name theirs directly.
WITH RECURSIVE up AS (
    SELECT x.id AS origin_of, x.id AS at, 0 AS depth FROM (SELECT unnest(sqlc.arg(executions)::bigint[]) AS id) x
    UNION ALL
    SELECT u.origin_of, e.next, u.depth + 1
    FROM up u
    CROSS JOIN LATERAL (
        SELECT coalesce(x.original_execution, x.parent) AS next FROM execution x
        WHERE x.id = u.at AND x.enforcement IS NULL OFFSET 0
    ) e
    WHERE e.next IS NOT NULL AND u.depth < 64
), first AS (
    SELECT DISTINCT ON (u.origin_of) u.origin_of, u.at FROM up u ORDER BY u.origin_of, u.depth DESC
), found AS (
    SELECT 'execution' AS kind, t.origin_of AS subject, t.at AS execution,
           (SELECT x.enforcement FROM execution x WHERE x.id = t.at) AS enforcement
    FROM first t
    UNION ALL
    SELECT 'enforcement', y.id, NULL::bigint, y.id FROM (SELECT DISTINCT unnest(sqlc.arg(enforcements)::bigint[]) AS id) y
), named AS (
    SELECT f.kind, f.subject,
           CASE WHEN n.event IS NOT NULL THEN 'event' WHEN f.enforcement IS NOT NULL THEN 'enforcement' ELSE 'execution' END AS origin_kind,
           coalesce(n.event, f.enforcement, f.execution) AS origin
    FROM found f
    LEFT JOIN LATERAL (SELECT z.event FROM enforcement z WHERE z.id = f.enforcement OFFSET 0) n ON true
)
SELECT m.kind::text AS kind, m.subject::bigint AS subject, m.origin_kind::text AS origin_kind, m.origin::bigint AS origin,
       coalesce(o.traceparent, '')::text AS traceparent
FROM named m
LEFT JOIN LATERAL (
    SELECT p.traceparent FROM trace_origin p WHERE p.kind = m.origin_kind AND p.subject = m.origin OFFSET 0
) o ON true;

-- name: ClaimTracePending :many
-- Claims the oldest rows that no replica is sending. A claim lapses, so rows of a killed replica are
-- claimed again.
UPDATE trace_pending p SET claimed = now()
WHERE p.id = ANY (ARRAY(
    SELECT x.id FROM trace_pending x
    WHERE x.claimed IS NULL OR x.claimed < now() - make_interval(secs => sqlc.arg(lease)::float8)
    ORDER BY x.id LIMIT sqlc.arg(page)::int FOR UPDATE SKIP LOCKED))
RETURNING p.id, p.kind, p.subject, p.at;

-- name: ReleaseTracePending :exec
UPDATE trace_pending p SET claimed = NULL WHERE p.id = ANY (sqlc.arg(ids)::bigint[]);

-- name: DeleteTracePending :exec
DELETE FROM trace_pending p WHERE p.id = ANY (sqlc.arg(ids)::bigint[]);

-- name: PruneTracePending :execrows
-- Deletes what no collector took in time: the oldest rows, up to the first that is young enough.
DELETE FROM trace_pending p
WHERE p.id = ANY (ARRAY(
    SELECT t.id FROM (SELECT x.id, x.at < now() - make_interval(secs => sqlc.arg(older)::float8) AS old
                      FROM trace_pending x ORDER BY x.id LIMIT sqlc.arg(page)::int) t
    WHERE t.old));

-- name: PruneTraceOrigins :execrows
DELETE FROM trace_origin o
WHERE (o.kind, o.subject) IN (
    SELECT x.kind, x.subject FROM trace_origin x
    WHERE x.created < now() - make_interval(secs => sqlc.arg(older)::float8) LIMIT sqlc.arg(page)::int);

-- name: ReadTraceExecutions :many
-- The life of executions. A retry is due some time after its request.
SELECT e.id, e.action_ref, e.status, coalesce(e.worker, 0)::bigint AS worker, coalesce(w.name, '')::text AS worker_name,
       e.attempt, e.retry_count, coalesce(e.retry_reason, '')::text AS retry_reason,
       coalesce(e.parent, 0)::bigint AS parent, coalesce(e.original_execution, 0)::bigint AS original,
       coalesce(e.enforcement, 0)::bigint AS enforcement,
       coalesce(CASE WHEN jsonb_typeof(e.workflow_task) = 'object' THEN e.workflow_task ->> 'task_name' END, '')::text AS task,
       CASE WHEN e.status <> 'completed'
            THEN left(coalesce(e.result ->> 'error', e.result ->> 'message', ''), 500) ELSE '' END::text AS error,
       e.created, e.admitted_at, e.started_at, e.finished_at, t.due
FROM execution e
LEFT JOIN worker w ON w.id = e.worker
LEFT JOIN execution_retry t ON t.execution = e.id
WHERE e.id = ANY (sqlc.arg(ids)::bigint[])
ORDER BY e.id;

-- name: ReadTraceEnforcements :many
SELECT f.id, f.rule_ref, f.status::text AS status, coalesce(f.event, 0)::bigint AS event, f.created,
       coalesce(f.error, '')::text AS error, coalesce(f.resolved_at, f.created)::timestamptz AS ended
FROM enforcement f
WHERE f.id = ANY (sqlc.arg(ids)::bigint[])
ORDER BY f.id;

-- name: ReadTraceEvents :many
-- The execution that emitted an event is only linked: rules that fire each other do not grow one trace.
SELECT v.id, v.trigger_ref, coalesce(v.source_ref, '')::text AS source_ref, v.created, m.rules, m.matched, m.at,
       cardinality(m.failures)::int AS failures, coalesce(o.execution, 0)::bigint AS execution,
       coalesce(p.traceparent, '')::text AS traceparent
FROM event v
JOIN event_matched m ON m.event = v.id
LEFT JOIN event_origin o ON o.event = v.id
LEFT JOIN trace_origin p ON p.kind = 'event' AND p.subject = v.id
WHERE v.id = ANY (sqlc.arg(ids)::bigint[])
  AND v.created > now() - make_interval(secs => sqlc.arg(within)::float8)
ORDER BY v.id;
