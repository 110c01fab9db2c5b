-- A worker of another make registers: it says nothing of fencing attempts. A known name
-- keeps its id; what was found out about its earlier process counts no more.
INSERT INTO worker (name, worker_type, worker_role, host, status, capabilities, last_heartbeat)
VALUES ($1, 'local', 'action', 'annex', 'active', $2::jsonb, now())
ON CONFLICT (name) DO UPDATE SET status = 'active', host = excluded.host, capabilities = excluded.capabilities,
    last_heartbeat = excluded.last_heartbeat, draining = false, cordoned = false, cordon_reason = NULL,
    suspect_since = NULL, suspect_reason = NULL
RETURNING id
