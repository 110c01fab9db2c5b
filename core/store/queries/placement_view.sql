-- Requirements of executions.

-- name: ViewPlacement :many
-- The placement of an execution's row, and the execution that it repeats.
SELECT e.id, attune_own_placement(e)::jsonb AS placement, coalesce(r.avoid, '{}')::bigint[] AS avoid,
       coalesce(r.waiting, false)::bool AS waiting, coalesce(r.reason, '') AS reason, coalesce(r.requested_by, '') AS requested_by, r.due
FROM execution e
LEFT JOIN execution_retry r ON r.execution = e.id
WHERE e.id = ANY (sqlc.arg(ids)::bigint[]);
