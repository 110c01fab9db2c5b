UPDATE queue_stats t
SET queue_length = s.queued_count, total_enqueued = s.total_enqueued
FROM execution_admission_state s
WHERE s.action_id = t.action_id
