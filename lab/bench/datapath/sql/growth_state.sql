UPDATE execution_admission_state
SET queued_count = n, next_queue_order = next_queue_order + n, total_enqueued = total_enqueued + n
FROM (SELECT count(*) AS n FROM execution_admission_entry) x
