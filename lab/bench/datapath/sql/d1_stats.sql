INSERT INTO queue_stats (action_id, queue_length, active_count, max_concurrent, last_updated)
SELECT $1, count(*) FILTER (WHERE status = 'queued'), count(*) FILTER (WHERE status = 'active'), $3, now()
FROM execution_admission_entry WHERE state_id = $2
ON CONFLICT (action_id) DO UPDATE
SET queue_length = excluded.queue_length, active_count = excluded.active_count, last_updated = excluded.last_updated
