-- Of the executions $2: those ever dispatched to the worker $1, those that it has not started, and the
-- number that waits for a worker.
SELECT coalesce(array_agg(id) FILTER (WHERE worker = $1), '{}'),
       coalesce(array_agg(id) FILTER (WHERE worker = $1 AND status = 'scheduled'), '{}'),
       count(*) FILTER (WHERE status IN ('requested', 'scheduling'))
FROM execution WHERE id = ANY ($2::bigint[])
