-- Of the sessions in which rounds run: how many are in one, and how many of those
-- wait for a lock.
SELECT count(*) FILTER (WHERE state <> 'idle'), count(*) FILTER (WHERE state <> 'idle' AND wait_event_type = 'Lock')
FROM pg_stat_activity WHERE application_name = $1 AND datname = current_database()
