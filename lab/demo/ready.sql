SELECT (SELECT count(*) FROM worker
        WHERE status = 'active' AND NOT draining AND name LIKE 'demo-worker-%' AND last_heartbeat > now() - interval '30 seconds'),
       (SELECT count(*) FROM engine_replica WHERE last_seen > now() - interval '10 seconds')
