-- Work that its worker does not do, by the database's clock. A worker is lost when its heartbeat is
-- too old. A worker that marked itself inactive, or reports an error and does not fence attempts,
-- is lost leave_grace seconds later, with or without heartbeats: existing workers send no heartbeats
-- while they finish. A draining worker still sends heartbeats. A dispatched execution without a
-- worker had one whose row was deleted. A parent or an inquiry never had a worker and holds no
-- slot. It is an orphan only if its workflow or its inquiry was deleted, for example with the pack.

-- name: FindOrphans :one
-- One window of slot holders, or of live rows without a slot: dispatches of another engine, parents
-- and inquiries. unstarted are unstarted executions of lost workers, ids their running ones; overdue
-- are unstarted executions of live workers; overrun exceed their timeout at workers with recent
-- heartbeats; cancel_ignored were told to stop long ago; headless have no workflow or inquiry left that
-- could end them. next_loss_seconds is the time until the next of these workers is lost without a
-- heartbeat, 0 for none.
SELECT coalesce(max(w.id), 0)::bigint AS last, count(*)::int AS scanned,
       coalesce(array_agg(w.id ORDER BY w.id) FILTER (WHERE w.gone AND w.status = 'scheduled'), '{}')::bigint[] AS unstarted,
       coalesce(array_agg(w.id ORDER BY w.id) FILTER (WHERE w.gone AND w.status IN ('running', 'canceling')), '{}')::bigint[] AS ids,
       coalesce(array_agg(w.id ORDER BY w.id) FILTER (WHERE w.late AND NOT w.gone AND w.status = 'scheduled'), '{}')::bigint[] AS overdue,
       coalesce(array_agg(w.id ORDER BY w.id) FILTER (WHERE w.late AND NOT w.gone AND w.status = 'running' AND w.lost_at IS NULL), '{}')::bigint[] AS overrun,
       coalesce(array_agg(w.id ORDER BY w.id) FILTER (WHERE w.late AND NOT w.gone AND w.status = 'canceling'), '{}')::bigint[] AS cancel_ignored,
       coalesce(array_agg(w.id ORDER BY w.id) FILTER (WHERE w.headless), '{}')::bigint[] AS headless,
       coalesce(extract(epoch FROM min(w.gone_at) FILTER (WHERE NOT w.gone) - now()), 0)::float8 AS next_loss_seconds
FROM (
    SELECT e.id, e.status, k.lost_at,
           CASE WHEN e.status IN ('scheduled', 'running', 'canceling')
                THEN coalesce(k.lost_at, k.heartbeat_seen + make_interval(secs => sqlc.arg(stale_after)::float8)) END AS gone_at,
           CASE WHEN e.status IN ('running', 'canceling') AND e.worker IS NULL AND NOT e.holds AND e.attempt = 0
                     AND e.updated < now() - interval '60 seconds'
                THEN NOT EXISTS (SELECT FROM workflow_execution x WHERE x.execution = e.id)
                     AND NOT EXISTS (SELECT FROM inquiry q WHERE q.execution = e.id) ELSE false END AS headless,
           CASE WHEN e.status = 'scheduled' AND e.worker IS NULL THEN e.updated < now() - interval '30 seconds' -- its worker's row was deleted
                WHEN e.status IN ('running', 'canceling') AND e.worker IS NULL THEN
                    (e.holds OR e.attempt > 0) AND e.updated < now() - make_interval(secs => sqlc.arg(stale_after)::float8)
                WHEN e.status IN ('scheduled', 'running', 'canceling') THEN
                    coalesce(k.lost_at, k.heartbeat_seen + make_interval(secs => sqlc.arg(stale_after)::float8), '-infinity') < now()
                ELSE false END AS gone,
           CASE e.status WHEN 'scheduled' THEN e.updated < now() - make_interval(secs => coalesce(
                                 (SELECT a.scheduled_timeout_seconds FROM action a WHERE a.id = e.action)::float8, sqlc.arg(scheduled_timeout)::float8))
                         WHEN 'running' THEN e.worker IS NOT NULL AND e.updated < least(now(), k.heartbeat_seen)
                             - make_interval(secs => sqlc.arg(grace)::float8 + coalesce(
                                 attune_task_timeout(e.workflow_task),
                                 (SELECT a.timeout_seconds FROM action a
                                  WHERE a.id = e.action AND a.timeout_seconds > 0 AND attune_honours(sqlc.arg(action_timeouts)::text))::float8,
                                 CASE WHEN k.fences THEN 1e9::float8 END,
                                 sqlc.arg(unfenced_timeout)::float8))
                         WHEN 'canceling' THEN e.worker IS NOT NULL AND e.updated < now() - make_interval(secs => sqlc.arg(cancel_timeout)::float8)
                         ELSE false END AS late
    FROM (
        (SELECT h.execution AS id, x.status, x.worker, x.attempt, x.updated, x.action, x.workflow_task, true AS holds
         FROM (SELECT o.execution FROM execution_holder o WHERE sqlc.arg(holders)::bool AND o.execution > sqlc.arg(after)::bigint
               ORDER BY o.execution LIMIT sqlc.arg(window_size)::int) h
         LEFT JOIN LATERAL (SELECT y.status, y.worker, y.attempt, y.updated, y.action, y.workflow_task FROM execution y
                            WHERE y.id = ANY (ARRAY[h.execution]) OFFSET 0) x ON true)
        UNION ALL
        (SELECT x.id, x.status, x.worker, x.attempt, x.updated, x.action, x.workflow_task, false
         FROM execution x
         WHERE NOT sqlc.arg(holders)::bool AND x.finished_status IS NULL AND x.id > sqlc.arg(after)::bigint
           AND NOT EXISTS (SELECT FROM execution_holder o WHERE o.execution = ANY (ARRAY[x.id]))
         ORDER BY x.id LIMIT sqlc.arg(window_size)::int)
    ) e
    LEFT JOIN LATERAL (
        SELECT x.heartbeat_seen, x.fences,
               CASE WHEN e.status IN ('running', 'canceling') AND x.deactivated_at IS NULL
                         AND (x.status = 'inactive' AND NOT x.draining OR x.status = 'error' AND NOT x.fences)
                    THEN coalesce((SELECT max(h.time) FROM worker_history h WHERE h.entity_id = x.id AND 'status' = ANY (h.changed_fields)), x.updated)
                         + make_interval(secs => sqlc.arg(leave_grace)::float8) END AS lost_at
        FROM (SELECT y.id, y.status, y.draining, y.deactivated_at, y.heartbeat_seen, y.updated,
                     y.capabilities -> 'attempt_fence' IS NOT DISTINCT FROM 'true' AS fences
              FROM worker y WHERE y.id = e.worker OFFSET 0) x
    ) k ON true
) w;

-- name: DescribeOverdue :many
-- Overdue executions of live workers, with full: whether the worker may be busy, and so start them
-- later. A worker runs at most what it has besides these, so its load suffices for the decision. A
-- worker that runs less and has not started the others either also counts as full.
WITH overdue AS MATERIALIZED (
    SELECT e.id, e.worker::bigint AS worker, e.attempt,
           coalesce((SELECT a.scheduled_timeout_seconds FROM action a WHERE a.id = e.action)::float8, sqlc.arg(scheduled_timeout)::float8) AS allowed,
           count(*) OVER (PARTITION BY e.worker) AS together
    FROM execution e
    WHERE e.id = ANY (sqlc.arg(ids)::bigint[]) AND (e.status = 'scheduled') IS TRUE AND e.worker IS NOT NULL
)
SELECT o.id, o.worker, o.attempt, o.allowed::float8 AS allowed_seconds,
       coalesce((SELECT l.assigned FROM worker_load l WHERE l.worker = o.worker) - o.together
           >= CASE WHEN jsonb_typeof(k.capabilities -> 'max_concurrent_executions') = 'number'
                   THEN (k.capabilities ->> 'max_concurrent_executions')::numeric ELSE sqlc.arg(capacity)::int END, false)::bool AS full
FROM overdue o
LEFT JOIN worker k ON k.id = o.worker
ORDER BY o.id;

-- name: EndOrphanedRuns :many
-- Ends running executions of dead workers: as abandoned, as failed if they must count as failures,
-- or as cancelled if that was requested. The result has the published keys; message is the
-- evidence.
WITH locked AS MATERIALIZED (
    SELECT x.id FROM execution x WHERE x.id = ANY (sqlc.arg(ids)::bigint[]) ORDER BY x.id FOR UPDATE SKIP LOCKED
), ended AS (
    UPDATE execution e
    SET status = CASE WHEN e.status = 'canceling' THEN 'cancelled' ELSE sqlc.arg(status)::text END::execution_status_enum,
        result = jsonb_build_object(
            'error', CASE WHEN e.status = 'canceling' THEN 'Execution cancelled; its worker became unavailable before it stopped it'
                          ELSE 'Execution abandoned because its worker became unavailable while running' END,
            'message', CASE WHEN e.worker IS NULL THEN 'The worker was deleted while it ran the execution'
                            WHEN k.lost_at IS NOT NULL THEN 'The worker was marked ' || k.status || ' while it ran the execution'
                            ELSE 'The worker stopped sending heartbeats while it ran the execution' END,
            CASE WHEN e.status = 'canceling' THEN 'cancelled_by' WHEN sqlc.arg(status)::text = 'failed' THEN 'failed_by'
                 ELSE 'abandoned_by' END, 'execution_timeout_monitor',
            'original_status', e.status, 'reconciled_at', now(), 'worker', k.described)
    FROM locked l
    JOIN execution o ON o.id = l.id
    LEFT JOIN LATERAL (
        SELECT x.status::text AS status, x.heartbeat_seen,
               CASE WHEN x.deactivated_at IS NULL
                         AND (x.status = 'inactive' AND NOT x.draining
                              OR x.status = 'error' AND x.capabilities -> 'attempt_fence' IS DISTINCT FROM 'true')
                    THEN coalesce((SELECT max(h.time) FROM worker_history h WHERE h.entity_id = x.id AND 'status' = ANY (h.changed_fields)), x.updated)
                         + make_interval(secs => sqlc.arg(leave_grace)::float8) END AS lost_at,
               jsonb_build_object(
                   'id', x.id, 'name', x.name, 'role', x.worker_role, 'status', x.status, 'last_heartbeat', x.last_heartbeat,
                   'heartbeat_age_seconds', CASE WHEN x.last_heartbeat IS NOT NULL THEN greatest(floor(extract(epoch FROM now() - x.heartbeat_seen)), 0) END,
                   'cordoned', x.cordoned) AS described
        FROM worker x WHERE x.id = o.worker OFFSET 0
    ) k ON true
    WHERE e.id = l.id AND e.status IN ('running', 'canceling') AND e.worker IS NOT DISTINCT FROM o.worker
      AND CASE WHEN e.worker IS NULL
               THEN (e.attempt > 0 OR EXISTS (SELECT FROM execution_holder h WHERE h.execution = ANY (ARRAY[e.id]))) AND e.updated < now() - make_interval(secs => sqlc.arg(stale_after)::float8)
               ELSE coalesce(k.lost_at, k.heartbeat_seen + make_interval(secs => sqlc.arg(stale_after)::float8), '-infinity') < now() END
    RETURNING e.id, e.action, e.action_ref, e.status, e.result, e.finished_at, e.worker, e.attempt, e.started_at
), noted AS (
    INSERT INTO lost_work (cause, outcome, execution, attempt, action_ref, worker, age_seconds)
    SELECT 'worker_gone', r.status, r.id, r.attempt, r.action_ref, r.worker, extract(epoch FROM now() - r.started_at) FROM ended r
)
SELECT r.id, r.action, r.action_ref, r.status, r.result, coalesce(r.finished_at, now())::timestamptz AS finished_at, coalesce(r.worker, 0)::bigint AS worker
FROM ended r ORDER BY r.id;

-- name: EndHeadless :many
-- Ends what nothing is left of that would end it: a workflow or a question fails;
-- the rest, which another engine has handed to a worker whose row was deleted since,
-- is abandoned.
WITH ended AS (
    UPDATE execution e
    SET status = CASE WHEN e.action_ref <> 'core.ask' AND EXISTS (SELECT FROM action a WHERE a.id = e.action AND a.workflow_def IS NULL)
                      THEN 'abandoned' ELSE 'failed' END::execution_status_enum,
        result = jsonb_build_object(
            'error', 'Nothing is left that would end it: its workflow, its question or its worker was deleted',
            'failed_by', 'execution_timeout_monitor', 'original_status', e.status, 'succeeded', false, 'reconciled_at', now())
    WHERE e.id = ANY (ARRAY(
            SELECT x.id FROM execution x WHERE x.id = ANY (sqlc.arg(ids)::bigint[]) ORDER BY x.id FOR UPDATE SKIP LOCKED))
      AND e.status IN ('running', 'canceling') AND e.worker IS NULL AND e.attempt = 0
      AND NOT EXISTS (SELECT FROM execution_holder h WHERE h.execution = ANY (ARRAY[e.id]))
      AND NOT EXISTS (SELECT FROM workflow_execution x WHERE x.execution = e.id)
      AND NOT EXISTS (SELECT FROM inquiry q WHERE q.execution = e.id)
    RETURNING e.id, e.action, e.action_ref, e.status, e.result, e.finished_at, e.worker
)
SELECT r.id, r.action, r.action_ref, r.status, r.result, coalesce(r.finished_at, now())::timestamptz AS finished_at, coalesce(r.worker, 0)::bigint AS worker
FROM ended r ORDER BY r.id;

-- name: EndOverruns :many
-- Ends what runs for longer than its task, its action or, where these do not say, a
-- worker that does not fence attempts allows, and whose worker has not ended it,
-- though it was heard of after that; by the database's clock, since it was seen to
-- run. A worker that has fallen silent before is gone: what it ran is abandoned.
WITH ended AS (
    UPDATE execution e
    SET status = 'timeout', result = jsonb_build_object(
            'error', format('Execution timeout: still running %s seconds after its start, %s are allowed',
                            floor(extract(epoch FROM now() - e.updated)), l.allowed),
            'failed_by', 'execution_timeout_monitor', 'timeout_seconds', l.allowed, 'timed_out', true, 'succeeded', false,
            'age_seconds', floor(extract(epoch FROM now() - e.updated)), 'original_status', e.status, 'worker_id', e.worker)
    FROM (
        SELECT x.id, coalesce(
            attune_task_timeout(x.workflow_task),
            (SELECT a.timeout_seconds FROM action a
             WHERE a.id = x.action AND a.timeout_seconds > 0 AND attune_honours(sqlc.arg(action_timeouts)::text))::float8,
            (SELECT sqlc.arg(unfenced_timeout)::float8 FROM worker k
             WHERE k.id = x.worker AND k.capabilities -> 'attempt_fence' IS DISTINCT FROM 'true')) AS allowed,
            (SELECT k.heartbeat_seen FROM worker k WHERE k.id = x.worker AND (k.status <> 'inactive' OR k.draining)) AS heard
        FROM execution x WHERE x.id = ANY (sqlc.arg(ids)::bigint[]) ORDER BY x.id FOR UPDATE SKIP LOCKED
    ) l
    WHERE e.id = l.id AND e.status = 'running' AND e.worker IS NOT NULL
      AND l.heard IS NOT NULL AND e.updated < least(now(), l.heard) - make_interval(secs => sqlc.arg(grace)::float8 + l.allowed)
    RETURNING e.id, e.action, e.action_ref, e.status, e.result, e.finished_at, e.worker, e.attempt, e.started_at
), noted AS (
    INSERT INTO lost_work (cause, outcome, execution, attempt, action_ref, worker, age_seconds)
    SELECT 'action_timeout', r.status, r.id, r.attempt, r.action_ref, r.worker, extract(epoch FROM now() - r.started_at) FROM ended r
)
SELECT r.id, r.action, r.action_ref, r.status, r.result, coalesce(r.finished_at, now())::timestamptz AS finished_at, coalesce(r.worker, 0)::bigint AS worker
FROM ended r ORDER BY r.id;

-- name: EndIgnoredCancels :many
-- Ends executions whose live worker was told to stop them long ago and has not.
WITH ended AS (
    UPDATE execution e
    SET status = 'cancelled', result = attune_cancel_words(e.id) || jsonb_build_object(
            'error', 'Cancelled on request; its worker has not confirmed that it stopped', 'cancelled', true, 'succeeded', false,
            'cancelled_by', 'execution_timeout_monitor', 'waited_seconds', floor(extract(epoch FROM now() - e.updated)), 'worker_id', e.worker)
    WHERE e.id = ANY (ARRAY(
            SELECT x.id FROM execution x WHERE x.id = ANY (sqlc.arg(ids)::bigint[]) ORDER BY x.id FOR UPDATE SKIP LOCKED))
      AND e.status = 'canceling' AND e.worker IS NOT NULL AND e.updated < now() - make_interval(secs => sqlc.arg(cancel_timeout)::float8)
    RETURNING e.id, e.action, e.action_ref, e.status, e.result, e.finished_at, e.worker, e.attempt, e.started_at
), noted AS (
    INSERT INTO lost_work (cause, outcome, execution, attempt, action_ref, worker, age_seconds)
    SELECT 'cancel_unheard', r.status, r.id, r.attempt, r.action_ref, r.worker, extract(epoch FROM now() - r.started_at) FROM ended r
)
SELECT r.id, r.action, r.action_ref, r.status, r.result, coalesce(r.finished_at, now())::timestamptz AS finished_at, coalesce(r.worker, 0)::bigint AS worker
FROM ended r ORDER BY r.id;

-- name: ReadClock :one
-- The database's time, and the start of its server.
SELECT clock_timestamp()::timestamptz AS at, pg_postmaster_start_time()::timestamptz AS started;
