-- Sweeps look for work that no message will bring back. They only find; what
-- they find goes through the same rounds as messages do.

-- name: TryLoopLock :one
-- One replica at a time runs a sweep; the lock ends with the transaction.
SELECT pg_try_advisory_xact_lock(hashtextextended(current_schema() || '.attune.' || sqlc.arg(loop)::text, 0)) AS won;

-- name: FindLostRequests :one
-- Requested executions without a place in line, older than any message in
-- flight should be: one window of live rows at a time, so that a million
-- waiting executions cost no more than a thousand. last is where the next
-- window begins, scanned below the window means that the end was reached.
SELECT coalesce(max(w.id), 0)::bigint AS last, count(*)::int AS scanned,
       coalesce(array_agg(w.id ORDER BY w.id) FILTER (
           WHERE w.status = 'requested' AND w.updated < now() - make_interval(secs => sqlc.arg(older_than)::float8)
             AND w.waits IS NULL), '{}')::bigint[] AS ids
FROM (
    SELECT e.id, e.status, e.updated,
           (SELECT q.id FROM execution_admission_entry q WHERE q.execution_id = e.id) AS waits
    FROM execution e
    WHERE e.finished_status IS NULL AND e.id > sqlc.arg(after)::bigint
    ORDER BY e.id
    LIMIT sqlc.arg(window_size)::int
) w;

-- name: FindLostRequestsByStatus :one
-- The same on an adopted database, which keeps its index on status.
SELECT coalesce(max(w.id), 0)::bigint AS last, count(*)::int AS scanned,
       coalesce(array_agg(w.id ORDER BY w.id) FILTER (
           WHERE w.updated < now() - make_interval(secs => sqlc.arg(older_than)::float8) AND w.waits IS NULL), '{}')::bigint[] AS ids
FROM (
    SELECT e.id, e.updated,
           (SELECT q.id FROM execution_admission_entry q WHERE q.execution_id = e.id) AS waits
    FROM execution e
    WHERE e.status = 'requested' AND e.id > sqlc.arg(after)::bigint
    ORDER BY e.id
    LIMIT sqlc.arg(window_size)::int
) w;

-- name: FindTerminalHolders :many
-- Executions that hold a slot, within a window of ids. due are those that ended
-- long enough ago to have been reported; the others the next pass looks at again.
SELECT e.id, (e.status IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned')
              AND e.updated < now() - make_interval(secs => sqlc.arg(older_than)::float8))::bool AS due
FROM execution e
WHERE e.id > sqlc.arg(after)::bigint AND e.id <= sqlc.arg(until)::bigint
  AND e.admission_state_id IS NOT NULL
ORDER BY e.id;

-- name: ExecutionIDBounds :one
SELECT coalesce((SELECT max(id) FROM execution), 0)::bigint AS newest,
       coalesce((SELECT min(e.id) FROM execution e WHERE e.finished_status IS NULL), 0)::bigint AS oldest_live;

-- name: NewestExecutionID :one
SELECT coalesce((SELECT max(id) FROM execution), 0)::bigint AS newest;

-- name: FindUnfilledQueues :one
-- Queues with a free slot and a waiter, one window of queues at a time. There
-- should be none but those that wait for a worker, and those whose policy was
-- changed to let more run than the queue's row knows.
SELECT coalesce(max(w.id), 0)::bigint AS last, count(*)::int AS scanned,
       coalesce(array_agg(w.id ORDER BY w.id) FILTER (WHERE w.queued_count > 0 AND NOT w.paused AND w.active_count <
           CASE WHEN w.queued_count > 0 THEN greatest(w.max_concurrent, coalesce(
               (SELECT p.threshold FROM policy p WHERE p.action = w.action_id ORDER BY p.created DESC, p.id DESC LIMIT 1),
               2147483647)) END), '{}')::bigint[] AS ids
FROM (
    SELECT s.id, s.action_id, s.queued_count, s.active_count, s.max_concurrent, s.paused
    FROM execution_admission_state s
    WHERE s.id > sqlc.arg(after)::bigint
    ORDER BY s.id
    LIMIT sqlc.arg(window_size)::int
) w;

-- name: FindEndedWaiters :one
-- Entries whose execution has ended or left requested by another's hand, one
-- window of entries at a time.
SELECT coalesce(max(w.id), 0)::bigint AS last, count(*)::int AS scanned,
       coalesce(array_agg(w.execution_id ORDER BY w.id) FILTER (WHERE w.status <> 'requested'), '{}')::bigint[] AS ids
FROM (
    SELECT q.id, q.execution_id, e.status
    FROM execution_admission_entry q
    JOIN execution e ON e.id = q.execution_id
    WHERE q.id > sqlc.arg(after)::bigint
    ORDER BY q.id
    LIMIT sqlc.arg(window_size)::int
) w;

-- name: IsAdopted :one
-- An adopted database keeps its own execution table without our generated
-- column.
SELECT NOT EXISTS (
    SELECT 1 FROM information_schema.columns
    WHERE table_schema = current_schema() AND table_name = 'execution' AND column_name = 'finished_status'
) AS adopted;
