-- Locks of a session: a connection holds them, and they end with it.

-- name: TrySessionLock :one
SELECT pg_try_advisory_lock(hashtextextended(current_schema() || '.attune.' || sqlc.arg(name)::text, 0)) AS won;

-- name: SessionUnlock :one
SELECT pg_advisory_unlock(hashtextextended(current_schema() || '.attune.' || sqlc.arg(name)::text, 0)) AS freed;

-- name: SessionLockHolder :one
-- The holder of a lock, by the application name of its session.
SELECT coalesce(a.application_name, '')::text AS holder, coalesce(a.client_addr::text, '')::text AS address,
       coalesce(a.backend_start, now())::timestamptz AS since
FROM pg_catalog.pg_locks l LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
  AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database())
  AND ((l.classid::bigint << 32) | l.objid::bigint) = hashtextextended(current_schema() || '.attune.' || sqlc.arg(name)::text, 0)
LIMIT 1;

-- name: NameSession :one
SELECT set_config('application_name', sqlc.arg(name)::text, false)::text AS name;

-- name: SessionAlive :one
SELECT 1::int AS alive;
