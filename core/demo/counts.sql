SELECT count(*) FILTER (WHERE status IN ('requested', 'scheduling')),
       (SELECT count(*) FROM execution_admission_entry),
       count(*) FILTER (WHERE status = 'scheduled'),
       count(*) FILTER (WHERE status IN ('running', 'canceling')),
       count(*) FILTER (WHERE status = 'completed'),
       count(*) FILTER (WHERE status = 'failed'),
       count(*) FILTER (WHERE status IN ('cancelled', 'timeout', 'abandoned')),
       (SELECT count(*) FROM outbox)
FROM execution
