-- What redriving dead letters reads and writes on an installation without our
-- tables: only columns that every Attune installation has.

-- name: RedriveRows :many
-- The executions that letters are about, as they are, with what decides about a
-- repetition. TTL is the word of the handler that ended a row for a dead letter.
SELECT e.id, e.status::text AS status, e.action_ref, e.action, e.worker, e.parent, e.enforcement, e.retry_count,
       coalesce(e.max_retries, a.max_retries) AS max_retries,
       coalesce(e.retry_reason, '')::text AS retry_reason, e.created, e.updated, (a.id IS NULL)::bool AS action_gone,
       coalesce(p.status::text, '')::text AS parent_status, coalesce(w.name, '')::text AS worker_name,
       coalesce(e.status = 'failed' AND pg_column_size(e.result) < 8000
                AND concat_ws(' ', e.result ->> 'error', e.result ->> 'message') ILIKE '%TTL expired%', false)::bool AS expired,
       coalesce(CASE WHEN pg_column_size(e.result) < 8000
            THEN left(coalesce(e.result ->> 'message', e.result ->> 'error', e.result ->> 'reason'), 200) END, '')::text AS reason
FROM execution e
LEFT JOIN action a ON a.id = e.action
LEFT JOIN execution p ON p.id = e.parent
LEFT JOIN worker w ON w.id = e.worker
WHERE e.id = ANY (sqlc.arg(ids)::bigint[]);

-- name: RedriveHandled :many
-- The newest executions that a handler of dead letters has failed, of the newest
-- that were requested: the primary key bounds what is looked at.
SELECT n.id
FROM (SELECT e.id, e.status, e.result FROM execution e ORDER BY e.id DESC LIMIT sqlc.arg(scan)::bigint) n
WHERE n.status = 'failed' AND pg_column_size(n.result) < 8000
  AND concat_ws(' ', n.result ->> 'error', n.result ->> 'message') ILIKE '%TTL expired%'
ORDER BY n.id DESC LIMIT sqlc.arg(page)::bigint;

-- name: RedriveReset :one
-- Puts a row back to where it was requested, if it is still what the plan saw, and
-- returns what a request for it says.
UPDATE execution e
SET status = 'requested', worker = NULL, started_at = NULL, result = NULL, retry_reason = 'manual_retry', updated = clock_timestamp()
WHERE e.id = sqlc.arg(id)::bigint AND e.status = sqlc.arg(status)::text::execution_status_enum AND e.updated = sqlc.arg(updated)::timestamptz
RETURNING e.id, e.action, e.action_ref, e.parent, e.enforcement, e.config;

-- name: RedriveRequest :one
-- What a request says of an execution that is requested already.
SELECT e.id, e.action, e.action_ref, e.parent, e.enforcement, e.config FROM execution e
WHERE e.id = sqlc.arg(id)::bigint AND e.status = 'requested' AND e.retry_reason = 'manual_retry';

-- name: RedriveAudit :exec
INSERT INTO audit_event (category, event_type, outcome, resource_type, resource_id, resource_ref, details)
VALUES ('admin', sqlc.arg(action)::text, 'success', 'execution', sqlc.arg(execution)::bigint, sqlc.arg(action_ref)::text, sqlc.arg(details)::jsonb);

-- name: RedriveShape :one
-- Whether the tables of our engine are here, those that acts are written to, and those
-- that lease items of work to executions.
SELECT (to_regclass('dead_letter') IS NOT NULL)::boolean AS ours, (to_regclass('audit_event') IS NOT NULL)::boolean AS audits,
       (to_regclass('operator_audit') IS NOT NULL)::boolean AS records,
       (to_regclass('work_queue_dispatch') IS NOT NULL AND to_regclass('work_queue_item') IS NOT NULL)::boolean AS leases;

-- name: RedriveLeases :many
-- Of executions that were given items of work, which item is leased to another by now.
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
