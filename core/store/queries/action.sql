-- name: ListActions :many
SELECT id, ref, pack_ref, label, runtime, workflow_def, timeout_seconds, max_retries
FROM action
WHERE id > sqlc.arg(after)
ORDER BY id
LIMIT sqlc.arg(page);
