UPDATE execution_admission_state
SET active_count = active_count + $2, queued_count = queued_count + $3, head_order = head_order + $4, next_queue_order = next_queue_order + $5,
    total_enqueued = total_enqueued + $6, total_completed = total_completed + $7
WHERE id = $1
