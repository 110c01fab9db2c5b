INSERT INTO execution_admission_entry (state_id, execution_id, status, queue_order) VALUES ($1, $2, $3, $4)
