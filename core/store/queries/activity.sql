-- What happened in each minute, by action. Ends are counted from the index by time, so that the cost follows from their
-- number alone, however many executions wait.

-- name: ForgetFuture :exec
-- After the clock was set back: those minutes come again.
DELETE FROM activity_minute WHERE minute > now();

-- name: CountActivity :exec
-- Counts from the first minute on that was not counted 30 seconds after its end, unless another replica has counted
-- within pause seconds. After the clock was set back, minutes that were counted later than now are counted again.
-- The upper bound keeps the planner to the index: it estimates few rows between two unknown values.
WITH last AS MATERIALIZED (
    SELECT (SELECT m.minute FROM activity_minute m WHERE m.minute <= now() AND m.action_ref = '' ORDER BY m.minute DESC LIMIT 1) AS minute
), since AS MATERIALIZED (
    SELECT greatest(coalesce((SELECT min(m.minute) FROM activity_minute m
                              WHERE m.minute BETWEEN l.minute - interval '1 minute' AND l.minute AND m.action_ref = ''
                                AND (m.counted < m.minute + interval '90 seconds' OR m.counted > now())),
                             l.minute + interval '1 minute', date_trunc('minute', now()) - interval '15 minutes'),
                    date_trunc('minute', now()) - interval '2 days') AS at
    FROM last l
    WHERE coalesce((SELECT max(r.counted) FROM activity_minute r
                    WHERE r.minute BETWEEN l.minute - interval '1 minute' AND l.minute AND r.action_ref = '' AND r.counted <= now()),
                   '-infinity') <= now() - make_interval(secs => sqlc.arg(pause)::float8)
), ended AS MATERIALIZED (
    SELECT e.minute, e.action_ref, e.worker, count(*) AS n,
           count(*) FILTER (WHERE e.status = 'completed') AS completed, count(*) FILTER (WHERE e.status = 'failed') AS failed,
           count(*) FILTER (WHERE e.status = 'timeout') AS timeout, count(*) FILTER (WHERE e.status = 'cancelled') AS cancelled,
           count(*) FILTER (WHERE e.status = 'abandoned') AS abandoned
    FROM (SELECT date_trunc('minute', x.finished_at) AS minute, x.action_ref, x.worker, x.status FROM execution x
          WHERE x.finished_at >= (SELECT s.at FROM since s) AND x.finished_at < (SELECT now() + interval '1 day')) e
    GROUP BY GROUPING SETS ((e.minute, e.action_ref), (e.minute, e.worker))
), counts (minute, action_ref, completed, failed, timeout, cancelled, abandoned, ended) AS (
    SELECT m.minute, '', 0, 0, 0, 0, 0,
           (SELECT jsonb_object_agg(w.worker, w.n) FROM ended w WHERE w.minute = m.minute AND w.worker IS NOT NULL)
    FROM since s CROSS JOIN LATERAL (SELECT generate_series(s.at, now(), interval '1 minute') AS minute) m
    UNION ALL
    SELECT n.minute, n.action_ref, n.completed, n.failed, n.timeout, n.cancelled, n.abandoned, NULL
    FROM ended n WHERE n.action_ref IS NOT NULL
)
INSERT INTO activity_minute AS a (minute, action_ref, completed, failed, timeout, cancelled, abandoned, ended)
SELECT c.minute, c.action_ref, c.completed, c.failed, c.timeout, c.cancelled, c.abandoned, c.ended
FROM counts c ORDER BY 1, 2
ON CONFLICT (minute, action_ref) DO UPDATE SET
    completed = excluded.completed, failed = excluded.failed, timeout = excluded.timeout, cancelled = excluded.cancelled,
    abandoned = excluded.abandoned, ended = excluded.ended, counted = now();

-- name: RecordDepths :one
-- Writes what waits and runs as of the end of the last minute, if that was at most late seconds ago and no replica has.
-- Of queues, the longest are recorded one by one. Returns the seconds until the running minute ends.
WITH m AS MATERIALIZED (
    SELECT t.minute FROM (SELECT date_trunc('minute', now()) - interval '1 minute' AS minute) t
    WHERE now() < t.minute + interval '1 minute' + make_interval(secs => sqlc.arg(late)::float8)
      AND NOT EXISTS (SELECT FROM activity_minute a WHERE a.minute = t.minute AND a.action_ref = '' AND a.queues IS NOT NULL)
), busy AS MATERIALIZED (
    SELECT s.id, s.action_id, s.active_count, s.queued_count, s.queued_high, s.queued_low, s.head_high, s.head_order, s.head_low
    FROM execution_admission_state s CROSS JOIN m WHERE s.queued_count > 0 OR s.active_count > 0
), longest AS (
    SELECT b.id, b.queued_count, (
        SELECT extract(epoch FROM now() - min(h.enqueued_at))::int
        FROM (VALUES (1, b.head_high, b.queued_high), (0, b.head_order, b.queued_count - b.queued_high - b.queued_low),
                     (-1, b.head_low, b.queued_low)) AS l (lane, head, n)
        CROSS JOIN LATERAL (SELECT q.enqueued_at FROM execution_admission_entry q
                            WHERE q.state_id = b.id AND q.lane = l.lane AND q.queue_order >= l.head ORDER BY q.queue_order LIMIT 1) h
        WHERE l.n > 0) AS waited
    FROM (SELECT x.* FROM busy x WHERE x.queued_count > 0 ORDER BY x.queued_count DESC, x.id LIMIT sqlc.arg(bound)::int) b
), written AS (
    INSERT INTO activity_minute AS a (minute, action_ref, queued, running, queues, slots, counted)
    SELECT m.minute, c.ref, sum(b.queued_count), sum(b.active_count), NULL::jsonb, NULL::jsonb, '-infinity'::timestamptz
    FROM m CROSS JOIN busy b JOIN action c ON c.id = b.action_id GROUP BY 1, 2
    UNION ALL
    SELECT m.minute, '', 0, 0,
           coalesce((SELECT jsonb_object_agg(g.id, jsonb_build_array(g.queued_count, g.waited)) FROM longest g), '{}')
           || CASE WHEN (SELECT count(*) FROM busy x WHERE x.queued_count > 0) > sqlc.arg(bound)::int THEN '{"more": true}' ELSE '{}' END::jsonb,
           coalesce((SELECT jsonb_object_agg(w.worker, w.assigned) FROM worker_load w WHERE w.assigned > 0), '{}'), '-infinity'
    FROM m
    ORDER BY 1, 2
    ON CONFLICT (minute, action_ref) DO UPDATE SET
        queued = excluded.queued, running = excluded.running, queues = excluded.queues, slots = excluded.slots
)
SELECT extract(epoch FROM date_trunc('minute', clock_timestamp()) + interval '1 minute' - clock_timestamp())::float8 AS rest;

-- name: PastMinutes :many
-- The ends of the last sixty minutes that are settled, the oldest first, with what was counted. uncounted and unseen say
-- that no engine has counted the minute, or that none ran at its end.
SELECT t.at::timestamptz AS at, coalesce(sum(m.completed + m.failed + m.timeout + m.cancelled + m.abandoned), 0)::float8 AS done,
       coalesce(sum(m.failed + m.timeout + m.abandoned), 0)::float8 AS failed, coalesce(sum(m.queued), 0)::float8 AS queued,
       coalesce(sum(m.running), 0)::float8 AS running, (bool_or(m.action_ref = '') IS NOT TRUE)::bool AS uncounted,
       (bool_or(m.queues IS NOT NULL) IS NOT TRUE)::bool AS unseen
FROM (SELECT date_trunc('minute', now() - make_interval(secs => sqlc.arg(settled)::float8)) - make_interval(mins => g.ago) AS at
      FROM generate_series(0, 59) AS g (ago)) t
LEFT JOIN activity_minute m ON m.minute = t.at - interval '1 minute' AND m.minute >= now() - interval '62 minutes'
GROUP BY t.at ORDER BY t.at;

-- name: PastWaiting :many
-- The change in the number of open dead letters in each full minute, by minutes before the running one; 62 stands for all
-- time before. It knows the open ones, and of the dead letters of the last day the ones that were decided within the
-- hour, each up to the bound.
SELECT c.ago::int AS ago, sum(c.change)::bigint AS change
FROM (
    SELECT w.created, NULL::timestamptz AS decided_at
    FROM (SELECT d.created FROM dead_letter d WHERE d.decision IS NULL ORDER BY d.id DESC LIMIT sqlc.arg(bound)::bigint) w
    UNION ALL
    SELECT r.created, r.decided_at
    FROM (SELECT d.created, d.decision, d.decided_at FROM dead_letter d
          WHERE d.created > now() - interval '1 day' ORDER BY d.created DESC LIMIT sqlc.arg(bound)::bigint) r
    WHERE r.decision IS NOT NULL AND r.decided_at > now() - interval '63 minutes'
) l
CROSS JOIN LATERAL (VALUES
    (least(62, extract(epoch FROM date_trunc('minute', now()) - date_trunc('minute', l.created)) / 60), 1),
    (extract(epoch FROM date_trunc('minute', now()) - date_trunc('minute', l.decided_at)) / 60, -1)
) c (ago, change)
WHERE c.ago > 0
GROUP BY 1;

-- name: PastQueues :many
-- The given queues at the same ends of minutes. unseen says that the queue was not recorded.
SELECT q.id::bigint AS id, t.at::timestamptz AS at, coalesce((m.queues -> q.id::text ->> 0)::float8, 0)::float8 AS depth,
       make_interval(secs => coalesce((m.queues -> q.id::text ->> 1)::float8, 0)) AS head, (m.minute IS NULL)::bool AS unseen
FROM unnest(sqlc.arg(ids)::bigint[]) WITH ORDINALITY AS q (id, n)
CROSS JOIN (SELECT date_trunc('minute', now() - make_interval(secs => sqlc.arg(settled)::float8)) - make_interval(mins => g.ago) AS at
            FROM generate_series(0, 59) AS g (ago)) t
LEFT JOIN activity_minute m ON m.minute = t.at - interval '1 minute' AND m.minute >= now() - interval '62 minutes' AND m.action_ref = ''
                           AND (m.queues ? q.id::text OR NOT m.queues ? 'more')
ORDER BY q.n, t.at;

-- name: PastWorkers :many
-- The workers that had slots or ended executions, at the same ends of minutes. unseen says that no engine ran then.
WITH m AS MATERIALIZED (
    SELECT a.minute, a.slots, coalesce(a.ended, '{}') AS ended FROM activity_minute a
    WHERE a.minute >= now() - interval '62 minutes' AND a.minute < date_trunc('minute', now())
      AND a.action_ref = '' AND a.queues IS NOT NULL
), w AS (SELECT DISTINCT jsonb_object_keys(n.slots || n.ended) AS id FROM m n)
SELECT w.id::bigint AS id, t.at::timestamptz AS at, coalesce((m.slots ->> w.id)::float8, 0)::float8 AS slots,
       coalesce((m.ended ->> w.id)::float8, 0)::float8 AS ended, (m.minute IS NULL)::bool AS unseen
FROM w
CROSS JOIN (SELECT date_trunc('minute', now() - make_interval(secs => sqlc.arg(settled)::float8)) - make_interval(mins => g.ago) AS at
            FROM generate_series(0, 59) AS g (ago)) t
LEFT JOIN m ON m.minute = t.at - interval '1 minute'
ORDER BY 1, 2;

-- name: RecentEnds :one
-- The ends of the last minutes by status. failed_in_minute is the larger number of bad ends of the running minute and
-- the one before.
SELECT coalesce(sum(m.completed), 0)::bigint AS completed, coalesce(sum(m.failed), 0)::bigint AS failed,
       coalesce(sum(m.timeout), 0)::bigint AS timeout, coalesce(sum(m.cancelled), 0)::bigint AS cancelled,
       coalesce(sum(m.abandoned), 0)::bigint AS abandoned,
       greatest(coalesce(sum(m.failed + m.timeout + m.abandoned) FILTER (WHERE m.minute = date_trunc('minute', now())), 0),
                coalesce(sum(m.failed + m.timeout + m.abandoned) FILTER (WHERE m.minute = date_trunc('minute', now()) - interval '1 minute'), 0))::bigint
           AS failed_in_minute
FROM activity_minute m
WHERE m.minute >= date_trunc('minute', now()) - make_interval(secs => sqlc.arg(seconds)::float8);

-- name: RecentlyFailedWorkflows :one
SELECT coalesce(sum(m.failed + m.timeout + m.abandoned), 0)::bigint
FROM activity_minute m JOIN action a ON a.ref = m.action_ref
WHERE a.workflow_def IS NOT NULL AND m.minute >= date_trunc('minute', now()) - make_interval(secs => sqlc.arg(seconds)::float8);

-- name: AlertEnds :many
-- The ends of each action that measures need: of the last 15 minutes without cancelled ones, of the last five, and the
-- timeouts of the running minute and the one before.
SELECT m.action_ref,
       sum(m.completed + m.failed + m.timeout + m.abandoned)::bigint AS ended, sum(m.failed + m.timeout + m.abandoned)::bigint AS bad,
       coalesce(sum(m.completed + m.failed + m.timeout + m.abandoned) FILTER (WHERE m.minute >= date_trunc('minute', now()) - interval '5 minutes'), 0)::bigint
           AS ended_lately,
       coalesce(sum(m.failed + m.timeout + m.abandoned) FILTER (WHERE m.minute >= date_trunc('minute', now()) - interval '5 minutes'), 0)::bigint
           AS bad_lately,
       coalesce(sum(m.timeout) FILTER (WHERE m.minute = date_trunc('minute', now())), 0)::bigint AS timeouts_now,
       coalesce(sum(m.timeout) FILTER (WHERE m.minute = date_trunc('minute', now()) - interval '1 minute'), 0)::bigint AS timeouts_before
FROM activity_minute m
WHERE m.minute >= date_trunc('minute', now()) - interval '15 minutes' AND m.action_ref <> ''
GROUP BY m.action_ref
ORDER BY m.action_ref;

-- name: PruneActivity :execrows
DELETE FROM activity_minute a
WHERE (a.minute, a.action_ref) IN (
    SELECT t.minute, t.action_ref FROM activity_minute t WHERE t.minute < now() - make_interval(secs => sqlc.arg(older)::float8)
    ORDER BY t.minute LIMIT sqlc.arg(page)::int);
