SELECT active_count, queued_count, next_queue_order FROM execution_admission_state WHERE id = ANY ($1::bigint[]) ORDER BY id FOR UPDATE
