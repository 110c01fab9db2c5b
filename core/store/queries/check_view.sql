-- Checks of the dashboard beyond the alerts: whether rows agree with each other. Nothing locks, and
-- every query is bounded. All of them run in one transaction with one snapshot.

-- name: CheckWorkerIDs :many
SELECT w.id FROM worker w ORDER BY w.id DESC LIMIT sqlc.arg(bound)::bigint;

-- name: CheckSlots :one
-- The slots that queues count, and the held ones.
SELECT (SELECT coalesce(sum(s.active_count), 0) FROM execution_admission_state s)::bigint AS counted,
       ((SELECT count(*) FROM execution_holder)
        + (SELECT count(*) FROM lost_holder l WHERE l.state_id IS NOT NULL))::bigint AS held;

-- name: CheckLeaked :many
-- Executions that ended over two minutes ago and hold a slot. A sweep releases such slots within
-- seconds.
SELECT e.id, e.action_ref
FROM execution_holder h
CROSS JOIN LATERAL (
    SELECT x.id, x.action_ref, x.status, coalesce(x.finished_at, x.updated) AS ended FROM execution x
    WHERE x.id = ANY (ARRAY[h.execution]) OFFSET 0) e
WHERE e.status IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned') AND e.ended < now() - interval '2 minutes'
ORDER BY e.id LIMIT sqlc.arg(bound)::bigint;

-- name: CheckForgotten :many
-- Requested executions without a queue, among the oldest unfinished ones.
SELECT c.id, c.action_ref FROM (
    SELECT e.id, e.action_ref, e.status, e.updated FROM execution e WHERE e.finished_status IS NULL ORDER BY e.id LIMIT sqlc.arg(bound)::bigint) c
WHERE c.status = 'requested' AND c.updated < now() - interval '10 minutes'
  AND NOT EXISTS (SELECT FROM execution_admission_entry q WHERE q.execution_id = c.id)
  AND NOT EXISTS (SELECT FROM execution_retry t WHERE t.execution = c.id AND t.waiting);

-- name: CheckStaleLoad :many
-- Workers that have been silent for the given time and have executions.
SELECT w.name, l.assigned::bigint AS assigned
FROM worker w JOIN worker_load l ON l.worker = w.id
WHERE l.assigned > 0
  AND coalesce((to_jsonb(w) ->> 'heartbeat_seen')::timestamptz, w.last_heartbeat, w.created) < now() - make_interval(secs => sqlc.arg(seconds)::float8)
ORDER BY l.assigned DESC, w.id LIMIT 20;

-- name: CheckQueueStats :many
-- Actions whose published statistics differ from their queues, if statistics are kept.
SELECT a.ref
FROM queue_stats t
JOIN (SELECT s.action_id, sum(s.queued_count) AS queued, sum(s.active_count) AS active, max(s.updated) AS changed
      FROM execution_admission_state s GROUP BY s.action_id) q ON q.action_id = t.action_id
JOIN action a ON a.id = t.action_id
WHERE t.last_updated >= q.changed AND (t.queue_length, t.active_count) IS DISTINCT FROM (q.queued, q.active)
ORDER BY a.ref LIMIT 20;

-- name: CheckPublishedLeaks :many
-- CheckLeaked for a schema with the published tables only: there an entry holds the slot.
SELECT e.id, e.action_ref
FROM execution_admission_state s
CROSS JOIN LATERAL (
    SELECT q.execution_id FROM execution_admission_entry q
    WHERE q.state_id = s.id AND q.status = 'active' ORDER BY q.queue_order LIMIT 100) h
JOIN execution e ON e.id = h.execution_id
WHERE e.status IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned') AND e.updated < now() - interval '2 minutes'
LIMIT 20;
