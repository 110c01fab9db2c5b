-- Executions. Statements that change a status name the statuses that they change; zero rows mean
-- that another program decided first.
--
-- Lists are paged by key, newest first: pass the last id, or the largest bigint for the first page.
-- Always write e.finished_status: on an adopted schema it is a function of the row.

-- name: GetExecution :one
SELECT e.id, e.action, e.action_ref, e.config, e.env_vars, e.parent, e.enforcement, e.executor, e.permission_set_refs,
       e.artifact_retention_policy, e.artifact_retention_limit, e.worker_selector, e.worker_tolerations, e.worker_affinity,
       e.worker, e.status, e.result, e.started_at, e.workflow_def, e.workflow_task, e.retry_count, e.max_retries,
       e.retry_reason, e.original_execution, e.created, e.updated, e.finished_status, e.attempt,
       e.finished_at, e.priority, e.admitted_at
FROM execution e WHERE e.id = sqlc.arg(id);

-- name: GetExecutions :many
SELECT e.id, e.action, e.action_ref, e.config, e.env_vars, e.parent, e.enforcement, e.executor, e.permission_set_refs,
       e.artifact_retention_policy, e.artifact_retention_limit, e.worker_selector, e.worker_tolerations, e.worker_affinity,
       e.worker, e.status, e.result, e.started_at, e.workflow_def, e.workflow_task, e.retry_count, e.max_retries,
       e.retry_reason, e.original_execution, e.created, e.updated, e.finished_status, e.attempt,
       e.finished_at, e.priority, e.admitted_at
FROM execution e WHERE e.id = ANY (sqlc.arg(ids)::bigint[]) ORDER BY e.id;
