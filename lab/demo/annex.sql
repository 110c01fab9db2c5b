-- Registers a worker that does not announce fencing of attempts. A registered name keeps its id; findings
-- about its earlier process are reset.
INSERT INTO worker (name, worker_type, worker_role, host, status, capabilities, last_heartbeat)
VALUES ($1, 'local', 'action', 'annex', 'active', $2::jsonb, now())
ON CONFLICT (name) DO UPDATE SET status = 'active', host = excluded.host, capabilities = excluded.capabilities,
    last_heartbeat = excluded.last_heartbeat, draining = false, cordoned = false, cordon_reason = NULL,
    suspect_since = NULL, suspect_reason = NULL
RETURNING id
