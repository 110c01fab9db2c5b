INSERT INTO execution_admission_entry (state_id, execution_id, status, queue_order)
SELECT s.id, e.id, 'queued', s.next_queue_order + row_number() OVER (ORDER BY e.id) - 1
FROM execution e CROSS JOIN execution_admission_state s
WHERE e.status = 'requested'
ORDER BY e.id
