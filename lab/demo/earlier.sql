-- The newest dead letter up to $1, and how many of them wait for a decision.
SELECT coalesce(max(id), 0), count(*) FILTER (WHERE decision IS NULL)
FROM dead_letter
WHERE id <= $1
