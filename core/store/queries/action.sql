-- name: GetAction :one
SELECT * FROM action WHERE id = sqlc.arg(id);

-- name: GetActionByRef :one
SELECT * FROM action WHERE ref = sqlc.arg(ref);

-- name: GetActions :many
SELECT * FROM action WHERE id = ANY (sqlc.arg(ids)::bigint[]) ORDER BY id;

-- name: ListActions :many
SELECT id, ref, pack_ref, label, runtime, workflow_def, timeout_seconds, max_retries
FROM action
WHERE id > sqlc.arg(after)
ORDER BY id
LIMIT sqlc.arg(page);

-- name: UpsertAction :one
INSERT INTO action (ref, pack, pack_ref, label, description, entrypoint, runtime, param_schema, out_schema,
                    parameter_delivery, parameter_format, output_format, timeout_seconds, max_retries,
                    runtime_version_constraint, workflow_def, scheduled_timeout_seconds,
                    required_worker_runtimes, worker_selector, worker_tolerations, worker_affinity,
                    default_execution_permission_set_refs)
VALUES (sqlc.arg(ref), sqlc.arg(pack), sqlc.arg(pack_ref), sqlc.arg(label), sqlc.narg(description),
        sqlc.arg(entrypoint), sqlc.narg(runtime), sqlc.narg(param_schema), sqlc.narg(out_schema),
        sqlc.arg(parameter_delivery), sqlc.arg(parameter_format), sqlc.arg(output_format),
        sqlc.narg(timeout_seconds), sqlc.narg(max_retries), sqlc.narg(runtime_version_constraint),
        sqlc.narg(workflow_def), sqlc.narg(scheduled_timeout_seconds),
        coalesce(sqlc.narg(required_worker_runtimes)::jsonb, '{}'), coalesce(sqlc.narg(worker_selector)::jsonb, '{}'),
        coalesce(sqlc.narg(worker_tolerations)::jsonb, '[]'), coalesce(sqlc.narg(worker_affinity)::jsonb, '{}'),
        coalesce(sqlc.arg(default_execution_permission_set_refs)::text[], '{}'))
ON CONFLICT (ref) DO UPDATE SET
    pack = excluded.pack, pack_ref = excluded.pack_ref, label = excluded.label, description = excluded.description,
    entrypoint = excluded.entrypoint, runtime = excluded.runtime, param_schema = excluded.param_schema,
    out_schema = excluded.out_schema, parameter_delivery = excluded.parameter_delivery,
    parameter_format = excluded.parameter_format, output_format = excluded.output_format,
    timeout_seconds = excluded.timeout_seconds, max_retries = excluded.max_retries,
    runtime_version_constraint = excluded.runtime_version_constraint, workflow_def = excluded.workflow_def,
    scheduled_timeout_seconds = excluded.scheduled_timeout_seconds,
    required_worker_runtimes = excluded.required_worker_runtimes, worker_selector = excluded.worker_selector,
    worker_tolerations = excluded.worker_tolerations, worker_affinity = excluded.worker_affinity,
    default_execution_permission_set_refs = excluded.default_execution_permission_set_refs
RETURNING id;
