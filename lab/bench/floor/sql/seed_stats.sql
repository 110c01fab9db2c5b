INSERT INTO queue_stats (action_id, max_concurrent) VALUES ($1, $2)
