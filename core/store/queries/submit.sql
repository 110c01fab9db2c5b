-- Requests from people and programs.

-- name: ActionsByRef :many
SELECT a.id, a.ref, a.param_schema FROM action a WHERE a.ref = ANY (sqlc.arg(refs)::text[]) ORDER BY a.id;

-- name: ActionRefs :many
-- For a hint when a ref is unknown; read only then.
SELECT a.ref FROM action a ORDER BY a.ref LIMIT sqlc.arg(page)::int;

-- name: InsertRequestedExecutions :many
-- The rows get ascending ids in the order of the arrays. An empty config is
-- stored as NULL, and so is the normal priority, 0.
INSERT INTO execution (action, action_ref, config, priority, executor, permission_set_refs)
SELECT r.action, r.ref, nullif(r.config, '')::jsonb, nullif(r.priority, 0), sqlc.narg(executor)::bigint,
       coalesce((SELECT a.default_execution_permission_set_refs FROM action a WHERE a.id = r.action), '{}')
FROM (
    SELECT unnest(sqlc.arg(actions)::bigint[]) AS action, unnest(sqlc.arg(refs)::text[]) AS ref,
           unnest(sqlc.arg(configs)::text[]) AS config, unnest(sqlc.arg(priorities)::smallint[]) AS priority
) r
RETURNING id, created;

-- name: OutboxRowExists :one
-- False as soon as every message of the row has been confirmed by the broker.
SELECT EXISTS (SELECT 1 FROM outbox o WHERE o.id = sqlc.arg(id));
