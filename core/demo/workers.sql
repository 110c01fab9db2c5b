SELECT count(*)
FROM worker
WHERE status = 'active' AND NOT draining AND name LIKE 'demo-worker-%' AND last_heartbeat > now() - interval '30 seconds'
