-- The queues of admission. Every statement that reads entries or executions to
-- decide something runs after LockAdmissionStates in the same transaction, so
-- that its snapshot is newer than every earlier decision.
--
-- Every statement has one sensible plan whatever the statistics say: queue
-- tables are analysed while empty all their life. Rows are found by key, heads
-- by LATERAL … LIMIT, existence by scalar subquery. Rows named by arrays are
-- looked up by = ANY (ARRAY[…]): unlike =, it can be nothing but a look-up by
-- key, also in a plan that was made while the table was empty.

-- name: LockAdmissionStates :many
-- Locks the named queues and, oldest waiter first, up to blocked_limit queues
-- whose head waits for a worker. In order of id: the lock order of the engine.
SELECT id, action_id, (group_key IS NOT NULL)::bool AS grouped, max_concurrent, unlimited, paused,
       active_count, queued_count, head_order, next_queue_order
FROM execution_admission_state
WHERE id = ANY (ARRAY(
    SELECT unnest(sqlc.arg(ids)::bigint[])
    UNION
    SELECT b.state_id FROM (
        SELECT state_id FROM admission_blocked ORDER BY ticket LIMIT sqlc.arg(blocked_limit)::int) b))
ORDER BY id
FOR UPDATE;

-- name: LockWorkerLoads :many
-- live is judged here, by the database's clock, so that a worker that drained
-- or fell silent since the fleet was read is not chosen.
SELECT l.worker, l.assigned,
       coalesce(w.status = 'active' AND NOT w.cordoned AND NOT w.draining
                AND w.last_heartbeat > now() - make_interval(secs => sqlc.arg(stale_after)::float8), false)::bool AS live
FROM worker_load l
JOIN worker w ON w.id = ANY (ARRAY[l.worker])
WHERE l.worker = ANY (sqlc.arg(workers)::bigint[])
ORDER BY l.worker
FOR UPDATE OF l;

-- name: ReadAdmissionFacts :many
-- What the rows say now that their queues are locked.
SELECT e.id, e.status, e.updated, e.attempt, e.worker, e.admission_state_id,
       coalesce((SELECT q.state_id FROM execution_admission_entry q WHERE q.execution_id = e.id), 0)::bigint AS waits
FROM execution e
WHERE e.id = ANY (sqlc.arg(ids)::bigint[]);

-- name: ReadAdmissionHeads :many
-- The first waiters of each queue, as many as could be promoted once the
-- planned releases are done and two more in case some have been cancelled, at
-- most cap a queue and blocked_cap one that is only tried. OFFSET 0 keeps the queues' rows to one look-up each: beside
-- the list of blocked queues, which has no index on its order, the planner does
-- not tell a look-up from a scan of all queues.
SELECT s.id AS state_id, h.queue_order, h.ticket, e.id AS execution_id, e.status,
       s.action_id, e.action_ref, e.config, e.updated, e.attempt
FROM (
    SELECT unnest(sqlc.arg(ids)::bigint[]) AS state_id, unnest(sqlc.arg(releases)::int[]) AS releases,
           sqlc.arg(cap)::bigint AS most
    UNION ALL
    SELECT b.state_id, 0, sqlc.arg(blocked_cap)::bigint FROM (
        SELECT unnest(ARRAY(
            SELECT state_id FROM admission_blocked ORDER BY ticket LIMIT sqlc.arg(blocked_limit)::int)) AS state_id) b
    WHERE b.state_id <> ALL (sqlc.arg(ids)::bigint[])
) r
CROSS JOIN LATERAL (SELECT * FROM execution_admission_state WHERE id = r.state_id OFFSET 0) s
CROSS JOIN LATERAL (
    SELECT q.execution_id, q.queue_order, q.id AS ticket
    FROM execution_admission_entry q
    WHERE q.state_id = s.id AND q.lane = 0 AND q.queue_order >= s.head_order
    ORDER BY q.queue_order
    LIMIT CASE WHEN s.max_concurrent::bigint - s.active_count + r.releases <= 0 THEN 0
               ELSE least(s.max_concurrent::bigint - s.active_count + r.releases + 2, r.most) END
) h
JOIN execution e ON e.id = ANY (ARRAY[h.execution_id])
WHERE s.queued_count > 0 AND NOT s.paused
ORDER BY s.id, h.queue_order;

-- name: ReleaseHolders :exec
-- Clears the holder of terminal executions: once each, and only the holder
-- that was read under the lock (invariant S7).
WITH changed AS (
    UPDATE execution e
    SET admission_state_id = NULL
    FROM (
        SELECT unnest(sqlc.arg(ids)::bigint[]) AS id, unnest(sqlc.arg(states)::bigint[]) AS state
    ) r
    WHERE e.id = ANY (ARRAY[r.id]) AND e.admission_state_id = r.state
      AND e.status IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned')
    RETURNING e.id
)
SELECT attune_expect((SELECT count(*) FROM changed), cardinality(sqlc.arg(ids)::bigint[])::bigint, 'released holders');

-- name: GrantSlots :exec
-- Admits and hands over in one step: requested → scheduled with worker,
-- attempt and holder. The arrays are in order of id.
WITH changed AS (
    UPDATE execution e
    SET status = 'scheduled', worker = r.worker, attempt = r.attempt, admission_state_id = r.state,
        action = coalesce(e.action, r.action)
    FROM (
        SELECT unnest(sqlc.arg(ids)::bigint[]) AS id, unnest(sqlc.arg(states)::bigint[]) AS state,
               unnest(sqlc.arg(workers)::bigint[]) AS worker, unnest(sqlc.arg(attempts)::int[]) AS attempt,
               unnest(sqlc.arg(actions)::bigint[]) AS action
    ) r
    WHERE e.id = ANY (ARRAY[r.id]) AND e.status = 'requested' AND e.attempt = r.attempt - 1 AND e.admission_state_id IS NULL
    RETURNING e.id
)
SELECT attune_expect((SELECT count(*) FROM changed), cardinality(sqlc.arg(ids)::bigint[])::bigint, 'granted slots');

-- name: InsertAdmissionEntries :exec
INSERT INTO execution_admission_entry (state_id, execution_id, status, queue_order)
SELECT r.state, r.execution, 'queued', r.queue_order
FROM (
    SELECT unnest(sqlc.arg(states)::bigint[]) AS state, unnest(sqlc.arg(executions)::bigint[]) AS execution,
           unnest(sqlc.arg(orders)::bigint[]) AS queue_order
) r;

-- name: DeleteAdmissionEntries :exec
WITH gone AS (
    DELETE FROM execution_admission_entry
    WHERE execution_id = ANY (sqlc.arg(executions)::bigint[])
    RETURNING 1
)
SELECT attune_expect((SELECT count(*) FROM gone), cardinality(sqlc.arg(executions)::bigint[])::bigint, 'deleted entries');

-- name: UpdateAdmissionStates :exec
-- Absolute values: the rows are locked and the ledger is their newer version.
UPDATE execution_admission_state s
SET max_concurrent = r.max_concurrent, unlimited = r.unlimited, active_count = r.active, queued_count = r.queued,
    head_order = r.head_order, next_queue_order = r.next_order,
    total_enqueued = s.total_enqueued + r.enqueued, total_completed = s.total_completed + r.completed
FROM (
    SELECT unnest(sqlc.arg(ids)::bigint[]) AS id, unnest(sqlc.arg(max_concurrent)::int[]) AS max_concurrent,
           unnest(sqlc.arg(unlimited)::bool[]) AS unlimited, unnest(sqlc.arg(active)::int[]) AS active,
           unnest(sqlc.arg(queued)::int[]) AS queued, unnest(sqlc.arg(head_orders)::bigint[]) AS head_order,
           unnest(sqlc.arg(next_orders)::bigint[]) AS next_order, unnest(sqlc.arg(enqueued)::bigint[]) AS enqueued,
           unnest(sqlc.arg(completed)::bigint[]) AS completed
) r
WHERE s.id = ANY (ARRAY[r.id]);

-- name: UpdateWorkerLoads :exec
UPDATE worker_load w
SET assigned = r.assigned
FROM (
    SELECT unnest(sqlc.arg(workers)::bigint[]) AS worker, unnest(sqlc.arg(assigned)::int[]) AS assigned
) r
WHERE w.worker = ANY (ARRAY[r.worker]);

-- name: BlockQueues :exec
INSERT INTO admission_blocked (state_id, ticket, reason)
SELECT r.state, h.id, r.reason
FROM (
    SELECT unnest(sqlc.arg(states)::bigint[]) AS state, unnest(sqlc.arg(reasons)::text[]) AS reason
) r
JOIN execution_admission_state s ON s.id = ANY (ARRAY[r.state])
CROSS JOIN LATERAL (
    SELECT q.id FROM execution_admission_entry q
    WHERE q.state_id = s.id AND q.lane = 0 AND q.queue_order >= s.head_order
    ORDER BY q.queue_order LIMIT 1
) h
ON CONFLICT (state_id) DO UPDATE
SET ticket = excluded.ticket, reason = excluded.reason
WHERE admission_blocked.ticket <> excluded.ticket OR admission_blocked.reason IS DISTINCT FROM excluded.reason;

-- name: UnblockQueues :exec
DELETE FROM admission_blocked WHERE state_id = ANY (sqlc.arg(states)::bigint[]);

-- name: ApplyQueueStats :exec
-- One delta a touched action, in order of action so that the table
-- that others read is true with every commit. oldest_enqueued_at looks at the
-- queues of this batch; an action with many groups is refreshed by the sweep.
INSERT INTO queue_stats AS t (action_id, queue_length, active_count, max_concurrent, total_enqueued, total_completed,
                              oldest_enqueued_at, last_updated)
SELECT r.action, r.queued, r.active, r.max_concurrent, r.enqueued, r.completed, h.oldest, now()
FROM (
    SELECT unnest(sqlc.arg(actions)::bigint[]) AS action, unnest(sqlc.arg(queued)::int[]) AS queued,
           unnest(sqlc.arg(active)::int[]) AS active, unnest(sqlc.arg(max_concurrent)::int[]) AS max_concurrent,
           unnest(sqlc.arg(enqueued)::bigint[]) AS enqueued, unnest(sqlc.arg(completed)::bigint[]) AS completed
) r
CROSS JOIN LATERAL (
    SELECT min(e.enqueued_at) AS oldest
    FROM execution_admission_state s
    CROSS JOIN LATERAL (
        SELECT q.enqueued_at FROM execution_admission_entry q
        WHERE q.state_id = s.id AND q.lane = 0 AND q.queue_order >= s.head_order
        ORDER BY q.queue_order LIMIT 1
    ) e
    WHERE s.id = ANY (sqlc.arg(states)::bigint[]) AND s.action_id = r.action AND s.queued_count > 0
) h
ORDER BY r.action
ON CONFLICT (action_id) DO UPDATE
SET queue_length = t.queue_length + excluded.queue_length,
    active_count = t.active_count + excluded.active_count,
    max_concurrent = excluded.max_concurrent,
    total_enqueued = t.total_enqueued + excluded.total_enqueued,
    total_completed = t.total_completed + excluded.total_completed,
    oldest_enqueued_at = excluded.oldest_enqueued_at,
    last_updated = excluded.last_updated;

-- name: EnsureAdmissionStates :exec
INSERT INTO execution_admission_state (action_id, group_key, max_concurrent, unlimited)
SELECT r.action, nullif(r.group_key, ''), r.max_concurrent, r.unlimited
FROM (
    SELECT unnest(sqlc.arg(actions)::bigint[]) AS action, unnest(sqlc.arg(groups)::text[]) AS group_key,
           unnest(sqlc.arg(max_concurrent)::int[]) AS max_concurrent, unnest(sqlc.arg(unlimited)::bool[]) AS unlimited
) r
WHERE EXISTS (SELECT 1 FROM action a WHERE a.id = r.action)
ORDER BY r.action, r.group_key
ON CONFLICT (action_id, group_key_normalized) DO NOTHING;

-- name: FindAdmissionStates :many
SELECT s.id, s.action_id, coalesce(s.group_key_normalized, '')::text AS group_key
FROM (
    SELECT unnest(sqlc.arg(actions)::bigint[]) AS action, unnest(sqlc.arg(groups)::text[]) AS group_key
) r
CROSS JOIN LATERAL (
    SELECT * FROM execution_admission_state
    WHERE action_id = r.action AND group_key_normalized = r.group_key OFFSET 0
) s;
