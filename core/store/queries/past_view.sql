-- The last hour, for a dashboard that has just started. Nothing is indexed by time, so ended
-- executions are found by id in the index of ended rows. If they are more than can be read, their
-- number is estimated from samples spread evenly over the index.

-- name: PastEnds :many
-- Ended executions by status and minute. Each sample reads at most per rows of its share of the
-- ids. If the share has more, each row stands for as many as the share has per read row, and the
-- minute is estimated.
WITH RECURSIVE search (status, lo, hi) AS (
    SELECT s.status,
           coalesce((SELECT e.id FROM execution e WHERE e.finished_status >= s.status AND e.finished_status <= s.status
                     ORDER BY e.finished_status DESC, e.id LIMIT 1), 0)::bigint,
           coalesce((SELECT e.id FROM execution e WHERE e.finished_status >= s.status AND e.finished_status <= s.status
                     ORDER BY e.finished_status, e.id DESC LIMIT 1), -1)::bigint + 1
    FROM unnest(ARRAY['completed', 'failed', 'cancelled', 'timeout', 'abandoned']::execution_status_enum[]) AS s (status)
    UNION ALL
    SELECT s.status,
           CASE WHEN p.finished_at < now() - interval '1 hour' THEN p.id + 1 ELSE s.lo END,
           CASE WHEN p.finished_at < now() - interval '1 hour' THEN s.hi ELSE (s.lo + s.hi) / 2 END
    FROM search s
    CROSS JOIN LATERAL (SELECT e.id, e.finished_at FROM execution e
                        WHERE e.finished_status >= s.status AND e.finished_status <= s.status AND e.id >= (s.lo + s.hi) / 2
                        ORDER BY e.finished_status DESC, e.id LIMIT 1) p
    WHERE s.lo < s.hi
), edges AS (
    SELECT DISTINCT ON (f.status) f.status, f.hi AS floor,
           coalesce((SELECT e.id FROM execution e WHERE e.finished_status >= f.status AND e.finished_status <= f.status
                     ORDER BY e.finished_status, e.id DESC LIMIT 1), -1)::bigint AS newest
    FROM search f ORDER BY f.status, f.hi, f.lo DESC
), looks AS (
    SELECT d.status, d.step, d.floor + k * d.step AS start
    FROM (SELECT g.status, g.floor, g.newest, greatest(1, (g.newest - g.floor) / sqlc.arg(looks)::bigint + 1) AS step FROM edges g WHERE g.floor <= g.newest) d
    CROSS JOIN LATERAL generate_series(0, (d.newest - d.floor) / d.step) k
), seen AS (
    SELECT l.status, r.finished_at,
           (CASE WHEN count(*) OVER w < sqlc.arg(per)::bigint THEN 1 ELSE l.step::float8 / (max(r.id) OVER w - l.start + 1) END)::float8 AS weight
    FROM looks l
    CROSS JOIN LATERAL (SELECT e.id, e.finished_at FROM execution e
                        WHERE e.finished_status >= l.status AND e.finished_status <= l.status AND e.id >= l.start AND e.id < l.start + l.step
                        ORDER BY e.finished_status DESC, e.id LIMIT sqlc.arg(per)::bigint) r
    WINDOW w AS (PARTITION BY l.status, l.start)
)
SELECT n.status::text AS status, floor(extract(epoch FROM now() - n.finished_at) / 60)::int AS minutes_ago,
       sum(n.weight)::float8 AS n, bool_or(n.weight > 1)::bool AS estimated
FROM seen n
WHERE n.finished_at > now() - interval '1 hour' AND n.finished_at <= now()
GROUP BY 1, 2;

-- name: PastDeadLetters :many
-- Dead letters by minute, the newest up to the bound.
SELECT floor(extract(epoch FROM now() - c.created) / 60)::int AS minutes_ago, count(*) AS n
FROM (SELECT d.created FROM dead_letter d
      WHERE d.created > now() - interval '1 hour' AND d.created <= now() ORDER BY d.created DESC LIMIT sqlc.arg(bound)::bigint) c
GROUP BY 1;

-- name: PastWaiting :many
-- The change in the number of open dead letters in each minute; minute 60 stands for all time
-- before. It knows the open ones, and of the dead letters of the last day the ones that were
-- decided within the hour, each up to the bound.
SELECT c.minutes_ago::int AS minutes_ago, sum(c.change)::bigint AS change
FROM (
    SELECT w.created, NULL::timestamptz AS decided_at
    FROM (SELECT d.created FROM dead_letter d WHERE d.decision IS NULL ORDER BY d.id DESC LIMIT sqlc.arg(bound)::bigint) w
    UNION ALL
    SELECT r.created, r.decided_at
    FROM (SELECT d.created, d.decision, d.decided_at FROM dead_letter d
          WHERE d.created > now() - interval '1 day' ORDER BY d.created DESC LIMIT sqlc.arg(bound)::bigint) r
    WHERE r.decision IS NOT NULL AND r.decided_at > now() - interval '1 hour'
) l
CROSS JOIN LATERAL (VALUES
    (greatest(0, least(60, floor(extract(epoch FROM now() - l.created) / 60))), 1),
    (greatest(0, floor(extract(epoch FROM now() - l.decided_at) / 60)), CASE WHEN l.decided_at IS NOT NULL THEN -1 ELSE 0 END)
) c (minutes_ago, change)
WHERE c.change <> 0
GROUP BY 1;

-- name: PastRuns :many
-- Executions at workers, with their start and end in seconds ago. Ended ones are found as in
-- PastEnds.
WITH RECURSIVE search (status, lo, hi) AS (
    SELECT s.status,
           coalesce((SELECT e.id FROM execution e WHERE e.finished_status >= s.status AND e.finished_status <= s.status
                     ORDER BY e.finished_status DESC, e.id LIMIT 1), 0)::bigint,
           coalesce((SELECT e.id FROM execution e WHERE e.finished_status >= s.status AND e.finished_status <= s.status
                     ORDER BY e.finished_status, e.id DESC LIMIT 1), -1)::bigint + 1
    FROM unnest(ARRAY['completed', 'failed', 'cancelled', 'timeout', 'abandoned']::execution_status_enum[]) AS s (status)
    UNION ALL
    SELECT s.status,
           CASE WHEN p.finished_at < now() - interval '1 hour' THEN p.id + 1 ELSE s.lo END,
           CASE WHEN p.finished_at < now() - interval '1 hour' THEN s.hi ELSE (s.lo + s.hi) / 2 END
    FROM search s
    CROSS JOIN LATERAL (SELECT e.id, e.finished_at FROM execution e
                        WHERE e.finished_status >= s.status AND e.finished_status <= s.status AND e.id >= (s.lo + s.hi) / 2
                        ORDER BY e.finished_status DESC, e.id LIMIT 1) p
    WHERE s.lo < s.hi
), edges AS (
    SELECT DISTINCT ON (f.status) f.status, f.hi AS floor,
           coalesce((SELECT e.id FROM execution e WHERE e.finished_status >= f.status AND e.finished_status <= f.status
                     ORDER BY e.finished_status, e.id DESC LIMIT 1), -1)::bigint AS newest
    FROM search f ORDER BY f.status, f.hi, f.lo DESC
), looks AS (
    SELECT d.status, d.step, d.floor + k * d.step AS start
    FROM (SELECT g.status, g.floor, g.newest, greatest(1, (g.newest - g.floor) / sqlc.arg(looks)::bigint + 1) AS step FROM edges g WHERE g.floor <= g.newest) d
    CROSS JOIN LATERAL generate_series(0, (d.newest - d.floor) / d.step) k
), seen AS (
    SELECT r.worker, r.began, r.finished_at,
           (CASE WHEN count(*) OVER w < sqlc.arg(per)::bigint THEN 1 ELSE l.step::float8 / (max(r.id) OVER w - l.start + 1) END)::float8 AS weight
    FROM looks l
    CROSS JOIN LATERAL (SELECT e.id, e.worker, coalesce(e.started_at, e.admitted_at, e.finished_at) AS began, e.finished_at FROM execution e
                        WHERE e.finished_status >= l.status AND e.finished_status <= l.status AND e.id >= l.start AND e.id < l.start + l.step
                        ORDER BY e.finished_status DESC, e.id LIMIT sqlc.arg(per)::bigint) r
    WINDOW w AS (PARTITION BY l.status, l.start)
), held AS (
    SELECT u.worker, coalesce(u.started_at, u.admitted_at, u.updated) AS began, NULL::timestamptz AS finished_at, 1::float8 AS weight
    FROM ((SELECT e.id, e.worker, e.started_at, e.admitted_at, e.updated FROM execution e
           WHERE e.finished_status IS NULL ORDER BY e.id LIMIT sqlc.arg(scan)::bigint)
          UNION
          (SELECT e.id, e.worker, e.started_at, e.admitted_at, e.updated FROM execution e
           WHERE e.finished_status IS NULL ORDER BY e.id DESC LIMIT sqlc.arg(scan)::bigint)) u
)
SELECT c.worker::bigint AS worker, (c.finished_at IS NOT NULL)::bool AS ended, c.weight,
       greatest(extract(epoch FROM now() - c.began), 0)::float8 AS began_ago,
       greatest(extract(epoch FROM now() - coalesce(c.finished_at, now())), 0)::float8 AS ended_ago
FROM (SELECT * FROM seen UNION ALL SELECT * FROM held) c
WHERE c.worker IS NOT NULL AND (c.finished_at IS NULL OR c.finished_at > now() - interval '1 hour');
