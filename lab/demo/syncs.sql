-- Executions of demo.sync that have not ended.
SELECT coalesce(array_agg(id ORDER BY id), '{}') FROM execution
WHERE action_ref = 'demo.sync' AND status IN ('requested', 'scheduling', 'scheduled', 'running')
