-- Workers and the requirements of executions.

-- name: ViewFleet :many
-- Action workers as placement sees them, and the operator who cordoned them.
SELECT w.id, w.name, coalesce(w.host, '') AS host, w.status, w.cordoned, w.draining, w.capabilities,
       (w.suspect_since IS NOT NULL)::bool AS suspect, coalesce(w.suspect_reason, '') AS suspect_reason,
       coalesce(extract(epoch FROM now() - coalesce((to_jsonb(w) ->> 'heartbeat_seen')::timestamptz, w.last_heartbeat)), 'Infinity')::float8 AS heartbeat_age,
       coalesce((SELECT l.assigned FROM worker_load l WHERE l.worker = w.id), -1)::int AS assigned,
       coalesce(w.cordon_reason, '') AS cordon_reason, coalesce(i.login, '') AS cordoned_by,
       coalesce(least(coalesce((to_jsonb(w) ->> 'heartbeat_seen')::timestamptz, w.last_heartbeat), CASE WHEN w.cordoned THEN w.cordoned_at END), 'epoch')::timestamptz AS seen
FROM worker w
LEFT JOIN identity i ON i.id = w.cordoned_by
WHERE w.worker_role = 'action'
ORDER BY w.id;

-- name: ViewPlacement :many
-- The placement of an execution's row, and the execution that it repeats.
SELECT e.id, e.worker_selector, e.worker_tolerations, e.worker_affinity, coalesce(r.avoid, '{}')::bigint[] AS avoid,
       coalesce(r.waiting, false)::bool AS waiting, coalesce(r.reason, '') AS reason, coalesce(r.requested_by, '') AS requested_by, r.due
FROM execution e
LEFT JOIN execution_retry r ON r.execution = e.id
WHERE e.id = ANY (sqlc.arg(ids)::bigint[]);
