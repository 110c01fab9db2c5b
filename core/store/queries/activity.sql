-- What ended in each minute, by action. It is counted from the index of ends by time, so that the cost follows from the
-- number of ends alone, however many executions wait.

-- name: CountEnds :exec
-- Counts from the first minute on that was not counted 30 seconds after its end, unless another replica has counted
-- within pause seconds. After the clock was set back, minutes that were counted later than now are counted again. The upper bound keeps the planner to the index: it estimates few rows between two unknown values.
WITH last AS MATERIALIZED (
    SELECT (SELECT m.minute FROM activity_minute m WHERE m.minute <= now() ORDER BY m.minute DESC LIMIT 1) AS minute
), since AS MATERIALIZED (
    SELECT greatest(coalesce((SELECT min(m.minute) FROM activity_minute m
                              WHERE m.minute BETWEEN l.minute - interval '1 minute' AND l.minute
                                AND (m.counted < m.minute + interval '90 seconds' OR m.counted > now())),
                             l.minute + interval '1 minute', date_trunc('minute', now()) - interval '15 minutes'),
                    date_trunc('minute', now()) - interval '2 days') AS at
    FROM last l
)
INSERT INTO activity_minute (minute, action_ref, completed, failed, timeout, cancelled, abandoned)
SELECT date_trunc('minute', e.finished_at) AS minute, e.action_ref,
       count(*) FILTER (WHERE e.status = 'completed'), count(*) FILTER (WHERE e.status = 'failed'),
       count(*) FILTER (WHERE e.status = 'timeout'), count(*) FILTER (WHERE e.status = 'cancelled'),
       count(*) FILTER (WHERE e.status = 'abandoned')
FROM execution e
WHERE e.finished_at >= (SELECT s.at FROM since s) AND e.finished_at < (SELECT now() + interval '1 day')
  AND NOT EXISTS (SELECT FROM activity_minute r
                  WHERE r.minute >= (SELECT s.at FROM since s) AND r.minute < (SELECT now() + interval '1 day')
                    AND r.counted > now() - make_interval(secs => sqlc.arg(pause)::float8) AND r.counted <= now())
GROUP BY 1, 2
ORDER BY 1, 2
ON CONFLICT (minute, action_ref) DO UPDATE SET
    completed = excluded.completed, failed = excluded.failed, timeout = excluded.timeout, cancelled = excluded.cancelled,
    abandoned = excluded.abandoned, counted = now();

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
WHERE m.minute >= date_trunc('minute', now()) - interval '15 minutes'
GROUP BY m.action_ref
ORDER BY m.action_ref;

-- name: PruneActivity :execrows
DELETE FROM activity_minute a
WHERE (a.minute, a.action_ref) IN (
    SELECT t.minute, t.action_ref FROM activity_minute t WHERE t.minute < now() - make_interval(secs => sqlc.arg(older)::float8)
    ORDER BY t.minute LIMIT sqlc.arg(page)::int);
