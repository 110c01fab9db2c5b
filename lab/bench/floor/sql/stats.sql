UPDATE queue_stats
SET active_count = active_count + $2, queue_length = queue_length + $3, total_enqueued = total_enqueued + $4,
    total_completed = total_completed + $5, last_updated = now()
WHERE action_id = $1
