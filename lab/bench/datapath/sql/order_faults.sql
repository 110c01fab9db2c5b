-- Queued executions must be dispatched in queue order. No execution may overtake one that an earlier
-- transaction queued.
WITH waited AS (
    SELECT w.state, w.execution, w.place, w.tx, w.seq AS since, g.seq AS went
    FROM bench_log w JOIN bench_log g ON g.execution = w.execution AND g.kind = 'go'
    WHERE w.kind = 'wait'
), straight AS (
    SELECT g.state, g.execution, g.tx, g.seq AS went
    FROM bench_log g
    WHERE g.kind = 'go' AND NOT EXISTS (SELECT FROM bench_log w WHERE w.execution = g.execution AND w.kind = 'wait')
)
SELECT (SELECT count(*) FROM (SELECT place, lag(place) OVER (PARTITION BY state ORDER BY went) AS before FROM waited) x WHERE place < before)
     + (SELECT count(*) FROM straight s WHERE EXISTS (
            SELECT FROM waited w WHERE w.state = s.state AND w.since < s.went AND w.went > s.went AND w.tx <> s.tx)),
       (SELECT count(*) FROM bench_log WHERE kind = 'above'),
       (SELECT count(*) FROM bench_log WHERE kind = 'wait'),
       (SELECT count(*) FROM bench_log WHERE kind = 'go')
