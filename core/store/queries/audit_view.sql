-- Operators' actions on this installation, and whether the schema allows them. Each query reads a
-- bounded part of its table.

-- name: AuditShape :one
-- recorded is true if the schema records actions; current if it is at least the schema that the
-- actions of this version need. may_write is false if this login lacks a privilege that every
-- action needs: to insert the record, and to change an execution. Missing tables lack no privilege.
SELECT now()::timestamptz AS at,
       (to_regclass('operator_audit') IS NOT NULL)::boolean AS recorded,
       (to_regclass('operator_audit') IS NOT NULL AND to_regclass('outbox') IS NOT NULL
        AND to_regclass('engine_replica') IS NOT NULL AND to_regclass('attune_schema_origin') IS NOT NULL
        AND to_regclass('worker_probe') IS NOT NULL AND to_regclass('lost_work') IS NOT NULL)::boolean AS current,
       (coalesce(has_table_privilege(to_regclass('operator_audit'), 'INSERT'), true)
        AND coalesce(has_any_column_privilege(to_regclass('execution'), 'UPDATE'), true))::boolean AS may_write,
       current_user::text AS login, pg_is_in_recovery()::boolean AS standby;

-- name: AuditOrigin :one
-- adopted is true if the schema belongs to an existing installation. replicas counts replicas of
-- the engine that are not silent.
SELECT EXISTS (SELECT FROM attune_schema_origin o WHERE o.origin = 'adopted')::boolean AS adopted,
       (SELECT count(*) FROM engine_replica r
        WHERE r.last_seen > now() - make_interval(secs => sqlc.arg(alive_seconds)::float8))::bigint AS replicas;

-- name: AuditRecent :many
-- A page of actions below an id, the newest first. A document above the bound is omitted; the page ends with the
-- document that fills its room.
SELECT p.id, p.at, p.actor, p.source, p.action, p.target_type, p.target_id, p.target, p.reason, p.outcome, p.error, p.request,
       p.request_bytes
FROM (
    SELECT d.*, coalesce(sum(octet_length(d.request::text)) OVER (ORDER BY d.id DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before
    FROM (
        SELECT a.id, a.at, a.actor, a.source, a.action, a.target_type, a.target_id, a.target, coalesce(a.reason, '')::text AS reason,
               a.outcome, coalesce(a.error, '')::text AS error,
               CASE WHEN pg_column_size(a.request) <= sqlc.arg(longest)::integer THEN a.request END AS request,
               (CASE WHEN pg_column_size(a.request) > sqlc.arg(longest)::integer THEN octet_length(a.request::text) ELSE 0 END)::bigint AS request_bytes
        FROM operator_audit a WHERE a.id < sqlc.arg(below)::bigint
        ORDER BY a.id DESC LIMIT sqlc.arg(bound)::bigint
    ) d
) p
WHERE p.before < sqlc.arg(room)::bigint
ORDER BY p.id DESC;

-- name: AuditAbout :many
-- The newest actions on some executions and dead letters, by the index of targets.
SELECT a.id, a.at, a.actor, a.source, a.action, a.target_type, a.target_id, a.target, coalesce(a.reason, '')::text AS reason,
       a.outcome, coalesce(a.error, '')::text AS error
FROM operator_audit a
WHERE a.target_type = 'execution' AND a.target_id = ANY (sqlc.arg(executions)::bigint[])
   OR a.target_type = 'dead_letter' AND a.target_id = ANY (sqlc.arg(dead_letters)::bigint[])
ORDER BY a.id DESC LIMIT sqlc.arg(bound)::bigint;
