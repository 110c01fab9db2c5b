-- Executions of $2: those that the worker $1 has ever been handed, those that it still
-- has, and how many wait for a worker.
SELECT coalesce(array_agg(id) FILTER (WHERE worker = $1), '{}'),
       coalesce(array_agg(id) FILTER (WHERE worker = $1 AND status = 'scheduled'), '{}'),
       count(*) FILTER (WHERE status IN ('requested', 'scheduling'))
FROM execution WHERE id = ANY ($2::bigint[])
