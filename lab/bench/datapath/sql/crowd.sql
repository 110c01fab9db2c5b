-- Additional live workers; a taint keeps them idle.
INSERT INTO worker (name, worker_type, worker_role, status, last_heartbeat, heartbeat_seen, capabilities, incarnation)
SELECT 'bench-crowd-' || n, 'local', 'action', 'active', now() + interval '1 day', now() + interval '1 day',
       '{"max_concurrent_executions": 10, "attempt_fence": true, "taints": [{"key": "crowd", "value": "yes", "effect": "no_schedule"}]}'::jsonb, gen_random_uuid()
FROM generate_series(1, $1::int) n
