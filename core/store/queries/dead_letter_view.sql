-- Dead letters, for users. A search reads a bounded number of rows and returns how far it came.
-- Open ones are found by their partial index, and the dead letters of one execution by theirs.
-- Nothing locks, and no list opens a body.

-- name: ViewDeadLetterIDs :one
-- A page of ids, the newest first, and the number of rows read for it.
WITH scanned AS MATERIALIZED (
    (SELECT d.id, d.created, d.decision, d.reason, d.action_ref, d.worker, d.message_type, d.execution
     FROM dead_letter d
     WHERE sqlc.arg(only_open)::bool AND sqlc.arg(execution)::bigint = 0 AND d.decision IS NULL AND d.id < sqlc.arg(before)::bigint
     ORDER BY d.id DESC LIMIT sqlc.arg(scan)::bigint)
    UNION ALL
    (SELECT d.id, d.created, d.decision, d.reason, d.action_ref, d.worker, d.message_type, d.execution
     FROM dead_letter d
     WHERE sqlc.arg(execution)::bigint <> 0 AND d.execution = sqlc.arg(execution)::bigint AND d.id < sqlc.arg(before)::bigint
     ORDER BY d.id DESC LIMIT sqlc.arg(scan)::bigint)
    UNION ALL
    (SELECT d.id, d.created, d.decision, d.reason, d.action_ref, d.worker, d.message_type, d.execution
     FROM dead_letter d
     WHERE NOT sqlc.arg(only_open)::bool AND sqlc.arg(execution)::bigint = 0 AND d.id < sqlc.arg(before)::bigint
     ORDER BY d.id DESC LIMIT sqlc.arg(scan)::bigint)
), hit AS (
    SELECT s.id FROM scanned s
    WHERE (NOT sqlc.arg(only_open)::bool OR s.decision IS NULL)
      AND (NOT sqlc.arg(only_decided)::bool OR s.decision IS NOT NULL)
      AND (cardinality(sqlc.arg(decisions)::text[]) = 0 OR coalesce(s.decision, '') = ANY (sqlc.arg(decisions)::text[]))
      AND (sqlc.arg(reason)::text = '' OR s.reason = sqlc.arg(reason)::text)
      AND (sqlc.arg(pattern)::text = '' OR s.action_ref ILIKE sqlc.arg(pattern)::text)
      AND (sqlc.arg(worker)::bigint = 0 OR s.worker = sqlc.arg(worker)::bigint)
      AND (sqlc.arg(message_type)::text = '' OR s.message_type = sqlc.arg(message_type)::text)
      AND (sqlc.arg(newer_seconds)::float8 <= 0 OR s.created >= now() - make_interval(secs => sqlc.arg(newer_seconds)::float8))
      AND (sqlc.arg(older_seconds)::float8 <= 0 OR s.created < now() - make_interval(secs => sqlc.arg(older_seconds)::float8))
    ORDER BY s.id DESC LIMIT sqlc.arg(page)::bigint
)
SELECT coalesce((SELECT array_agg(h.id ORDER BY h.id DESC) FROM hit h), '{}')::bigint[] AS ids,
       count(*)::bigint AS looked_at, coalesce(min(s.id), 0)::bigint AS last,
       coalesce(min(s.created) < now() - make_interval(secs => sqlc.arg(newer_seconds)::float8), false)::bool AS past
FROM scanned s;

-- name: ViewDeadLetters :many
-- The rows of a page, the newest first, with their present execution and the inputs of the verdict.
-- One step finds the newest retry. A message carries its deaths from one row to the next, since decided rows are
-- pruned; those of a dispatch are the requeued ones of earlier attempts.
SELECT d.id, d.created AS at, d.died, coalesce(d.message_id, '')::text AS message_id, coalesce(nullif(d.message_type, ''), '-')::text AS type,
       coalesce(d.exchange, '')::text AS exchange, coalesce(d.routing_key, '')::text AS routing_key, coalesce(d.queue, '')::text AS queue,
       coalesce(nullif(d.reason, ''), '-')::text AS reason,
       (coalesce(left(d.detail, 300), '') || coalesce(' (' || (d.evidence->'alike'->>'count') || ' alike)', ''))::text AS detail,
       coalesce(d.action_ref, '')::text AS action_ref, d.execution, d.attempt, d.worker AS worker_id, coalesce((SELECT w.name FROM worker w WHERE w.id = d.worker), '')::text AS worker_name,
       coalesce(d.execution_status::text, '')::text AS status_then, coalesce(e.status::text, '')::text AS status_now,
       coalesce(d.decision, 'waiting')::text AS decision, d.decided_at, coalesce(d.decided_by, '')::text AS decided_by,
       coalesce(octet_length(d.body), 0)::bigint AS size, coalesce(d.evidence->'body'->>'cut' = 'true', false)::bool AS cut,
       (e.id IS NOT NULL)::bool AS exists_now, coalesce(e.attempt, 0)::int AS attempt_now, (e.id IS NOT NULL AND a.id IS NULL)::bool AS action_gone,
       e.parent, coalesce(p.status::text, '')::text AS parent_status, coalesce(e.retry_count, 0)::int AS tries, e.max_retries AS max_tries,
       coalesce(d.correlation_id, '')::text AS correlation_id, coalesce(d.evidence->'taken'->>'queue', '')::text AS taken_from,
       ARRAY(SELECT jsonb_array_elements_text(CASE WHEN jsonb_typeof(d.evidence->'message'->'not_kept') = 'array'
             THEN d.evidence->'message'->'not_kept' ELSE '[]' END))::text[] AS not_kept,
       coalesce(d.evidence->'message' ? 'amqp', false)::bool AS has_properties,
       coalesce((SELECT x.id FROM execution x
                 WHERE x.original_execution = coalesce(e.original_execution, e.id) AND (x.retry_count, x.id) > (e.retry_count, e.id)
                 ORDER BY x.retry_count DESC, x.id DESC LIMIT 1),
                (SELECT r.execution FROM execution_retry r WHERE r.failed = e.id LIMIT 1), 0)::bigint AS repeated_by,
       (CASE WHEN d.reason = 'taken' THEN 0 WHEN d.x_death->0->>'count' ~ '^[1-9][0-9]{0,5}$' THEN (d.x_death->0->>'count')::int ELSE 1 END
        + CASE WHEN d.headers->>'x-attune-deaths' ~ '^[0-9]{1,6}$' THEN (d.headers->>'x-attune-deaths')::int
               WHEN d.headers ? 'x-attune-requeued-from' THEN 1 ELSE 0 END
        + (SELECT count(*) FROM jsonb_array_elements(CASE WHEN jsonb_typeof(d.evidence->'decisions') = 'array' THEN d.evidence->'decisions' ELSE '[]' END) past
           WHERE past->>'decision' = 'reopened' AND past->>'before' IN ('requeued', 'sent'))
        + (SELECT count(*) FROM dead_letter o
           WHERE d.routing_key LIKE 'execution.dispatch.worker.%' AND o.routing_key LIKE 'execution.dispatch.worker.%' AND o.decision = 'requeued' AND o.id < d.id
             AND o.execution = ANY (array_append(ARRAY(SELECT x.id FROM execution x WHERE x.original_execution = e.original_execution AND x.id <> e.id), e.original_execution))))::bigint AS deaths
FROM dead_letter d
LEFT JOIN execution e ON e.id = ANY (ARRAY[d.execution])
LEFT JOIN action a ON a.id = e.action
LEFT JOIN execution p ON p.id = e.parent
WHERE d.id = ANY (sqlc.arg(ids)::bigint[])
ORDER BY d.id DESC;

-- name: ViewDeadLetterRest :many
-- Fields of a single dead letter, or of an export: documents, and the body.
SELECT d.id, coalesce(d.fingerprint, '')::text AS fingerprint, coalesce(d.detail, '')::text AS detail, d.updated,
       coalesce(d.x_death, 'null')::jsonb AS x_death, coalesce(d.headers, 'null')::jsonb AS headers, coalesce(d.evidence, 'null')::jsonb AS evidence,
       coalesce(d.body, '')::bytea AS body
FROM dead_letter d
WHERE d.id = ANY (sqlc.arg(ids)::bigint[])
ORDER BY d.id DESC;

-- name: ViewDeadLetterExecution :one
-- The inputs of the decision about a requeue: the execution, and what depends on it.
SELECT e.id, e.status::text AS status, e.action_ref, e.attempt, e.worker, e.updated, e.finished_at,
       (a.id IS NULL)::bool AS action_gone, coalesce(p.status::text, '')::text AS parent_status, e.parent,
       coalesce(CASE WHEN attune_terminal(e.status) AND e.status <> 'completed' AND pg_column_size(e.result) < 8000
             THEN left(coalesce(e.result ->> 'message', e.result ->> 'error', e.result ->> 'reason'), 300) END, '')::text AS reason
FROM execution e
LEFT JOIN action a ON a.id = e.action
LEFT JOIN execution p ON p.id = e.parent
WHERE e.id = sqlc.arg(id)::bigint;

-- name: ViewDeadLetterNumbers :one
-- Depth, age and rate, each counted up to a bound.
SELECT (SELECT count(*) FROM (SELECT 1 FROM dead_letter o WHERE o.decision IS NULL LIMIT sqlc.arg(bound)::bigint) a)::bigint AS waiting,
       coalesce((SELECT o.created FROM dead_letter o WHERE o.decision IS NULL ORDER BY o.id LIMIT 1), 'epoch')::timestamptz AS oldest,
       (SELECT count(*) FROM (SELECT 1 FROM dead_letter o WHERE o.created > now() - make_interval(secs => sqlc.arg(pace_seconds)::float8)
                              LIMIT sqlc.arg(bound)::bigint) b)::bigint AS lately,
       coalesce((SELECT avg(extract(epoch FROM k.created - k.died)) FROM (
            SELECT o.created, o.died FROM dead_letter o ORDER BY o.id DESC LIMIT 200) k
            WHERE k.died IS NOT NULL AND k.created >= k.died), -1)::float8 AS latency_seconds;

-- name: ViewDeadLetterGroups :many
-- The dead letters of a window in groups; the caller chooses the group columns.
SELECT (CASE sqlc.arg(by)::text
            WHEN 'reason' THEN coalesce(nullif(r.reason, ''), '-')
            WHEN 'action' THEN coalesce(nullif(r.action_ref, ''), '-')
            WHEN 'worker' THEN coalesce(r.worker::text, '-')
            WHEN 'cause' THEN 'dead_letter'
            ELSE to_char(date_trunc(sqlc.arg(unit)::text, r.created AT TIME ZONE 'UTC'), 'YYYY-MM-DD"T"HH24:MI:SS"Z"') END)::text AS name,
       coalesce(r.decision, 'waiting')::text AS decision, count(*)::bigint AS n, max(r.created)::timestamptz AS newest
FROM (SELECT d.reason, d.action_ref, d.worker, d.decision, d.created FROM dead_letter d
      WHERE d.created >= now() - make_interval(secs => sqlc.arg(seconds)::float8)
      ORDER BY d.created DESC LIMIT sqlc.arg(bound)::bigint) r
GROUP BY 1, 2 ORDER BY n DESC, 1, 2 LIMIT sqlc.arg(top)::bigint;

-- name: ViewLostGroups :many
-- ViewDeadLetterGroups for lost work, from whatever source.
SELECT (CASE sqlc.arg(by)::text
            WHEN 'action' THEN r.action_ref
            WHEN 'worker' THEN coalesce(r.worker::text, '-')
            WHEN 'cause' THEN r.cause
            WHEN 'reason' THEN r.cause
            ELSE to_char(date_trunc(sqlc.arg(unit)::text, r.at AT TIME ZONE 'UTC'), 'YYYY-MM-DD"T"HH24:MI:SS"Z"') END)::text AS name,
       r.outcome, count(*)::bigint AS n, max(r.at)::timestamptz AS newest, coalesce(avg(r.age_seconds), -1)::float8 AS age_seconds
FROM (SELECT l.cause, l.outcome, l.action_ref, l.worker, l.at, l.age_seconds FROM lost_work l
      WHERE l.at >= now() - make_interval(secs => sqlc.arg(seconds)::float8)
      ORDER BY l.at DESC LIMIT sqlc.arg(bound)::bigint) r
GROUP BY 1, 2 ORDER BY n DESC, 1, 2 LIMIT sqlc.arg(top)::bigint;

-- name: ViewDeadLetterTotals :one
SELECT (SELECT count(*) FROM (SELECT 1 FROM dead_letter d WHERE d.created >= now() - make_interval(secs => sqlc.arg(seconds)::float8)
                              LIMIT sqlc.arg(bound)::bigint) a)::bigint AS dead_letters,
       (SELECT count(*) FROM (SELECT 1 FROM lost_work l WHERE l.at >= now() - make_interval(secs => sqlc.arg(seconds)::float8)
                              LIMIT sqlc.arg(bound)::bigint) b)::bigint AS lost;

-- name: ViewWorkerNames :many
SELECT w.id, w.name FROM worker w WHERE w.id = ANY (sqlc.arg(ids)::bigint[]);

-- name: PlanDeadLetterDiscard :many
-- The matching open dead letters, the oldest first. Later ones are not part of the plan.
SELECT d.id, d.created, coalesce(nullif(d.reason, ''), '-')::text AS reason, coalesce(nullif(d.message_type, ''), '-')::text AS message_type
FROM dead_letter d
WHERE d.decision IS NULL
  AND (sqlc.arg(execution)::bigint = 0 OR d.execution = sqlc.arg(execution)::bigint)
  AND (sqlc.arg(reason)::text = '' OR d.reason = sqlc.arg(reason)::text)
  AND (sqlc.arg(pattern)::text = '' OR d.action_ref ILIKE sqlc.arg(pattern)::text)
  AND (sqlc.arg(worker)::bigint = 0 OR d.worker = sqlc.arg(worker)::bigint)
  AND (sqlc.arg(message_type)::text = '' OR d.message_type = sqlc.arg(message_type)::text)
  AND (sqlc.arg(newer_seconds)::float8 <= 0 OR d.created >= now() - make_interval(secs => sqlc.arg(newer_seconds)::float8))
  AND (sqlc.arg(older_seconds)::float8 <= 0 OR d.created < now() - make_interval(secs => sqlc.arg(older_seconds)::float8))
ORDER BY d.id LIMIT sqlc.arg(bound)::bigint;

-- name: PlanDeadLetterDiscardOf :many
-- PlanDeadLetterDiscard for single dead letters.
SELECT d.id, d.created, coalesce(nullif(d.reason, ''), '-')::text AS reason, coalesce(nullif(d.message_type, ''), '-')::text AS message_type
FROM dead_letter d
WHERE d.id = ANY (sqlc.arg(ids)::bigint[]) AND d.decision IS NULL
ORDER BY d.id;

-- name: ViewDeadLetterLeases :many
-- For executions with items of a work queue: the items that are now leased to another execution.
SELECT DISTINCT ON (d.execution) d.execution, i.id AS item, coalesce(i.leased_execution, 0)::bigint AS holder
FROM work_queue_dispatch d
JOIN execution e ON e.id = d.execution
CROSS JOIN LATERAL (
    SELECT (CASE WHEN item.v ->> 'id' ~ '^[0-9]{1,18}$' THEN (item.v ->> 'id')::bigint END) AS id
    FROM jsonb_array_elements(CASE WHEN jsonb_typeof(e.config -> 'queue_items') = 'array' THEN e.config -> 'queue_items' ELSE '[]' END) item (v)
) given
JOIN work_queue_item i ON i.id = given.id AND i.queue = d.queue
WHERE d.execution = ANY (sqlc.arg(ids)::bigint[]) AND i.status = 'leased' AND i.leased_execution IS DISTINCT FROM d.execution
  AND coalesce(i.lease_expires_at > now(), true)
ORDER BY d.execution, i.id;
