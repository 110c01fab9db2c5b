-- Suspect workers, heartbeats and probes.

-- name: FindSuspects :many
-- Suspect workers with heartbeats. A dead worker receives nothing anyway, and sends heartbeats
-- before it returns.
SELECT id, name, suspect_since::timestamptz AS suspect_since FROM worker
WHERE suspect_since IS NOT NULL AND heartbeat_seen > now() - interval '10 minutes'
ORDER BY id;

-- name: ClearSuspect :execrows
-- Clears only the suspicion that was checked; a newer one stays.
UPDATE worker SET suspect_since = NULL, suspect_reason = NULL
WHERE id = sqlc.arg(id) AND suspect_since = sqlc.arg(since)::timestamptz;

-- name: SuspectWorkers :exec
-- Marks live workers that may receive work. An older suspicion stays, with its reason.
WITH accused AS (
    SELECT w.id, s.reason
    FROM (SELECT unnest(sqlc.arg(ids)::bigint[]) AS id, unnest(sqlc.arg(reasons)::text[]) AS reason) s
    JOIN worker w ON w.id = s.id
    ORDER BY w.id
    FOR NO KEY UPDATE OF w
)
UPDATE worker w SET suspect_since = now(), suspect_reason = a.reason
FROM accused a
WHERE w.id = a.id AND w.suspect_since IS NULL AND NOT w.draining AND w.status <> 'inactive'
  AND w.heartbeat_seen > now() - make_interval(secs => sqlc.arg(stale_after)::float8);

-- name: FindSilentWorkers :many
-- The workers of DeactivateWorkers, without a change.
SELECT w.id, w.name FROM worker w
WHERE (w.status <> 'inactive' OR w.draining)
  AND coalesce(w.heartbeat_seen, '-infinity') < now() - make_interval(secs => sqlc.arg(stale_after)::float8)
ORDER BY w.id LIMIT sqlc.arg(page)::int;

-- name: DeactivateWorkers :many
-- Workers of any role that count as present and have sent no heartbeat for too long, or never. A
-- draining worker with heartbeats marks itself; a silent one drains no more, and nothing else would
-- end its drain. silent is the age of the last heartbeat, negative without one; its time is kept
-- until the worker is back.
WITH stale AS (
    SELECT w.id, w.status, w.draining FROM worker w
    WHERE (w.status <> 'inactive' OR w.draining)
      AND coalesce(w.heartbeat_seen, '-infinity') < now() - make_interval(secs => sqlc.arg(stale_after)::float8)
      AND (sqlc.arg(single)::bigint = 0 OR w.id = sqlc.arg(single)::bigint)
    ORDER BY w.id LIMIT sqlc.arg(page)::int
    FOR NO KEY UPDATE OF w
), marked AS (
    UPDATE worker w SET status = 'inactive', draining = false, deactivated_at = now()
    FROM stale s
    WHERE w.id = ANY (ARRAY[s.id]) AND (w.status <> 'inactive' OR w.draining)
      AND coalesce(w.heartbeat_seen, '-infinity') < now() - make_interval(secs => sqlc.arg(stale_after)::float8)
    RETURNING w.id, w.name, w.worker_role, s.status AS previous, s.draining, w.cordoned, w.heartbeat_seen
), noted AS (
    INSERT INTO worker_probe AS p (worker, verdict, reason, details)
    SELECT m.id, 'dead', CASE WHEN m.heartbeat_seen IS NULL THEN 'never sent a heartbeat' ELSE 'its heartbeat is stale' END,
           jsonb_build_object('silent_since', m.heartbeat_seen)
    FROM marked m
    ON CONFLICT (worker) DO UPDATE SET verdict = excluded.verdict, reason = excluded.reason, details = p.details || excluded.details,
        since = CASE WHEN p.verdict = excluded.verdict THEN p.since ELSE excluded.since END
)
SELECT m.id, m.name, m.worker_role::text AS role, m.previous::text AS previous, m.cordoned, m.draining AS drained,
       coalesce(extract(epoch FROM now() - m.heartbeat_seen), -1)::float8 AS silent, now()::timestamptz AS now
FROM marked m ORDER BY m.id;

-- name: ReactivateWorkers :many
-- Workers that were marked inactive here and send heartbeats again, or have marked themselves
-- active since. A worker that became inactive by itself has no deactivated_at. outage is the time
-- between the last heartbeat before and the newest, negative without one before.
WITH back AS (
    SELECT w.id, w.status, w.deactivated_at FROM worker w
    WHERE w.deactivated_at IS NOT NULL
      AND (w.status <> 'inactive' OR NOT w.draining AND w.heartbeat_seen > w.deactivated_at
           AND w.heartbeat_seen > now() - make_interval(secs => sqlc.arg(stale_after)::float8))
    ORDER BY w.id LIMIT sqlc.arg(page)::int
    FOR NO KEY UPDATE OF w
), marked AS (
    UPDATE worker w SET status = CASE WHEN w.status = 'inactive' THEN 'active' ELSE w.status END, deactivated_at = NULL
    FROM back b
    WHERE w.id = ANY (ARRAY[b.id]) AND w.deactivated_at IS NOT NULL
    RETURNING w.id, w.name, w.worker_role, b.status AS previous, w.heartbeat_seen
), noted AS (
    UPDATE worker_probe p SET details = p.details - 'silent_since'
    FROM marked m WHERE p.worker = ANY (ARRAY[m.id]) AND p.details ? 'silent_since'
    RETURNING p.worker
)
SELECT m.id, m.name, m.worker_role::text AS role, m.previous::text AS previous,
       coalesce((SELECT extract(epoch FROM m.heartbeat_seen - (p.details ->> 'silent_since')::timestamptz)
                 FROM worker_probe p WHERE p.worker = m.id), -1)::float8 AS outage
FROM marked m ORDER BY m.id;

-- name: CountWorkers :one
-- Workers of any role by state, each counted once.
SELECT count(*) FILTER (WHERE c.state = 'active') AS active, count(*) FILTER (WHERE c.state = 'inactive') AS inactive,
       count(*) FILTER (WHERE c.state = 'stale') AS stale, count(*) FILTER (WHERE c.state = 'draining') AS draining,
       count(*) FILTER (WHERE c.state = 'cordoned') AS cordoned, count(*) FILTER (WHERE c.state = 'suspect') AS suspect,
       count(*) FILTER (WHERE c.state = 'unhealthy') AS unhealthy, count(*) FILTER (WHERE c.state = 'degraded') AS degraded,
       coalesce(max(c.age) FILTER (WHERE c.state <> 'inactive'), 0)::float8 AS oldest_heartbeat
FROM (
    SELECT CASE WHEN w.status = 'inactive' AND NOT w.draining THEN 'inactive'
                WHEN coalesce(w.heartbeat_seen, '-infinity') < now() - make_interval(secs => sqlc.arg(stale_after)::float8) THEN 'stale'
                WHEN w.draining THEN 'draining' WHEN w.cordoned THEN 'cordoned' WHEN w.suspect_since IS NOT NULL THEN 'suspect'
                WHEN p.health IN ('unhealthy', 'degraded') THEN p.health ELSE 'active' END AS state,
           extract(epoch FROM now() - w.heartbeat_seen) AS age
    FROM worker w
    LEFT JOIN worker_probe p ON p.worker = w.id AND p.at > now() - make_interval(secs => coalesce((p.details ->> 'valid_seconds')::float8, 90))
) c;

-- name: FindProbed :many
-- A page of action workers to probe, with the findings of their last probe. It skips workers that
-- another replica has just probed, and workers that are known to be dead for an hour.
SELECT w.id, w.name, w.status::text AS status, w.cordoned, w.draining, (w.deactivated_at IS NOT NULL)::bool AS deactivated,
       (w.suspect_since IS NOT NULL)::bool AS suspect, coalesce(w.suspect_reason, '') AS suspect_reason,
       coalesce(w.cordon_reason, '') AS cordon_reason,
       coalesce(extract(epoch FROM now() - w.heartbeat_seen), 'Infinity')::float8 AS heartbeat_age,
       coalesce(extract(epoch FROM w.last_heartbeat - w.heartbeat_seen), 'NaN')::float8 AS skew,
       coalesce(w.capabilities -> 'health', 'null')::jsonb AS health, coalesce(w.capabilities ->> 'health_url', '')::text AS health_url, coalesce(w.host, '') AS host,
       (w.capabilities -> 'health_by_failures' IS NOT DISTINCT FROM 'true')::bool AS by_failures,
       coalesce(p.verdict, '') AS verdict, coalesce(p.failures, 0)::int AS failures, coalesce(p.skew_seconds, 0)::float8 AS old_skew,
       coalesce(p.health, '') AS old_health, coalesce(p.health_reason, '') AS old_health_reason,
       coalesce(p.details ? 'endpoint_error', false)::bool AS endpoint_failed,
       coalesce(p.details ->> 'report', '')::text AS report,
       coalesce(extract(epoch FROM now() - (p.details ->> 'report_since')::timestamptz), 0)::float8 AS unchanged
FROM worker w LEFT JOIN worker_probe p ON p.worker = w.id
WHERE w.worker_role = 'action' AND w.id > sqlc.arg(after)::bigint
  AND (p.at IS NULL OR p.at < now() - make_interval(secs => sqlc.arg(older_than)::float8))
  AND NOT (p.verdict IS NOT DISTINCT FROM 'dead' AND p.replica IS NOT NULL
           AND coalesce(w.heartbeat_seen, w.created) < now() - interval '1 hour')
ORDER BY w.id LIMIT sqlc.arg(page)::int;

-- name: FindUnstarted :many
-- For each worker, since when its oldest unstarted execution was dispatched, among the oldest
-- unfinished ones.
SELECT c.worker::bigint AS worker, min(c.updated)::timestamptz AS oldest FROM (
    SELECT e.worker, e.status, e.updated FROM execution e
    WHERE e.finished_status IS NULL ORDER BY e.id LIMIT sqlc.arg(bound)::int) c
WHERE c.status = 'scheduled' AND c.worker IS NOT NULL
GROUP BY c.worker;

-- name: FindEndings :many
-- How the executions of workers without reports have ended lately, among the latest ends. idle is the
-- time since the last end.
WITH recent AS (
    SELECT e.worker, e.status, e.action_ref, e.started_at, e.finished_at FROM execution e
    WHERE e.finished_at IS NOT NULL ORDER BY e.finished_at DESC LIMIT sqlc.arg(bound)::int
), ended AS (
    SELECT r.worker, r.status <> 'completed' AS failed, r.action_ref, r.finished_at,
           max(r.finished_at) FILTER (WHERE r.status = 'completed') OVER (PARTITION BY r.worker) AS fine
    FROM recent r
    WHERE r.worker = ANY (sqlc.arg(workers)::bigint[]) AND r.started_at IS NOT NULL AND r.status IN ('completed', 'failed', 'timeout')
      AND r.finished_at > now() - make_interval(secs => sqlc.arg(lately)::float8)
)
SELECT d.worker::bigint AS worker, count(*)::int AS total, count(*) FILTER (WHERE d.failed)::int AS failed,
       count(*) FILTER (WHERE d.failed AND d.finished_at > coalesce(d.fine, '-infinity'))::int AS in_a_row,
       count(DISTINCT d.action_ref) FILTER (WHERE d.failed)::int AS actions,
       coalesce(min(d.action_ref) FILTER (WHERE d.failed), '')::text AS action,
       extract(epoch FROM now() - max(d.finished_at))::float8 AS idle
FROM ended d GROUP BY d.worker;

-- name: RecordProbes :exec
-- Stores one row of findings for each worker, without workers that were deleted meanwhile. The
-- report is kept with the time since when it has been the same.
WITH seen AS (
    SELECT unnest(sqlc.arg(workers)::bigint[]) AS worker, unnest(sqlc.arg(verdicts)::text[]) AS verdict,
           unnest(sqlc.arg(reasons)::text[]) AS reason, unnest(sqlc.arg(healths)::text[]) AS health,
           unnest(sqlc.arg(health_reasons)::text[]) AS health_reason, unnest(sqlc.arg(details)::jsonb[]) AS details,
           unnest(sqlc.arg(failures)::int[]) AS failures
), there AS (
    -- Locked before the rows that belong to them, as in the deletion of a worker.
    SELECT w.id FROM worker w WHERE w.id = ANY (sqlc.arg(workers)::bigint[]) ORDER BY w.id FOR KEY SHARE OF w
)
INSERT INTO worker_probe AS p (worker, verdict, reason, health, health_reason, rtt_ms, queue_exists, consumers, ready, oldest,
                               failures, skew_seconds, replica, details)
SELECT s.worker, s.verdict, s.reason, s.health, s.health_reason, (s.details ->> 'rtt_ms')::float8, (s.details ->> 'queue_exists')::bool,
       (s.details ->> 'consumers')::int, (s.details ->> 'ready')::int, (s.details ->> 'oldest')::timestamptz,
       s.failures, (s.details ->> 'skew_seconds')::float8, sqlc.arg(replica)::uuid,
       (s.details - '{rtt_ms,queue_exists,consumers,ready,oldest,skew_seconds}'::text[]) || jsonb_build_object('report_since', now())
FROM seen s JOIN there t ON t.id = s.worker
ORDER BY s.worker
ON CONFLICT (worker) DO UPDATE SET
    at = now(), verdict = excluded.verdict, reason = excluded.reason, health = excluded.health, health_reason = excluded.health_reason,
    since = CASE WHEN p.verdict = excluded.verdict THEN p.since ELSE now() END,
    rtt_ms = excluded.rtt_ms, queue_exists = excluded.queue_exists, consumers = excluded.consumers, ready = excluded.ready,
    oldest = excluded.oldest, failures = excluded.failures, skew_seconds = excluded.skew_seconds, replica = excluded.replica,
    details = excluded.details
        || CASE WHEN p.details ? 'silent_since' THEN jsonb_build_object('silent_since', p.details -> 'silent_since') ELSE '{}' END
        || CASE WHEN p.details ->> 'report' IS NOT DISTINCT FROM excluded.details ->> 'report' AND p.details ? 'report_since'
                THEN jsonb_build_object('report_since', p.details -> 'report_since') ELSE '{}' END;

-- name: ReportHealth :execrows
-- Stores a worker's report about its health. Every change is a row of worker_history, so it is
-- written rarely.
UPDATE worker SET capabilities = jsonb_set(CASE WHEN jsonb_typeof(capabilities) = 'object' THEN capabilities ELSE '{}' END,
                                           '{health}', sqlc.arg(health)::jsonb)
WHERE id = sqlc.arg(id) AND incarnation = sqlc.arg(incarnation)::uuid;
