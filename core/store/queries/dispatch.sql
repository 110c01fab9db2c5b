-- name: ReadBatchExecutions :many
-- The rows of a batch. Every batch reads them under its locks. A batch whose messages do not name
-- the queues also reads them before.
SELECT e.id, e.status, e.action, e.action_ref, e.config, e.worker, coalesce(h.state_id, 0)::bigint AS held_state, h.worker AS held_worker,
       e.attempt, e.started_at, e.finished_at, e.updated,
       coalesce(e.priority, 0)::smallint AS priority, (e.retry_count > 0 AND e.original_execution IS NOT NULL)::bool AS retry,
       e.created, coalesce(CASE WHEN e.retry_count > 0 THEN
           (SELECT o.created FROM execution o WHERE o.id = ANY (ARRAY[e.original_execution])) END, e.created)::timestamptz AS requested,
       attune_own_placement(e)::jsonb AS placement, e.retry_count,
       -- The workflow of which it is a task; existing engines write a JSON null for none.
       coalesce(CASE WHEN jsonb_typeof(e.workflow_task) = 'object' THEN (e.workflow_task ->> 'workflow_execution')::bigint END, 0)::bigint AS workflow,
       coalesce(q.state_id, 0)::bigint AS waits, coalesce(q.lane, 0)::smallint AS lane, coalesce(q.enqueued_at, e.created)::timestamptz AS since,
       ARRAY(SELECT t.scope_id FROM execution_slot t WHERE t.execution = ANY (ARRAY[e.id]))::bigint[] AS scopes,
       -- Whether the result of a completed one opens an inquiry; no inquiry is megabytes long.
       CASE WHEN e.status = 'completed' AND pg_column_size(e.result) < 1048576
            THEN attune_inquiry_of(e.result) IS NOT NULL ELSE false END::bool AS asks,
       -- The inputs of a retry, for one that did not succeed.
       CASE WHEN e.status IN ('failed', 'timeout', 'abandoned')
            THEN left(concat_ws(' ', e.result->>'error', e.result->>'message'), 2000) ELSE '' END::text AS error,
       CASE WHEN e.status IN ('failed', 'timeout', 'abandoned')
            THEN coalesce(e.result->>'failed_by', e.result->>'abandoned_by', '') ELSE '' END::text AS ended_by,
       CASE WHEN e.status IN ('failed', 'timeout', 'abandoned')
            THEN EXISTS (SELECT FROM execution_cancel c WHERE c.execution = ANY (ARRAY[e.id])) ELSE false END::bool AS cancel_asked,
       CASE WHEN e.status IN ('failed', 'timeout', 'abandoned')
            THEN EXISTS (SELECT FROM execution_retry t WHERE t.failed = ANY (ARRAY[e.id])) ELSE false END::bool AS repeated,
       CASE WHEN e.status IN ('failed', 'timeout', 'abandoned')
            THEN coalesce(e.max_retries, (SELECT a.max_retries FROM action a WHERE a.id = e.action), 0) ELSE 0 END::int AS allowed_retries,
       -- What the cancel request of one says that must not start.
       (CASE WHEN e.status = 'requested'
             THEN (SELECT attune_cancel_words(c.execution) FROM execution_cancel c WHERE c.execution = ANY (ARRAY[e.id])) END)::jsonb AS cancel,
       (e.max_retries IS NULL)::bool AS action_allows, EXISTS (SELECT FROM attune_schema_origin o WHERE o.origin = 'adopted')::bool AS adopted,
       -- When a retry is due, and the workers that it avoids.
       coalesce(CASE WHEN e.retry_count > 0 THEN
           (SELECT CASE WHEN t.waiting THEN t.due END FROM execution_retry t WHERE t.execution = ANY (ARRAY[e.id])) END, 'epoch')::timestamptz AS due,
       coalesce(CASE WHEN e.retry_count > 0 THEN
           (SELECT t.avoid FROM execution_retry t WHERE t.execution = ANY (ARRAY[e.id])) END, '{}')::bigint[] AS avoid
FROM execution e
LEFT JOIN LATERAL (
    SELECT w.state_id, w.lane, w.enqueued_at FROM execution_admission_entry w WHERE w.execution_id = ANY (ARRAY[e.id]) OFFSET 0
) q ON true
LEFT JOIN LATERAL (
    SELECT o.state_id, o.worker FROM execution_holder o WHERE o.execution = ANY (ARRAY[e.id]) OFFSET 0
) h ON true
WHERE e.id = ANY (sqlc.arg(ids)::bigint[]);

-- name: DecideExecutions :exec
-- Ends waiting executions by the engine's own decision.
WITH changed AS (
    UPDATE execution e
    SET status = r.status::execution_status_enum, result = r.result
    FROM (
        SELECT unnest(sqlc.arg(ids)::bigint[]) AS id, unnest(sqlc.arg(statuses)::text[]) AS status,
               unnest(sqlc.arg(results)::jsonb[]) AS result
    ) r
    WHERE e.id = ANY (ARRAY[r.id]) AND e.status = 'requested'
    RETURNING e.id
)
SELECT attune_expect((SELECT count(*) FROM changed), cardinality(sqlc.arg(ids)::bigint[])::bigint, 'decided executions');

-- name: ReadFleet :many
-- Action workers with the age of their newest heartbeat, measured when the database received it;
-- infinite without one. assigned is -1 for a worker without a load row. Health from probes counts
-- as long as the prober declared it valid. seen is when the worker could last receive work as far as is
-- known. renewed is when it registered again: its capabilities then replaced the earlier ones. The columns are the
-- fields of placement.Row.
SELECT w.id, w.name, coalesce(w.host, '') AS host, w.status::text AS status, w.cordoned, w.draining, w.capabilities,
       (w.suspect_since IS NOT NULL)::bool AS suspect, coalesce(w.suspect_reason, '') AS suspect_reason,
       coalesce(extract(epoch FROM now() - w.heartbeat_seen), 'Infinity')::float8 AS heartbeat_age,
       coalesce((SELECT l.assigned FROM worker_load l WHERE l.worker = w.id), -1)::int AS assigned,
       coalesce(p.health, '')::text AS health, coalesce(p.health_reason, '')::text AS health_reason,
       (w.deactivated_at IS NOT NULL)::bool AS deactivated, EXISTS (SELECT FROM attune_schema_origin o WHERE o.origin = 'adopted')::bool AS adopted,
       coalesce(CASE WHEN w.cordoned THEN least(w.heartbeat_seen, w.cordoned_at) ELSE w.heartbeat_seen END, 'epoch')::timestamptz AS seen,
       coalesce(CASE WHEN jsonb_typeof(w.capabilities -> 'registered_at') = 'number' AND (w.capabilities ->> 'registered_at')::float8 > extract(epoch FROM w.created) + 1
                     THEN to_timestamp((w.capabilities ->> 'registered_at')::float8) END, 'epoch')::timestamptz AS renewed,
       coalesce(w.cordon_reason, '') AS cordon_reason, coalesce((SELECT i.login FROM identity i WHERE i.id = w.cordoned_by), '')::text AS cordoned_by
FROM worker w
LEFT JOIN worker_probe p ON p.worker = w.id AND p.at > now() - make_interval(secs => coalesce((p.details ->> 'valid_seconds')::float8, 90))
WHERE w.worker_role = 'action'
ORDER BY w.id;

-- name: EnsureWorkerLoads :exec
INSERT INTO worker_load (worker)
SELECT id FROM worker WHERE id = ANY (sqlc.arg(workers)::bigint[])
ORDER BY id
ON CONFLICT (worker) DO NOTHING;

-- name: ReadActionRules :many
-- The inputs of dispatching an action's executions.
SELECT a.id, a.ref, a.pack, a.workflow_def, a.param_schema, r.name AS runtime_name, r.aliases AS runtime_aliases,
       coalesce(a.max_retries, 0)::int AS max_retries, attune_placement(a)::jsonb AS placement
FROM action a
LEFT JOIN runtime r ON r.id = a.runtime
WHERE a.id = ANY (sqlc.arg(ids)::bigint[]) OR a.ref = ANY (sqlc.arg(refs)::text[]);

-- name: ReadPolicies :many
-- The policies of these actions, of their packs, and of everything.
SELECT p.id, p.ref, p.action, p.pack, p.kind, p.threshold, p.method::text AS method, p.parameters, p.created,
       coalesce(p.window_seconds, 0)::int AS window_seconds, coalesce(p.burst, 0)::int AS burst,
       coalesce(p.max_queue_length, 0)::int AS max_queue_length,
       coalesce(p.queue_timeout_seconds, 0)::int AS queue_timeout_seconds, coalesce(p.retry_place, '')::text AS retry_place,
       coalesce(p.adaptive_min, 0)::int AS adaptive_min, coalesce(p.adaptive_latency_ms, 0)::int AS adaptive_latency_ms
FROM policy p
WHERE p.action = ANY (sqlc.arg(actions)::bigint[])
   OR (p.action IS NULL AND (p.pack IS NULL OR p.pack = ANY (sqlc.arg(packs)::bigint[])));

-- name: MoveExecutions :exec
-- Moves scheduled executions with their slots to other workers, in place. The attempt grows, so
-- that the old worker refuses a late dispatch. Zero rows mean that the execution was started, or
-- ended, meanwhile. Conditions besides the id are written so that no index of an adopted schema can
-- serve them instead.
WITH changed AS (
    UPDATE execution e
    SET worker = r.worker, attempt = r.attempt
    FROM (
        SELECT unnest(sqlc.arg(ids)::bigint[]) AS id, unnest(sqlc.arg(before)::bigint[]) AS before,
               unnest(sqlc.arg(workers)::bigint[]) AS worker, unnest(sqlc.arg(attempts)::int[]) AS attempt
    ) r
    WHERE e.id = ANY (ARRAY[r.id]) AND (e.status = 'scheduled') IS TRUE AND coalesce(e.worker, 0) = r.before AND e.attempt = r.attempt - 1
    RETURNING e.id, e.worker, e.attempt
), moved AS (
    UPDATE execution_holder h SET worker = c.worker, attempt = c.attempt
    FROM changed c WHERE h.execution = ANY (ARRAY[c.id])
)
SELECT attune_expect((SELECT count(*) FROM changed), cardinality(sqlc.arg(ids)::bigint[])::bigint, 'moved executions');

-- name: EndScheduled :exec
-- Ends executions that were dispatched and never started, if their worker and attempt are
-- unchanged. Worker 0 is a deleted one.
WITH changed AS (
    UPDATE execution e
    SET status = 'failed', result = r.result
    FROM (
        SELECT unnest(sqlc.arg(ids)::bigint[]) AS id, unnest(sqlc.arg(workers)::bigint[]) AS worker,
               unnest(sqlc.arg(attempts)::int[]) AS attempt, unnest(sqlc.arg(results)::jsonb[]) AS result
    ) r
    WHERE e.id = ANY (ARRAY[r.id]) AND (e.status = 'scheduled') IS TRUE AND coalesce(e.worker, 0) = r.worker AND e.attempt = r.attempt
    RETURNING e.id
)
SELECT attune_expect((SELECT count(*) FROM changed), cardinality(sqlc.arg(ids)::bigint[])::bigint, 'ended dispatches');

-- name: NoteUndelivered :exec
-- Notes dispatches that the broker returned: no queue accepted them. Their worker is suspect until
-- its queue is seen again.
WITH noted AS (
    INSERT INTO undelivered_dispatch (execution, attempt, worker, reason)
    SELECT unnest(sqlc.arg(executions)::bigint[]), unnest(sqlc.arg(attempts)::int[]), unnest(sqlc.arg(workers)::bigint[]), sqlc.arg(reason)::text
)
UPDATE worker SET suspect_since = now(), suspect_reason = sqlc.arg(reason)::text
WHERE id = ANY (ARRAY(SELECT DISTINCT w FROM unnest(sqlc.arg(workers)::bigint[]) u (w) ORDER BY w));

-- name: FindUndelivered :many
SELECT id, execution, attempt, worker, reason FROM undelivered_dispatch
WHERE id > sqlc.arg(after)::bigint ORDER BY id LIMIT sqlc.arg(page)::int;

-- name: DeleteUndelivered :exec
DELETE FROM undelivered_dispatch WHERE id = ANY (sqlc.arg(ids)::bigint[]);

-- name: RecordLostWork :exec
-- Records decisions about dispatches that a worker did not start.
INSERT INTO lost_work (cause, outcome, execution, attempt, action_ref, worker, age_seconds)
SELECT r.cause, r.outcome, r.execution, r.attempt, r.ref, nullif(r.worker, 0), extract(epoch FROM now() - r.handed)
FROM (SELECT unnest(sqlc.arg(causes)::text[]) AS cause, unnest(sqlc.arg(outcomes)::text[]) AS outcome,
             unnest(sqlc.arg(executions)::bigint[]) AS execution, unnest(sqlc.arg(attempts)::int[]) AS attempt,
             unnest(sqlc.arg(refs)::text[]) AS ref, unnest(sqlc.arg(workers)::bigint[]) AS worker,
             unnest(sqlc.arg(handed)::timestamptz[]) AS handed) r;
