-- Operators' actions on workflows. An engine notices them within seconds.

-- name: LockActWorkflow :one
SELECT w.id, w.execution, e.action_ref, e.status::text AS status, w.paused, coalesce(w.pause_reason, '')::text AS pause_reason, w.open,
       coalesce(w.current_tasks, '{}')::text[] AS current_tasks, coalesce(attune_paused_above(w.execution), 0)::bigint AS paused_above
FROM workflow_execution w
JOIN execution e ON e.id = w.execution
WHERE w.execution = sqlc.arg(execution)::bigint
FOR NO KEY UPDATE OF w;

-- name: PauseWorkflow :execrows
-- Changes what was read under the lock.
UPDATE workflow_execution
SET paused = sqlc.arg(paused)::bool, pause_reason = nullif(sqlc.arg(reason)::text, '')
WHERE id = sqlc.arg(id)::bigint AND paused = sqlc.arg(was_paused)::bool AND open;
