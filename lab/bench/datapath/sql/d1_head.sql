SELECT execution_id FROM execution_admission_entry WHERE state_id = $1 AND status = 'queued' ORDER BY queue_order LIMIT 1
