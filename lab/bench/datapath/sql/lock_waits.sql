-- The number of batches that wait for a row lock.
SELECT count(*)
FROM pg_stat_activity
WHERE datname = $1 AND application_name = $2 AND wait_event_type = 'Lock' AND wait_event IN ('transactionid', 'tuple')
