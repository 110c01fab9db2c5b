-- All open executions, and the ended ones of this run ($1 is the newest execution before it).
SELECT count(*) FILTER (WHERE status IN ('requested', 'scheduling')),
       (SELECT count(*) FROM execution_admission_entry),
       count(*) FILTER (WHERE status = 'scheduled'),
       count(*) FILTER (WHERE status IN ('running', 'canceling')),
       count(*) FILTER (WHERE status = 'completed' AND id > $1),
       count(*) FILTER (WHERE status = 'failed' AND id > $1),
       count(*) FILTER (WHERE status IN ('cancelled', 'timeout', 'abandoned') AND id > $1),
       count(*) FILTER (WHERE retry_count > 0 AND id > $1),
       (SELECT count(*) FROM outbox)
FROM execution
WHERE id > $1 OR status IN ('requested', 'scheduling', 'scheduled', 'running', 'canceling')
