-- What the dashboard checks beyond the alerts: whether rows agree with each other. Nothing locks,
-- and every query stops at its bound. Queues are compared by RepairQueues, RepairEnded and
-- RepairStats. All run in one transaction, which sees one state of the rows.

-- name: CheckWorkerIDs :many
SELECT w.id FROM worker w ORDER BY w.id DESC LIMIT sqlc.arg(bound)::bigint;

-- name: CheckForgotten :many
-- Requested executions in no queue, among the oldest unfinished.
SELECT c.id, c.action_ref FROM (
    SELECT e.id, e.action_ref, e.status, e.updated FROM execution e WHERE e.finished_status IS NULL ORDER BY e.id LIMIT sqlc.arg(bound)::bigint) c
WHERE c.status = 'requested' AND c.updated < now() - interval '10 minutes'
  AND NOT EXISTS (SELECT FROM execution_admission_entry q WHERE q.execution_id = c.id)
  AND NOT EXISTS (SELECT FROM execution_retry t WHERE t.execution = c.id AND t.waiting);

-- name: CheckStaleLoad :many
-- Workers without a heartbeat for so long that still have executions.
SELECT w.name, l.assigned::bigint AS assigned
FROM worker w JOIN worker_load l ON l.worker = w.id
WHERE l.assigned > 0
  AND coalesce((to_jsonb(w) ->> 'heartbeat_seen')::timestamptz, w.last_heartbeat, w.created) < now() - make_interval(secs => sqlc.arg(seconds)::float8)
ORDER BY l.assigned DESC, w.id LIMIT 20;

-- name: CheckPublishedLeaks :many
-- Ended executions that hold a slot, in a schema with only published tables, where an entry holds
-- the slot.
SELECT e.id, e.action_ref
FROM execution_admission_state s
CROSS JOIN LATERAL (
    SELECT q.execution_id FROM execution_admission_entry q
    WHERE q.state_id = s.id AND q.status = 'active' ORDER BY q.queue_order LIMIT 100) h
JOIN execution e ON e.id = h.execution_id
WHERE e.status IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned') AND e.updated < now() - interval '2 minutes'
LIMIT 20;
