-- Requests from people and programs.

-- name: ActionsByRef :many
SELECT a.id, a.ref, a.param_schema FROM action a WHERE a.ref = ANY (sqlc.arg(refs)::text[]) ORDER BY a.id;

-- name: ActionRefs :many
-- For a hint when a ref is unknown; read only then.
SELECT a.ref FROM action a ORDER BY a.ref LIMIT sqlc.arg(page)::int;

-- name: InsertRequestedExecutions :many
-- The rows get ascending ids in the order of the arrays. An empty config is
-- stored as NULL, and so is the normal priority, 0. An option is empty, or an
-- object with what a caller of the HTTP API says of the row.
INSERT INTO execution (action, action_ref, config, priority, executor, parent, permission_set_refs, env_vars,
                       artifact_retention_policy, artifact_retention_limit,
                       worker_selector, worker_tolerations, worker_affinity)
SELECT r.action, r.ref, nullif(r.config, '')::jsonb, nullif(r.priority, 0),
       (SELECT i.id FROM identity i WHERE i.id = (o.v ->> 'executor')::bigint), (o.v ->> 'parent')::bigint,
       CASE WHEN jsonb_typeof(o.v -> 'permission_set_refs') = 'array'
            THEN ARRAY(SELECT s.name FROM jsonb_array_elements_text(o.v -> 'permission_set_refs') s (name))
            ELSE coalesce(a.default_execution_permission_set_refs, '{}') END,
       o.v -> 'env_vars',
       CASE WHEN o.v IS NOT NULL THEN coalesce((o.v ->> 'artifact_retention_policy')::artifact_retention_enum,
                                               a.artifact_retention_policy, 'versions') END,
       CASE WHEN o.v IS NOT NULL THEN coalesce((o.v ->> 'artifact_retention_limit')::int, a.artifact_retention_limit, 5) END,
       o.v -> 'worker_selector', o.v -> 'worker_tolerations', o.v -> 'worker_affinity'
FROM (
    SELECT unnest(sqlc.arg(actions)::bigint[]) AS action, unnest(sqlc.arg(refs)::text[]) AS ref,
           unnest(sqlc.arg(configs)::text[]) AS config, unnest(sqlc.arg(priorities)::smallint[]) AS priority,
           unnest(sqlc.arg(options)::text[]) AS option, generate_subscripts(sqlc.arg(actions)::bigint[], 1) AS place
) r
CROSS JOIN LATERAL (SELECT nullif(r.option, '')::jsonb AS v) o
LEFT JOIN action a ON a.id = r.action
ORDER BY r.place -- a join alone gives the rows in any order
RETURNING id, created;

-- name: OutboxRowExists :one
-- False as soon as every message of the row has been confirmed by the broker.
SELECT EXISTS (SELECT 1 FROM outbox o WHERE o.id = sqlc.arg(id));
