SELECT s.id, s.action_id, s.next_queue_order, s.max_concurrent
FROM execution_admission_state s
WHERE s.action_id = (SELECT e.action FROM execution e WHERE e.id = $1) AND s.group_key_normalized = ''
FOR UPDATE
