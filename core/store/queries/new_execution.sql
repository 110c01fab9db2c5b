-- Executions that the engine creates, in the transaction that admits them.

-- name: NewIDs :many
-- Reserves ids of a table. Unused ids are lost, like those of rolled-back transactions.
SELECT nextval(pg_get_serial_sequence(sqlc.arg(of)::text, 'id'))::bigint AS id FROM generate_series(1, sqlc.arg(n)::int);

-- name: InsertNewExecutions :exec
-- Takes one object with its columns for each execution. A child inherits empty fields from its
-- parent: requester, event, environment, lane.
WITH created AS (
    INSERT INTO execution (id, action, action_ref, config, status, result, parent, enforcement, executor, env_vars, priority,
                           permission_set_refs, worker_selector, worker_tolerations, worker_affinity, workflow_task, max_retries, started_at)
    SELECT (b.v ->> 'id')::bigint, (b.v ->> 'action')::bigint, b.v ->> 'action_ref', b.v -> 'config',
           coalesce(b.v ->> 'status', 'requested')::execution_status_enum, b.v -> 'result', (b.v ->> 'parent')::bigint,
           coalesce((b.v ->> 'enforcement')::bigint, p.enforcement), coalesce((b.v ->> 'executor')::bigint, p.executor), p.env_vars, p.priority,
           CASE WHEN jsonb_typeof(b.v -> 'permission_sets') = 'array'
                THEN ARRAY(SELECT s.name FROM jsonb_array_elements_text(b.v -> 'permission_sets') s (name))
                ELSE coalesce((SELECT a.default_execution_permission_set_refs FROM action a WHERE a.id = (b.v ->> 'action')::bigint), '{}') END,
           b.v -> 'worker_selector', b.v -> 'worker_tolerations', b.v -> 'worker_affinity', b.v -> 'workflow_task', (b.v ->> 'max_retries')::int,
           CASE WHEN b.v ->> 'status' = 'running' THEN now() END
    FROM (SELECT jsonb_array_elements(sqlc.arg(new_executions)::jsonb) AS v) b
    LEFT JOIN LATERAL (SELECT x.enforcement, x.executor, x.env_vars, x.priority FROM execution x WHERE x.id = (b.v ->> 'parent')::bigint OFFSET 0) p ON true
    ORDER BY 1
    RETURNING id
)
SELECT attune_expect((SELECT count(*) FROM created), jsonb_array_length(sqlc.arg(new_executions)::jsonb)::bigint, 'new executions');
