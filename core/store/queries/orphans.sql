-- Work at a worker that is gone: its heartbeat is older than it may be, by the
-- database's clock, whatever its status says. A worker that drains still sends
-- heartbeats; a parent or a question without a worker is nobody's orphan.

-- name: FindOrphans :one
-- One window of live rows at workers that are gone: stranded were handed over and
-- not started, ids run.
SELECT coalesce(max(w.id), 0)::bigint AS last, count(*)::int AS scanned,
       coalesce(array_agg(w.id ORDER BY w.id) FILTER (WHERE w.gone AND w.status = 'scheduled'), '{}')::bigint[] AS stranded,
       coalesce(array_agg(w.id ORDER BY w.id) FILTER (WHERE w.gone AND w.status IN ('running', 'canceling')), '{}')::bigint[] AS ids
FROM (
    SELECT e.id, e.status,
           CASE WHEN e.status = 'scheduled' AND e.worker IS NULL THEN e.updated < now() - interval '30 seconds' -- its worker's row was deleted
                WHEN e.status IN ('scheduled', 'running', 'canceling') AND e.worker IS NOT NULL THEN
               coalesce((SELECT k.heartbeat_seen FROM worker k WHERE k.id = e.worker), '-infinity')
                   < now() - make_interval(secs => sqlc.arg(stale_after)::float8) ELSE false END AS gone
    FROM execution e
    WHERE e.finished_status IS NULL AND e.id > sqlc.arg(after)::bigint
    ORDER BY e.id
    LIMIT sqlc.arg(window_size)::int
) w;

-- name: AbandonOrphanedRuns :many
UPDATE execution e
SET status = 'abandoned', result = jsonb_build_object(
        'error', 'The worker stopped sending heartbeats while it ran the execution',
        'abandoned_by', 'execution_timeout_monitor', 'original_status', e.status, 'reconciled_at', now(),
        'worker', (SELECT jsonb_build_object(
             'id', k.id, 'name', k.name, 'role', k.worker_role, 'status', k.status, 'last_heartbeat', k.last_heartbeat,
             'heartbeat_age_seconds', round(extract(epoch FROM now() - k.heartbeat_seen)), 'cordoned', k.cordoned)
         FROM worker k WHERE k.id = e.worker))
WHERE e.id = ANY (ARRAY(
        SELECT x.id FROM execution x WHERE x.id = ANY (sqlc.arg(ids)::bigint[]) ORDER BY x.id FOR UPDATE SKIP LOCKED))
  AND e.status IN ('running', 'canceling') AND e.worker IS NOT NULL
  AND coalesce((SELECT k.heartbeat_seen FROM worker k WHERE k.id = e.worker), '-infinity')
      < now() - make_interval(secs => sqlc.arg(stale_after)::float8)
RETURNING e.id, e.action, e.action_ref, e.status, e.result, coalesce(e.finished_at, now())::timestamptz AS finished_at;
