-- Workers. Every heartbeat and every age is told by the clock of the database,
-- so that skewed clocks of hosts decide nothing.

-- name: RegisterWorker :one
-- By name: a known name keeps its id and its cordon, and becomes active again.
INSERT INTO worker (name, worker_type, worker_role, host, port, capabilities, meta, status, last_heartbeat,
                    draining, incarnation)
VALUES (sqlc.arg(name), sqlc.arg(worker_type), 'action', sqlc.narg(host), sqlc.narg(port),
        sqlc.narg(capabilities), sqlc.narg(meta), 'active', now(), false, sqlc.narg(incarnation))
ON CONFLICT (name) DO UPDATE SET
    worker_type = excluded.worker_type, host = excluded.host, port = excluded.port,
    capabilities = excluded.capabilities, meta = excluded.meta, status = 'active',
    last_heartbeat = now(), draining = false, incarnation = excluded.incarnation
RETURNING id, cordoned;

-- name: HeartbeatWorker :execrows
-- Zero rows mean that the worker is gone or that a newer incarnation has its name.
UPDATE worker SET last_heartbeat = now(), status = 'active'
WHERE id = sqlc.arg(id) AND incarnation IS NOT DISTINCT FROM sqlc.narg(incarnation)::uuid;

-- name: DrainWorker :execrows
UPDATE worker SET draining = sqlc.arg(draining) WHERE id = sqlc.arg(id) AND draining <> sqlc.arg(draining);

-- name: SetWorkerInactive :execrows
-- Only the incarnation that leaves may say so.
UPDATE worker SET status = 'inactive'
WHERE id = sqlc.arg(id) AND incarnation IS NOT DISTINCT FROM sqlc.narg(incarnation)::uuid AND status <> 'inactive';

-- name: CordonWorker :execrows
UPDATE worker SET cordoned = true, cordon_reason = sqlc.narg(reason), cordoned_by = sqlc.narg(cordoned_by), cordoned_at = now()
WHERE id = sqlc.arg(id) AND NOT cordoned;

-- name: UncordonWorker :execrows
UPDATE worker SET cordoned = false, cordon_reason = NULL, cordoned_by = NULL, cordoned_at = NULL
WHERE id = sqlc.arg(id) AND cordoned;

-- name: GetWorker :one
SELECT * FROM worker WHERE id = sqlc.arg(id);

-- name: ListWorkers :many
-- What placement and people need; heartbeat_age is in seconds, a billion when
-- the worker never sent one.
SELECT w.id, w.name, w.worker_type, w.worker_role, w.host, w.port, w.status, w.capabilities, w.meta, w.last_heartbeat,
       w.cordoned, w.cordon_reason, w.cordoned_at, w.draining, w.incarnation, w.created, w.updated,
       coalesce(extract(epoch FROM now() - w.last_heartbeat), 1e9)::float8 AS heartbeat_age,
       coalesce(l.assigned, 0)::int AS assigned
FROM worker w
LEFT JOIN worker_load l ON l.worker = w.id
WHERE w.worker_role = 'action' AND w.id > sqlc.arg(after)
ORDER BY w.id
LIMIT sqlc.arg(page);
