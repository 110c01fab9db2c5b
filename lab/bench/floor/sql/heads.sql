SELECT q.execution_id, e.action_ref, e.config, e.attempt, e.updated
FROM execution_admission_entry q JOIN execution e ON e.id = ANY (ARRAY[q.execution_id])
WHERE q.state_id = $1 AND q.lane = 0 AND q.queue_order >= (SELECT s.head_order FROM execution_admission_state s WHERE s.id = $1)
ORDER BY q.queue_order LIMIT $2
