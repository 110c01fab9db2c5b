INSERT INTO execution_admission_entry (state_id, execution_id, status, queue_order)
SELECT e.admission_state_id, e.id, 'active', -row_number() OVER (ORDER BY e.id)
FROM execution e WHERE e.admission_state_id IS NOT NULL
