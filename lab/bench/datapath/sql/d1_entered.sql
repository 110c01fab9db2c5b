UPDATE execution_admission_state SET next_queue_order = next_queue_order + 1, total_enqueued = total_enqueued + 1 WHERE id = $1
