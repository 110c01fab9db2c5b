-- How long a task took from one end to the next, of the first and of the last
-- fifth of the ends.
WITH ends AS (
    SELECT finished_at, row_number() OVER (ORDER BY finished_at, id) AS n, count(*) OVER () AS total
    FROM execution WHERE id > $1 AND finished_at IS NOT NULL AND parent IS NOT NULL
), parts AS (
    SELECT extract(epoch FROM max(finished_at) FILTER (WHERE n <= total / 5) - min(finished_at)) / greatest(max(total) / 5 - 1, 1) AS early,
           extract(epoch FROM max(finished_at) - min(finished_at) FILTER (WHERE n > total - total / 5)) / greatest(max(total) / 5 - 1, 1) AS late
    FROM ends
)
SELECT coalesce(early, 0)::float8, coalesce(late, 0)::float8 FROM parts
