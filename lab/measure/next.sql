-- The n-th start of an action takes the slot that its (n − limit)-th end gave
-- back; what lies between is how long the slot was idle.
WITH starts AS (
    SELECT action, started_at, row_number() OVER (PARTITION BY action ORDER BY started_at) AS n
    FROM execution WHERE id > $1 AND started_at IS NOT NULL
), ends AS (
    SELECT action, finished_at, row_number() OVER (PARTITION BY action ORDER BY finished_at) AS n
    FROM execution WHERE id > $1 AND finished_at IS NOT NULL
), gaps AS (
    SELECT extract(epoch FROM s.started_at - e.finished_at) AS gap
    FROM starts s JOIN ends e ON e.action = s.action AND e.n = s.n - $2::int
)
SELECT coalesce(percentile_cont(0.50) WITHIN GROUP (ORDER BY gap), 0),
       coalesce(percentile_cont(0.95) WITHIN GROUP (ORDER BY gap), 0),
       coalesce(percentile_cont(0.99) WITHIN GROUP (ORDER BY gap), 0)
FROM gaps
