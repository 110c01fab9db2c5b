-- Of the executions $2: the number ever dispatched to the worker $1, the number it has not started, and the
-- number waiting for a worker.
SELECT coalesce(array_agg(id) FILTER (WHERE worker = $1), '{}'),
       coalesce(array_agg(id) FILTER (WHERE worker = $1 AND status = 'scheduled'), '{}'),
       count(*) FILTER (WHERE status IN ('requested', 'scheduling'))
FROM execution WHERE id = ANY ($2::bigint[])
