INSERT INTO execution_admission_entry (state_id, execution_id, status, queue_order)
SELECT h.state_id, h.execution, 'active', -row_number() OVER (ORDER BY h.execution)
FROM execution_holder h
