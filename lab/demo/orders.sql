-- Orders under way, newest first; with $2 only the paused ones.
SELECT coalesce(array_agg(w.execution ORDER BY w.execution DESC), '{}')
FROM workflow_execution w
JOIN execution e ON e.id = w.execution
WHERE e.action_ref = 'shop.fulfil' AND w.status = 'running' AND w.execution > $1 AND w.paused = $2
