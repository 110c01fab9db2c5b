-- Executions of $2: the ones that were ever handed to the worker $1, the ones that it has
-- not begun, and how many wait for a worker.
SELECT coalesce(array_agg(id) FILTER (WHERE worker = $1), '{}'),
       coalesce(array_agg(id) FILTER (WHERE worker = $1 AND status = 'scheduled'), '{}'),
       count(*) FILTER (WHERE status IN ('requested', 'scheduling'))
FROM execution WHERE id = ANY ($2::bigint[])
