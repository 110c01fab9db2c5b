-- What the operators of this installation have done, and whether the schema is
-- one on which they may. Each reads a bounded part of its table.

-- name: AuditShape :one
-- recorded is true where acts are written down, current where the schema is at
-- least the one that the acts of this version are made for. may_write is false where
-- this login lacks what every act needs: to write down that it is done, and to change
-- an execution; what is not there lacks nothing.
SELECT now()::timestamptz AS at,
       (to_regclass('operator_audit') IS NOT NULL)::boolean AS recorded,
       (to_regclass('operator_audit') IS NOT NULL AND to_regclass('outbox') IS NOT NULL
        AND to_regclass('engine_replica') IS NOT NULL AND to_regclass('attune_schema_origin') IS NOT NULL
        AND to_regclass('worker_probe') IS NOT NULL AND to_regclass('lost_work') IS NOT NULL)::boolean AS current,
       (coalesce(has_table_privilege(to_regclass('operator_audit'), 'INSERT'), true)
        AND coalesce(has_table_privilege(to_regclass('execution'), 'UPDATE'), true))::boolean AS may_write,
       current_user::text AS login, pg_is_in_recovery()::boolean AS standby;

-- name: AuditOrigin :one
-- adopted is true where the schema belongs to an installation that was there
-- before; replicas counts those of the engine that have not fallen silent.
SELECT EXISTS (SELECT FROM attune_schema_origin o WHERE o.origin = 'adopted')::boolean AS adopted,
       (SELECT count(*) FROM engine_replica r
        WHERE r.last_seen > now() - make_interval(secs => sqlc.arg(alive_seconds)::float8))::bigint AS replicas;

-- name: AuditRecent :many
-- A page of acts from the newest down, below an id. A document longer than the bound is
-- left out.
SELECT a.id, a.at, a.actor, a.source, a.action, a.target_type, a.target_id, a.target, coalesce(a.reason, '')::text AS reason,
       a.outcome, coalesce(a.error, '')::text AS error,
       CASE WHEN pg_column_size(a.request) <= sqlc.arg(longest)::integer THEN a.request::text ELSE '' END AS request
FROM operator_audit a WHERE a.id < sqlc.arg(before)::bigint
ORDER BY a.id DESC LIMIT sqlc.arg(bound)::bigint;

-- name: AuditAbout :many
-- The newest acts on some executions and dead letters, by the index of targets.
SELECT a.id, a.at, a.actor, a.source, a.action, a.target_type, a.target_id, a.target, coalesce(a.reason, '')::text AS reason,
       a.outcome, coalesce(a.error, '')::text AS error, ''::text AS request
FROM operator_audit a
WHERE a.target_type = 'execution' AND a.target_id = ANY (sqlc.arg(executions)::bigint[])
   OR a.target_type = 'dead_letter' AND a.target_id = ANY (sqlc.arg(letters)::bigint[])
ORDER BY a.id DESC LIMIT sqlc.arg(bound)::bigint;
