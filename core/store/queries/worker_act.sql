-- Operators' actions on workers, and work that workers return. A transaction that needs a worker's
-- load locks it before the worker's row, as batches do; these actions lock the row alone.

-- name: FindActWorker :many
-- Finds a worker by id or, unless only ids count, by name, with the inputs of an action. A worker
-- whose name is a number precedes the worker with that id.
SELECT w.id, w.name, w.status::text AS status, w.cordoned, coalesce(w.cordon_reason, '') AS cordon_reason,
       coalesce(w.cordoned_at, 'epoch')::timestamptz AS cordoned_at, w.draining,
       coalesce(extract(epoch FROM now() - w.heartbeat_seen), 'Infinity')::float8 AS heartbeat_age,
       coalesce(w.capabilities -> 'attempt_fence' = 'true', false)::bool AS fences, now()::timestamptz AS at
FROM worker w
WHERE ((w.name = sqlc.arg(which)::text AND NOT sqlc.arg(only_id)::bool) OR w.id::text = sqlc.arg(which)::text) AND w.worker_role <> 'sensor'
ORDER BY (w.name = sqlc.arg(which)::text) DESC
LIMIT 1;

-- name: LockActWorker :many
SELECT w.id FROM worker w WHERE w.id = sqlc.arg(id) FOR NO KEY UPDATE;

-- name: SayWorker :execrows
-- Stores an operator's override of a worker whose state is as the plan said. For a cordoned worker
-- only the reason may change.
UPDATE worker
SET cordoned = sqlc.arg(cordoned)::bool, draining = sqlc.arg(draining)::bool,
    cordon_reason = CASE WHEN sqlc.arg(cordoned)::bool THEN sqlc.arg(reason)::text END,
    cordoned_at = CASE WHEN NOT sqlc.arg(cordoned)::bool THEN NULL WHEN cordoned THEN cordoned_at ELSE now() END,
    cordoned_by = CASE WHEN sqlc.arg(cordoned)::bool AND cordoned THEN cordoned_by END
WHERE id = sqlc.arg(id) AND cordoned = sqlc.arg(was_cordoned)::bool AND draining = sqlc.arg(was_draining)::bool;

-- name: RetireWorker :execrows
-- Marks a worker without heartbeats inactive, as the heartbeat monitor does at its next tick.
UPDATE worker SET status = 'inactive', draining = false, deactivated_at = coalesce(deactivated_at, now())
WHERE id = sqlc.arg(id) AND (status <> 'inactive' OR draining)
  AND coalesce(heartbeat_seen, '-infinity') < now() - make_interval(secs => sqlc.arg(stale_after)::float8);

-- name: CountWorkerWork :one
-- The executions at a worker: started, and dispatched but not started.
SELECT count(*) FILTER (WHERE e.status IN ('running', 'canceling')) AS running,
       count(*) FILTER (WHERE e.status = 'scheduled') AS unstarted
FROM execution e
WHERE e.id = ANY (ARRAY(SELECT attune_handed_to(sqlc.arg(worker)::bigint))) AND e.worker = sqlc.arg(worker)::bigint;

-- name: GroupUnstarted :many
-- The unstarted executions of a worker, by their requirements.
SELECT coalesce(e.action, 0)::bigint AS action, attune_own_placement(e)::jsonb AS placement, count(*) AS executions
FROM execution e
WHERE e.id = ANY (ARRAY(SELECT attune_handed_to(sqlc.arg(worker)::bigint))) AND e.worker = sqlc.arg(worker)::bigint AND e.status = 'scheduled'
GROUP BY 1, 2
ORDER BY executions DESC, action
LIMIT sqlc.arg(bound)::bigint;

-- name: FindLeavingWorkers :many
-- Workers with executions that fence attempts and receive nothing more, because they drain or have
-- left, or now, because they cannot start anything.
SELECT w.id
FROM worker w
JOIN worker_load l ON l.worker = w.id
WHERE w.worker_role = 'action' AND (w.draining OR w.status = 'error' OR (w.status = 'inactive' AND w.deactivated_at IS NULL))
  AND w.capabilities -> 'attempt_fence' = 'true' AND l.assigned > 0
ORDER BY w.id;

-- name: FindUnstartedAt :many
-- The unstarted executions of these workers, in order of id.
SELECT h.execution
FROM execution_holder h
CROSS JOIN LATERAL (SELECT x.status FROM execution x WHERE x.id = ANY (ARRAY[h.execution]) OFFSET 0) e
WHERE h.worker = ANY (sqlc.arg(workers)::bigint[]) AND e.status = 'scheduled'
  AND h.execution > sqlc.arg(after)::bigint
ORDER BY h.execution
LIMIT sqlc.arg(page)::int;
