-- Workers that always live: a heartbeat in the future counts as fresh.
INSERT INTO worker (name, worker_type, worker_role, status, last_heartbeat, heartbeat_seen, capabilities, incarnation)
SELECT 'bench-worker-' || n, 'local', 'action', 'active', now() + interval '1 day', now() + interval '1 day',
       jsonb_build_object('max_concurrent_executions', $2::int, 'attempt_fence', true), $3::uuid
FROM generate_series(1, $1::int) n
RETURNING id
