-- name: ReadRoundExecutions :many
-- The rows a round is about, read before any lock to learn which queues it
-- needs. Whatever it decides is checked again under the locks.
SELECT e.id, e.status, e.action, e.action_ref, e.config, e.worker, e.admission_state_id,
       coalesce(e.priority, 0)::smallint AS priority, (e.retry_count > 0 AND e.original_execution IS NOT NULL)::bool AS retry,
       e.created,
       coalesce((SELECT q.state_id FROM execution_admission_entry q WHERE q.execution_id = e.id), 0)::bigint AS waits,
       CASE WHEN e.admission_state_id IS NULL THEN '{}'
            ELSE ARRAY(SELECT t.scope_id FROM execution_slot t WHERE t.execution = ANY (ARRAY[e.id])) END::bigint[] AS scopes
FROM execution e
WHERE e.id = ANY (sqlc.arg(ids)::bigint[]);

-- name: DecideExecutions :exec
-- Ends executions by the engine's own decision while they still wait.
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
-- Action workers with their heartbeat's age by the database's clock. A clock
-- that is ahead gives a negative age, which counts as fresh; no heartbeat at
-- all is infinitely old. assigned is -1 for a worker without a load row.
SELECT w.id, w.name, w.status, w.cordoned, w.draining, w.capabilities,
       coalesce(extract(epoch FROM now() - w.last_heartbeat), 'Infinity')::float8 AS heartbeat_age,
       coalesce((SELECT l.assigned FROM worker_load l WHERE l.worker = w.id), -1)::int AS assigned
FROM worker w
WHERE w.worker_role = 'action'
ORDER BY w.id;

-- name: EnsureWorkerLoads :exec
INSERT INTO worker_load (worker)
SELECT id FROM worker WHERE id = ANY (sqlc.arg(workers)::bigint[])
ORDER BY id
ON CONFLICT (worker) DO NOTHING;

-- name: ReadActionRules :many
-- What handing over an action's executions depends on.
SELECT a.id, a.ref, a.pack, a.workflow_def, a.param_schema, r.name AS runtime_name, r.aliases AS runtime_aliases
FROM action a
LEFT JOIN runtime r ON r.id = a.runtime
WHERE a.id = ANY (sqlc.arg(ids)::bigint[]) OR a.ref = ANY (sqlc.arg(refs)::text[]);

-- name: ReadPolicies :many
-- The policies that apply to these actions, to their packs, and to everything.
SELECT p.id, p.ref, p.action, p.pack, p.kind, p.threshold, p.method::text AS method, p.parameters, p.created,
       coalesce(p.window_seconds, 0)::int AS window_seconds, coalesce(p.burst, 0)::int AS burst,
       coalesce(p.max_queue_length, 0)::int AS max_queue_length,
       coalesce(p.queue_timeout_seconds, 0)::int AS queue_timeout_seconds, coalesce(p.retry_place, '')::text AS retry_place,
       coalesce(p.adaptive_min, 0)::int AS adaptive_min, coalesce(p.adaptive_latency_ms, 0)::int AS adaptive_latency_ms
FROM policy p
WHERE p.action = ANY (sqlc.arg(actions)::bigint[])
   OR (p.action IS NULL AND (p.pack IS NULL OR p.pack = ANY (sqlc.arg(packs)::bigint[])));
