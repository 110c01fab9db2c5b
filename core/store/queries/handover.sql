-- name: ReadRoundExecutions :many
-- The rows a round is about, read before any lock to learn which queues it
-- needs. Whatever it decides is checked again under the locks.
SELECT e.id, e.status, e.action, e.action_ref, e.config, e.worker, e.admission_state_id,
       coalesce((SELECT q.state_id FROM execution_admission_entry q WHERE q.execution_id = e.id), 0)::bigint AS waits
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
-- What handing over an action's executions depends on, with the newest policy
-- of the action.
SELECT a.id, a.ref, a.workflow_def, a.param_schema,
       r.name AS runtime_name, r.aliases AS runtime_aliases,
       coalesce(p.id, 0)::bigint AS policy_id, coalesce(p.ref, '')::text AS policy_ref,
       coalesce(p.threshold, 0)::int AS threshold, coalesce(p.method::text, '')::text AS method,
       coalesce(p.parameters, '{}')::text[] AS parameters
FROM action a
LEFT JOIN runtime r ON r.id = a.runtime
LEFT JOIN LATERAL (
    SELECT id, ref, threshold, method, parameters FROM policy
    WHERE policy.action = a.id
    ORDER BY created DESC, id DESC LIMIT 1
) p ON true
WHERE a.id = ANY (sqlc.arg(ids)::bigint[]) OR a.ref = ANY (sqlc.arg(refs)::text[]);
