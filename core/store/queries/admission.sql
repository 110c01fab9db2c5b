-- Queues of admission. Every statement that reads entries or executions for a decision runs after
-- LockAdmissionStates in the same transaction: its snapshot is then newer than every earlier
-- decision.
--
-- Every statement has one sensible plan, whatever the statistics say, because queue tables are
-- analysed while they are empty. Rows are found by key, heads by LATERAL … LIMIT, existence by
-- scalar subquery. Rows named by arrays are compared with = ANY (ARRAY[…]): unlike =, that is
-- always a look-up by key, also in a plan that was made for an empty table.

-- name: LockAdmissionScopes :many
-- Locks the shared limits that a batch may take from or return to. It precedes all other locks,
-- because the free slots read here decide which queues are tried.
SELECT id, kind, max_concurrent, active_count, next_at, period_start, used
FROM admission_scope
WHERE id = ANY (sqlc.arg(ids)::bigint[])
ORDER BY id
FOR UPDATE;

-- name: LockAdmissionStates :many
-- Locks the named queues, in order of id (the engine's lock order), and waits for other holders.
SELECT id, action_id, (group_key IS NOT NULL)::bool AS grouped, max_concurrent, unlimited, paused,
       active_count, queued_count, queued_high, queued_low, head_order, head_high, head_low,
       next_queue_order, front_order, lane_streak, limit_override, max_queued, queue_timeout_seconds,
       adaptive_limit, adaptive_at, resumed_at
FROM execution_admission_state
WHERE id = ANY (sqlc.arg(ids)::bigint[])
ORDER BY id
FOR UPDATE;

-- name: ReadAdmissionStates :many
-- Reads the named queues without locks, for a batch that expects them to be open. lock_timeout
-- bounds the waits of its writes.
WITH brief AS MATERIALIZED (SELECT set_config('lock_timeout', sqlc.arg(lock_timeout)::text, true))
SELECT id, action_id, (group_key IS NOT NULL)::bool AS grouped, max_concurrent, unlimited, paused,
       active_count, queued_count, queued_high, queued_low, head_order, head_high, head_low,
       next_queue_order, front_order, lane_streak, limit_override, max_queued, queue_timeout_seconds,
       adaptive_limit, adaptive_at, resumed_at
FROM execution_admission_state
CROSS JOIN brief
WHERE id = ANY (sqlc.arg(ids)::bigint[]);

-- name: LockFreeAdmissionStates :many
-- Locks the named queues and the queues that attune_blocked finds, except queues that another batch
-- holds and queues in besides, which the batch has locked already. It never waits, so it may come
-- after any lock.
SELECT id, action_id, (group_key IS NOT NULL)::bool AS grouped, max_concurrent, unlimited, paused,
       active_count, queued_count, queued_high, queued_low, head_order, head_high, head_low,
       next_queue_order, front_order, lane_streak, limit_override, max_queued, queue_timeout_seconds,
       adaptive_limit, adaptive_at, resumed_at
FROM execution_admission_state
WHERE id = ANY (ARRAY(
    SELECT unnest(sqlc.arg(ids)::bigint[])
    UNION
    SELECT unnest(attune_blocked(sqlc.arg(blocked_limit)::int, sqlc.arg(scopes)::bigint[], sqlc.arg(scope_maxima)::bigint[], sqlc.arg(scope_releases)::bigint[]))
    EXCEPT
    SELECT unnest(sqlc.arg(besides)::bigint[])))
ORDER BY id
FOR UPDATE SKIP LOCKED;

-- name: ReadAdmissionMoment :one
-- The start of the transaction, the time under the locks, the version of the rules, and when the
-- first queue that waits for a point in time is due. workers and assigned are the executions at
-- each worker; a missing worker has none. Its row is not locked: ChangeWorkerLoads checks the
-- capacity again. blocked is true if any queue waits for a shared limit or a worker.
SELECT now()::timestamptz AS now, clock_timestamp()::timestamptz AS clock, (SELECT epoch FROM admission_epoch)::bigint AS epoch,
       coalesce((SELECT b.wake FROM admission_blocked b WHERE b.wake > now() ORDER BY b.wake LIMIT 1), 'epoch')::timestamptz AS due,
       ((SELECT count(*) FROM (SELECT b.wake FROM admission_blocked b WHERE b.wake <= now()
                               LIMIT sqlc.arg(blocked_limit)::int + 1) o) > sqlc.arg(blocked_limit)::int)::bool AS more_due,
       EXISTS (SELECT FROM admission_blocked)::bool AS blocked, w.workers::bigint[] AS workers, w.assigned::int[] AS assigned
FROM (SELECT coalesce(array_agg(l.worker), '{}') AS workers, coalesce(array_agg(l.assigned), '{}') AS assigned
      FROM worker_load l WHERE l.assigned > 0) w;

-- name: CountAdmissionEntries :many
-- The true length of the lanes of a queue whose count is in doubt.
SELECT s.id AS state_id,
       (SELECT count(*) FROM execution_admission_entry e WHERE e.state_id = s.id AND e.lane = 1)::int AS high,
       (SELECT count(*) FROM execution_admission_entry e WHERE e.state_id = s.id AND e.lane = 0)::int AS normal,
       (SELECT count(*) FROM execution_admission_entry e WHERE e.state_id = s.id AND e.lane = -1)::int AS low
FROM execution_admission_state s
WHERE s.id = ANY (sqlc.arg(ids)::bigint[]);

-- name: LockLostHolders :many
-- What deleted executions held. Another replica may have returned it already.
SELECT id, execution, coalesce(state_id, 0)::bigint AS state_id, worker, scopes
FROM lost_holder
WHERE id = ANY (sqlc.arg(ids)::bigint[])
ORDER BY id
FOR UPDATE;

-- name: DeleteLostHolders :exec
DELETE FROM lost_holder WHERE id = ANY (sqlc.arg(ids)::bigint[]);

-- name: ReadWorkerStandings :many
-- live workers may receive work, by the database's clock. gone workers have been silent for too
-- long, whatever their status.
SELECT w.id,
       coalesce(w.status = 'active' AND NOT w.cordoned AND NOT w.draining AND w.suspect_since IS NULL
                AND w.heartbeat_seen > now() - make_interval(secs => sqlc.arg(stale_after)::float8), false)::bool AS live,
       (coalesce(w.heartbeat_seen, '-infinity') < now() - make_interval(secs => sqlc.arg(stale_after)::float8))::bool AS gone
FROM worker w
WHERE w.id = ANY (sqlc.arg(workers)::bigint[]);

-- name: ReadAdmissionHeads :many
-- The heads of each lane of each queue: as many as the planned releases can promote, and two more
-- in case some are cancelled, at most cap for a wanted queue and blocked_cap for a tried one. free is
-- the number of those without the two. cancel is what a cancel request says. OFFSET 0 keeps the queues' rows
-- to one look-up each.
SELECT s.id AS state_id, least(s.free, s.room)::int AS free, h.lane, h.queue_order, h.ticket, e.id AS execution_id, e.status,
       s.action_id, e.action_ref, e.config, e.updated, e.attempt, e.created,
       attune_own_placement(e)::jsonb AS placement,
       coalesce(CASE WHEN e.retry_count > 0 THEN
           (SELECT t.avoid FROM execution_retry t WHERE t.execution = ANY (ARRAY[e.id])) END, '{}')::bigint[] AS avoid,
       (SELECT attune_cancel_words(c.execution) FROM execution_cancel c WHERE c.execution = ANY (ARRAY[e.id]))::jsonb AS cancel
FROM (
    SELECT unnest(sqlc.arg(ids)::bigint[]) AS state_id, unnest(sqlc.arg(releases)::int[]) AS releases,
           sqlc.arg(cap)::bigint AS most
    UNION ALL
    SELECT b.state_id, 0, sqlc.arg(blocked_cap)::bigint FROM (
        SELECT DISTINCT unnest(attune_blocked(
            sqlc.arg(blocked_limit)::int, sqlc.arg(scopes)::bigint[], sqlc.arg(scope_maxima)::bigint[], sqlc.arg(scope_releases)::bigint[])) AS state_id) b
    WHERE b.state_id <> ALL (sqlc.arg(ids)::bigint[])
) r
CROSS JOIN LATERAL (
    SELECT t.id, t.action_id, t.head_high, t.head_order, t.head_low, t.queued_high, t.queued_count, t.queued_low,
                     t.max_concurrent::bigint - t.active_count + r.releases AS free,
                     CASE WHEN t.queued_count = 0 OR t.paused OR t.max_concurrent::bigint - t.active_count + r.releases <= 0 THEN 0
                     ELSE least(t.max_concurrent::bigint - t.active_count + r.releases + 2, r.most) END AS room
    FROM execution_admission_state t WHERE t.id = r.state_id OFFSET 0
) s
CROSS JOIN LATERAL (
    (SELECT q.execution_id, q.lane, q.queue_order, q.id AS ticket
     FROM execution_admission_entry q
     WHERE q.state_id = s.id AND q.lane = 1 AND q.queue_order >= s.head_high
     ORDER BY q.queue_order LIMIT CASE WHEN s.queued_high = 0 THEN 0 ELSE s.room END)
    UNION ALL
    (SELECT q.execution_id, q.lane, q.queue_order, q.id
     FROM execution_admission_entry q
     WHERE q.state_id = s.id AND q.lane = 0 AND q.queue_order >= s.head_order
     ORDER BY q.queue_order LIMIT CASE WHEN s.queued_count - s.queued_high - s.queued_low = 0 THEN 0 ELSE s.room END)
    UNION ALL
    (SELECT q.execution_id, q.lane, q.queue_order, q.id
     FROM execution_admission_entry q
     WHERE q.state_id = s.id AND q.lane = -1 AND q.queue_order >= s.head_low
     ORDER BY q.queue_order LIMIT CASE WHEN s.queued_low = 0 THEN 0 ELSE s.room END)
) h
JOIN execution e ON e.id = ANY (ARRAY[h.execution_id])
ORDER BY s.id, h.lane DESC, h.queue_order;

-- name: GrantSlots :exec
-- Admits and dispatches the executions in one step, in order of id: requested → scheduled with
-- worker and attempt, and a holder. admitted_at is the time that rates use, not the start of the
-- transaction. epoch is the version of the rules by which an optimistic batch decided, 0 for any
-- other: a newer shared limit counts the running executions under the locks that the batch has now.
WITH granted AS (
    UPDATE execution e
    SET status = 'scheduled', worker = r.worker, attempt = r.attempt, action = coalesce(e.action, r.action), admitted_at = sqlc.arg(moment)::timestamptz
    FROM (
        SELECT unnest(sqlc.arg(ids)::bigint[]) AS id, unnest(sqlc.arg(states)::bigint[]) AS state,
               unnest(sqlc.arg(workers)::bigint[]) AS worker, unnest(sqlc.arg(attempts)::int[]) AS attempt,
               unnest(sqlc.arg(actions)::bigint[]) AS action
    ) r
    WHERE e.id = ANY (ARRAY[r.id]) AND e.status = 'requested' AND e.attempt = r.attempt - 1
    RETURNING e.id, r.state, e.worker, e.attempt
), held AS (
    INSERT INTO execution_holder (execution, state_id, worker, attempt, granted_at)
    SELECT g.id, g.state, g.worker, g.attempt, sqlc.arg(moment)::timestamptz FROM granted g
    ON CONFLICT (execution) DO NOTHING
    RETURNING 1
)
SELECT attune_expect(
    CASE WHEN sqlc.arg(epoch)::bigint = 0 OR sqlc.arg(epoch)::bigint = (SELECT a.epoch FROM admission_epoch a) THEN (SELECT count(*) FROM held) END,
    cardinality(sqlc.arg(ids)::bigint[])::bigint, 'granted slots');

-- name: ReleaseSlots :exec
-- Releases each holder once, only as it was read under the lock, and only if its execution has
-- ended (invariant S7). It does not write the execution.
WITH released AS (
    DELETE FROM execution_holder h
    USING (SELECT unnest(sqlc.arg(ids)::bigint[]) AS id, unnest(sqlc.arg(states)::bigint[]) AS state) r
    WHERE h.execution = ANY (ARRAY[r.id]) AND h.state_id = ANY (ARRAY[r.state])
      AND (SELECT e.status FROM execution e WHERE e.id = ANY (ARRAY[r.id])) IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned')
    RETURNING 1
)
SELECT attune_expect((SELECT count(*) FROM released), cardinality(sqlc.arg(ids)::bigint[])::bigint, 'released slots');

-- name: BriefLocks :one
-- Bounds the waits for locks of the transaction.
SELECT set_config('lock_timeout', sqlc.arg(lock_timeout)::text, true);

-- name: ReleaseCompleted :one
-- Releases holders and their workers' capacity like ReleaseSlots and ChangeWorkerLoads, without a read before: only
-- if all executions completed, hold no slot of a shared limit, are no tasks of workflows and ask nothing, if the
-- rules have this epoch, and if no queue waits for what they return. The arrays are their actions, and the seconds from
-- the start to the end and from the request to the start.
WITH completed AS (
    SELECT r.id, r.state, e.action_ref, e.created, e.started_at, e.finished_at
    FROM (SELECT unnest(sqlc.arg(ids)::bigint[]) AS id, unnest(sqlc.arg(states)::bigint[]) AS state) r
    JOIN execution e ON e.id = ANY (ARRAY[r.id])
    WHERE e.status = 'completed' AND jsonb_typeof(e.workflow_task) IS DISTINCT FROM 'object'
      AND (e.result IS NULL OR pg_column_size(e.result) >= 1048576 OR attune_inquiry_of(e.result) IS NULL)
      AND NOT EXISTS (SELECT FROM execution_slot t WHERE t.execution = ANY (ARRAY[r.id]))
), released AS (
    DELETE FROM execution_holder h USING completed c
    WHERE h.execution = ANY (ARRAY[c.id]) AND h.state_id = ANY (ARRAY[c.state])
    RETURNING h.worker
), returned AS (
    UPDATE worker_load l SET assigned = greatest(l.assigned - w.n, 0)
    FROM (SELECT d.worker, count(*)::int AS n FROM released d GROUP BY d.worker ORDER BY d.worker) w
    WHERE l.worker = ANY (ARRAY[w.worker])
)
SELECT attune_expect(
           CASE WHEN (SELECT a.epoch FROM admission_epoch a) = sqlc.arg(epoch)::bigint AND NOT EXISTS (SELECT FROM admission_blocked)
                THEN (SELECT count(*) FROM released) END,
           cardinality(sqlc.arg(ids)::bigint[])::bigint, 'released executions'),
       coalesce(array_agg(c.action_ref), '{}')::text[] AS action_refs,
       coalesce(array_agg(coalesce(extract(epoch FROM c.finished_at - c.started_at), 0)), '{}')::float8[] AS ran,
       coalesce(array_agg(coalesce(extract(epoch FROM c.started_at - c.created), 0)), '{}')::float8[] AS waited
FROM completed c;

-- name: TakeScopeSlots :exec
INSERT INTO execution_slot (execution, scope_id)
SELECT r.execution, r.scope
FROM (
    SELECT unnest(sqlc.arg(executions)::bigint[]) AS execution, unnest(sqlc.arg(scopes)::bigint[]) AS scope
) r;

-- name: ReturnScopeSlots :exec
-- Returns each slot once, and only as it was read under the lock (invariant S7).
WITH gone AS (
    DELETE FROM execution_slot
    WHERE execution = ANY (sqlc.arg(executions)::bigint[])
    RETURNING 1
)
SELECT attune_expect((SELECT count(*) FROM gone), sqlc.arg(expected)::bigint, 'returned slots');

-- name: InsertAdmissionEntries :exec
INSERT INTO execution_admission_entry (state_id, execution_id, status, queue_order, lane)
SELECT r.state, r.execution, 'queued', r.queue_order, r.lane
FROM (
    SELECT unnest(sqlc.arg(states)::bigint[]) AS state, unnest(sqlc.arg(executions)::bigint[]) AS execution,
           unnest(sqlc.arg(orders)::bigint[]) AS queue_order, unnest(sqlc.arg(lanes)::smallint[]) AS lane
) r;

-- name: DeleteAdmissionEntries :exec
WITH gone AS (
    DELETE FROM execution_admission_entry
    WHERE execution_id = ANY (sqlc.arg(executions)::bigint[])
    RETURNING 1
)
SELECT attune_expect((SELECT count(*) FROM gone), cardinality(sqlc.arg(executions)::bigint[])::bigint, 'deleted entries');

-- name: UpdateAdmissionStates :exec
-- Writes absolute values: the rows are locked, and the ledger is their newer version.
UPDATE execution_admission_state s
SET active_count = r.active, queued_count = r.queued, head_order = r.head_order, next_queue_order = r.next_order,
    total_enqueued = s.total_enqueued + r.enqueued, total_completed = s.total_completed + r.completed
FROM (
    SELECT unnest(sqlc.arg(ids)::bigint[]) AS id, unnest(sqlc.arg(active)::int[]) AS active,
           unnest(sqlc.arg(queued)::int[]) AS queued, unnest(sqlc.arg(head_orders)::bigint[]) AS head_order,
           unnest(sqlc.arg(next_orders)::bigint[]) AS next_order, unnest(sqlc.arg(enqueued)::bigint[]) AS enqueued,
           unnest(sqlc.arg(completed)::bigint[]) AS completed
) r
WHERE s.id = ANY (ARRAY[r.id]);

-- name: UpdateAdmissionLanes :exec
-- For queues with priorities, or with entries before all others.
UPDATE execution_admission_state s
SET queued_high = r.queued_high, queued_low = r.queued_low, head_high = r.head_high, head_low = r.head_low,
    front_order = r.front_order, lane_streak = r.streak
FROM (
    SELECT unnest(sqlc.arg(ids)::bigint[]) AS id, unnest(sqlc.arg(queued_high)::int[]) AS queued_high,
           unnest(sqlc.arg(queued_low)::int[]) AS queued_low, unnest(sqlc.arg(head_high)::bigint[]) AS head_high,
           unnest(sqlc.arg(head_low)::bigint[]) AS head_low, unnest(sqlc.arg(front_orders)::bigint[]) AS front_order,
           unnest(sqlc.arg(streaks)::smallint[]) AS streak
) r
WHERE s.id = ANY (ARRAY[r.id]);

-- name: OrderLateEntries :exec
-- Puts executions whose request was lost before the entries that were requested after them. The end
-- of each lane, from the first such entry on, gets new orders, so that no order is used twice.
-- Entries before the lane's first order keep their place, because a policy put them there. It needs
-- the lock of UpdateAdmissionStates and runs after it.
WITH late AS (
    SELECT q.id, q.state_id, q.lane, q.execution_id, q.queue_order
    FROM execution_admission_entry q
    WHERE q.execution_id = ANY (sqlc.arg(executions)::bigint[])
), placed AS (
    SELECT l.id, l.state_id, l.lane, l.execution_id,
           coalesce((SELECT max(q.queue_order) FROM execution_admission_entry q
                     WHERE q.state_id = l.state_id AND q.lane = l.lane AND q.queue_order < l.queue_order
                       AND (q.execution_id < l.execution_id OR q.queue_order < 1)
                       AND q.execution_id <> ALL (sqlc.arg(executions)::bigint[])), 0) AS behind
    FROM late l
), lanes AS (
    SELECT p.state_id, p.lane, min(p.behind) AS behind FROM placed p GROUP BY p.state_id, p.lane
), moved AS (
    SELECT q.id, q.state_id,
           row_number() OVER (PARTITION BY q.state_id
                              ORDER BY q.lane, coalesce(p.behind, q.queue_order), p.id IS NOT NULL, q.execution_id) - 1 AS place
    FROM lanes n
    JOIN execution_admission_entry q ON q.state_id = n.state_id AND q.lane = n.lane AND q.queue_order > n.behind
    LEFT JOIN placed p ON p.id = q.id
), counted AS (
    UPDATE execution_admission_state s
    SET next_queue_order = s.next_queue_order + m.entries
    FROM (SELECT o.state_id, count(*) AS entries FROM moved o GROUP BY o.state_id) m
    WHERE s.id = m.state_id
    RETURNING s.id, s.next_queue_order - m.entries AS first
)
UPDATE execution_admission_entry q
SET queue_order = c.first + m.place
FROM moved m JOIN counted c ON c.id = m.state_id
WHERE q.id = m.id;

-- name: UpdateAdmissionLimits :exec
-- For queues whose limits differ from their row. 0 means none.
UPDATE execution_admission_state s
SET max_concurrent = r.max_concurrent, unlimited = r.unlimited, max_queued = nullif(r.max_queued, 0),
    queue_timeout_seconds = nullif(r.timeout, 0), adaptive_limit = nullif(r.adaptive, 0), adaptive_at = r.adaptive_at
FROM (
    SELECT unnest(sqlc.arg(ids)::bigint[]) AS id, unnest(sqlc.arg(max_concurrent)::int[]) AS max_concurrent,
           unnest(sqlc.arg(unlimited)::bool[]) AS unlimited, unnest(sqlc.arg(max_queued)::int[]) AS max_queued,
           unnest(sqlc.arg(timeouts)::int[]) AS timeout, unnest(sqlc.arg(adaptive)::float8[]) AS adaptive,
           unnest(sqlc.arg(adaptive_at)::timestamptz[]) AS adaptive_at
) r
WHERE s.id = ANY (ARRAY[r.id]);

-- name: UpdateAdmissionScopes :exec
-- A policy of -1 keeps the policy of the row: the batch only returned slots.
UPDATE admission_scope s
SET active_count = r.active, max_concurrent = r.max_concurrent, next_at = r.next_at, period_start = r.period_start,
    used = r.used,
    policy = CASE WHEN r.policy < 0 THEN s.policy ELSE (SELECT p.id FROM policy p WHERE p.id = r.policy) END,
    policy_ref = CASE WHEN r.policy < 0 THEN s.policy_ref ELSE r.policy_ref END,
    window_seconds = CASE WHEN r.policy < 0 THEN s.window_seconds ELSE nullif(r.window_seconds, 0) END,
    burst = CASE WHEN r.policy < 0 THEN s.burst ELSE nullif(r.burst, 0) END
FROM (
    SELECT unnest(sqlc.arg(ids)::bigint[]) AS id, unnest(sqlc.arg(active)::int[]) AS active,
           unnest(sqlc.arg(max_concurrent)::int[]) AS max_concurrent, unnest(sqlc.arg(next_at)::timestamptz[]) AS next_at,
           unnest(sqlc.arg(period_start)::timestamptz[]) AS period_start, unnest(sqlc.arg(used)::int[]) AS used,
           unnest(sqlc.arg(policies)::bigint[]) AS policy, unnest(sqlc.arg(policy_refs)::text[]) AS policy_ref,
           unnest(sqlc.arg(window_seconds)::int[]) AS window_seconds, unnest(sqlc.arg(bursts)::int[]) AS burst
) r
WHERE s.id = ANY (ARRAY[r.id]);

-- name: ChangeWorkerLoads :exec
-- Takes and returns capacity at workers. A worker that receives executions must be available, and
-- must not exceed most if the batch adds more than it returns; the batch chose both without a lock.
-- Zero rows mean that another batch took the capacity, or that the worker left: the batch decides
-- again.
WITH changed AS (
    UPDATE worker_load l
    SET assigned = greatest(l.assigned + r.change, 0)
    FROM (
        SELECT unnest(sqlc.arg(workers)::bigint[]) AS worker, unnest(sqlc.arg(changes)::int[]) AS change,
               unnest(sqlc.arg(takes)::bool[]) AS takes, unnest(sqlc.arg(most)::int[]) AS most
    ) r
    WHERE l.worker = ANY (ARRAY[r.worker])
      AND CASE WHEN r.takes
               THEN (r.change <= 0 OR l.assigned + r.change <= r.most)
                    AND EXISTS (SELECT FROM worker w WHERE w.id = l.worker
                                AND w.status = 'active' AND NOT w.cordoned AND NOT w.draining AND w.suspect_since IS NULL
                                AND w.heartbeat_seen > now() - make_interval(secs => sqlc.arg(stale_after)::float8))
               ELSE true END
    RETURNING r.takes
)
SELECT attune_expect((SELECT count(*) FROM changed WHERE takes), sqlc.arg(taking)::bigint, 'workers with room');

-- name: BlockQueues :one
-- The ticket is that of the blocked execution. A scope of 0 means the workers. recheck is true if a
-- queue begins to wait for workers: capacity that another batch returned meanwhile was not offered
-- to it.
WITH known AS MATERIALIZED (
    SELECT b.state_id FROM admission_blocked b WHERE b.state_id = ANY (sqlc.arg(states)::bigint[]) AND b.scope_id IS NULL
), kept AS (
INSERT INTO admission_blocked (state_id, ticket, reason, need, scope_id, until, wake)
SELECT r.state, h.id, r.reason, r.need, nullif(r.scope, 0), r.until, r.wake
FROM (
    SELECT unnest(sqlc.arg(states)::bigint[]) AS state, unnest(sqlc.arg(executions)::bigint[]) AS execution,
           unnest(sqlc.arg(reasons)::text[]) AS reason, unnest(sqlc.arg(needs)::text[]) AS need,
           unnest(sqlc.arg(scopes)::bigint[]) AS scope, unnest(sqlc.arg(untils)::timestamptz[]) AS until,
           unnest(sqlc.arg(wakes)::timestamptz[]) AS wake
) r
JOIN execution_admission_entry h ON h.execution_id = ANY (ARRAY[r.execution])
ON CONFLICT (state_id) DO UPDATE
SET ticket = excluded.ticket, reason = excluded.reason, need = excluded.need, scope_id = excluded.scope_id,
    until = excluded.until, wake = excluded.wake
WHERE (admission_blocked.ticket, admission_blocked.reason, admission_blocked.need, admission_blocked.scope_id,
       admission_blocked.until, admission_blocked.wake)
      IS DISTINCT FROM (excluded.ticket, excluded.reason, excluded.need, excluded.scope_id, excluded.until, excluded.wake)
RETURNING admission_blocked.state_id, admission_blocked.scope_id
)
SELECT EXISTS (SELECT FROM kept k WHERE k.scope_id IS NULL AND k.state_id NOT IN (SELECT n.state_id FROM known n))::bool AS recheck;

-- name: UnblockQueues :exec
DELETE FROM admission_blocked WHERE state_id = ANY (sqlc.arg(states)::bigint[]);

-- name: ApplyQueueStats :exec
-- One delta for each touched action, in order of action, so that the published statistics are exact
-- at every commit. oldest_enqueued_at considers only the queues of this batch, so that the cost
-- does not grow with the groups of an action. For an action with groups it may be too early until a
-- sweep has read all groups.
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
        SELECT least(
            CASE WHEN s.queued_count - s.queued_high - s.queued_low > 0 THEN (
                SELECT q.enqueued_at FROM execution_admission_entry q
                WHERE q.state_id = s.id AND q.lane = 0 AND q.queue_order >= s.head_order ORDER BY q.queue_order LIMIT 1) END,
            CASE WHEN s.queued_high > 0 THEN (
                SELECT q.enqueued_at FROM execution_admission_entry q
                WHERE q.state_id = s.id AND q.lane = 1 AND q.queue_order >= s.head_high ORDER BY q.queue_order LIMIT 1) END,
            CASE WHEN s.queued_low > 0 THEN (
                SELECT q.enqueued_at FROM execution_admission_entry q
                WHERE q.state_id = s.id AND q.lane = -1 AND q.queue_order >= s.head_low ORDER BY q.queue_order LIMIT 1) END
        ) AS enqueued_at
    ) e
    WHERE s.id = ANY (sqlc.arg(states)::bigint[]) AND s.action_id = r.action
) h
ORDER BY r.action
ON CONFLICT (action_id) DO UPDATE
SET queue_length = t.queue_length + excluded.queue_length,
    active_count = t.active_count + excluded.active_count,
    max_concurrent = excluded.max_concurrent,
    total_enqueued = t.total_enqueued + excluded.total_enqueued,
    total_completed = t.total_completed + excluded.total_completed,
    oldest_enqueued_at = CASE WHEN t.queue_length + excluded.queue_length = 0 THEN NULL
                              WHEN excluded.action_id = ANY (sqlc.arg(grouped)::bigint[]) THEN least(t.oldest_enqueued_at, excluded.oldest_enqueued_at)
                              ELSE excluded.oldest_enqueued_at END,
    last_updated = excluded.last_updated;

-- name: UpdateQuietStates :exec
-- UpdateAdmissionStates and ApplyQueueStats in one statement, for queues without waiting
-- executions: their oldest one need not be read.
WITH states AS (
    UPDATE execution_admission_state s
    SET active_count = r.active, queued_count = 0, head_order = r.head_order, next_queue_order = r.next_order,
        total_enqueued = s.total_enqueued + r.enqueued, total_completed = s.total_completed + r.completed
    FROM (
        SELECT unnest(sqlc.arg(ids)::bigint[]) AS id, unnest(sqlc.arg(active)::int[]) AS active,
               unnest(sqlc.arg(head_orders)::bigint[]) AS head_order, unnest(sqlc.arg(next_orders)::bigint[]) AS next_order,
               unnest(sqlc.arg(enqueued)::bigint[]) AS enqueued, unnest(sqlc.arg(completed)::bigint[]) AS completed
    ) r
    WHERE s.id = ANY (ARRAY[r.id])
)
INSERT INTO queue_stats AS t (action_id, queue_length, active_count, max_concurrent, total_enqueued, total_completed, last_updated)
SELECT r.action, r.queued, r.active, r.max_concurrent, r.enqueued, r.completed, now()
FROM (
    SELECT unnest(sqlc.arg(actions)::bigint[]) AS action, unnest(sqlc.arg(action_queued)::int[]) AS queued,
           unnest(sqlc.arg(action_active)::int[]) AS active, unnest(sqlc.arg(max_concurrent)::int[]) AS max_concurrent,
           unnest(sqlc.arg(action_enqueued)::bigint[]) AS enqueued, unnest(sqlc.arg(action_completed)::bigint[]) AS completed
) r
ORDER BY r.action
ON CONFLICT (action_id) DO UPDATE
SET queue_length = t.queue_length + excluded.queue_length,
    active_count = t.active_count + excluded.active_count,
    max_concurrent = excluded.max_concurrent,
    total_enqueued = t.total_enqueued + excluded.total_enqueued,
    total_completed = t.total_completed + excluded.total_completed,
    oldest_enqueued_at = CASE WHEN t.queue_length + excluded.queue_length > 0 AND excluded.action_id = ANY (sqlc.arg(grouped)::bigint[])
                              THEN t.oldest_enqueued_at END,
    last_updated = excluded.last_updated;

-- name: ChangeOpenStates :exec
-- Adds what an optimistic batch changes to its queues and their statistics, if all of these queues
-- are still open: no limit, no pause, and no waiting execution.
WITH states AS (
    UPDATE execution_admission_state s
    SET active_count = s.active_count + r.active, total_enqueued = s.total_enqueued + r.enqueued,
        total_completed = s.total_completed + r.completed
    FROM (
        SELECT unnest(sqlc.arg(ids)::bigint[]) AS id, unnest(sqlc.arg(active)::int[]) AS active,
               unnest(sqlc.arg(enqueued)::bigint[]) AS enqueued, unnest(sqlc.arg(completed)::bigint[]) AS completed
    ) r
    WHERE s.id = ANY (ARRAY[r.id]) AND s.unlimited AND s.limit_override IS NULL AND NOT s.paused AND s.queued_count = 0
    RETURNING 1
), stats AS (
    INSERT INTO queue_stats AS t (action_id, queue_length, active_count, max_concurrent, total_enqueued, total_completed, last_updated)
    SELECT r.action, 0, r.active, r.max_concurrent, r.enqueued, r.completed, now()
    FROM (
        SELECT unnest(sqlc.arg(actions)::bigint[]) AS action, unnest(sqlc.arg(action_active)::int[]) AS active,
               unnest(sqlc.arg(max_concurrent)::int[]) AS max_concurrent, unnest(sqlc.arg(action_enqueued)::bigint[]) AS enqueued,
               unnest(sqlc.arg(action_completed)::bigint[]) AS completed
    ) r
    WHERE (SELECT count(*) FROM states) = cardinality(sqlc.arg(ids)::bigint[])
    ORDER BY r.action
    ON CONFLICT (action_id) DO UPDATE
    SET active_count = t.active_count + excluded.active_count,
        max_concurrent = excluded.max_concurrent,
        total_enqueued = t.total_enqueued + excluded.total_enqueued,
        total_completed = t.total_completed + excluded.total_completed,
        last_updated = excluded.last_updated
)
SELECT attune_expect((SELECT count(*) FROM states), cardinality(sqlc.arg(ids)::bigint[])::bigint, 'open queues');

-- name: EnsureAdmissionStates :exec
-- Creates the plain queue of each action.
INSERT INTO execution_admission_state (action_id, max_concurrent, unlimited)
SELECT r.action, r.max_concurrent, r.unlimited
FROM (
    SELECT DISTINCT ON (u.action) u.action, u.max_concurrent, u.unlimited
    FROM (
        SELECT unnest(sqlc.arg(actions)::bigint[]) AS action, unnest(sqlc.arg(max_concurrent)::int[]) AS max_concurrent,
               unnest(sqlc.arg(unlimited)::bool[]) AS unlimited
    ) u
    ORDER BY u.action
) r
WHERE EXISTS (SELECT 1 FROM action a WHERE a.id = r.action)
ORDER BY r.action
ON CONFLICT (action_id, group_key_normalized) DO NOTHING;

-- name: EnsureGroupStates :exec
-- Queues of groups inherit an operator's override of the action from its plain queue. The lock on
-- that row waits for an override that is being written, so no group misses it.
INSERT INTO execution_admission_state (action_id, group_key, max_concurrent, unlimited, limit_override,
                                       paused, pause_reason, paused_by, paused_at, resumed_at)
SELECT p.action_id, r.group_key, coalesce(p.limit_override, r.max_concurrent), r.unlimited AND p.limit_override IS NULL,
       p.limit_override, p.paused, p.pause_reason, p.paused_by, p.paused_at, p.resumed_at
FROM (
    SELECT unnest(sqlc.arg(actions)::bigint[]) AS action, unnest(sqlc.arg(groups)::text[]) AS group_key,
           unnest(sqlc.arg(max_concurrent)::int[]) AS max_concurrent, unnest(sqlc.arg(unlimited)::bool[]) AS unlimited
) r
JOIN (
    SELECT t.action_id, t.limit_override, t.paused, t.pause_reason, t.paused_by, t.paused_at, t.resumed_at
    FROM execution_admission_state t
    WHERE t.action_id = ANY (sqlc.arg(actions)::bigint[]) AND t.group_key_normalized = '' ORDER BY t.id FOR SHARE
) p ON p.action_id = r.action
WHERE r.group_key <> ''
ORDER BY r.action, r.group_key
ON CONFLICT (action_id, group_key_normalized) DO NOTHING;

-- name: FindAdmissionScopes :many
-- counted is true if the running executions were counted since the last change of policies.
SELECT s.id, s.kind, s.scope_key, coalesce(s.policy, 0)::bigint AS policy,
       (s.counted_at = (SELECT policies FROM admission_epoch WHERE one))::bool AS counted
FROM (
    SELECT unnest(sqlc.arg(kinds)::text[]) AS kind, unnest(sqlc.arg(keys)::text[]) AS scope_key
) r
CROSS JOIN LATERAL (
    SELECT * FROM admission_scope WHERE kind = r.kind AND scope_key = r.scope_key OFFSET 0
) s;

-- name: EnsureAdmissionScopes :exec
INSERT INTO admission_scope (kind, scope_key, max_concurrent, policy, policy_ref)
SELECT r.kind, r.scope_key, r.max_concurrent, (SELECT p.id FROM policy p WHERE p.id = r.policy), r.policy_ref
FROM (
    SELECT unnest(sqlc.arg(kinds)::text[]) AS kind, unnest(sqlc.arg(keys)::text[]) AS scope_key,
           unnest(sqlc.arg(max_concurrent)::int[]) AS max_concurrent, unnest(sqlc.arg(policies)::bigint[]) AS policy,
           unnest(sqlc.arg(policy_refs)::text[]) AS policy_ref
) r
ORDER BY r.kind, r.scope_key
ON CONFLICT (kind, scope_key) DO UPDATE SET policy = excluded.policy, policy_ref = excluded.policy_ref
WHERE admission_scope.policy IS DISTINCT FROM excluded.policy;

-- name: LockScopeQueues :many
-- Locks the queues under a limit of a pack, or of everything. Under these locks no other
-- transaction takes or returns a slot there.
SELECT s.id
FROM execution_admission_state s
WHERE sqlc.narg(pack)::bigint IS NULL
   OR s.action_id IN (SELECT a.id FROM action a WHERE a.pack = sqlc.narg(pack)::bigint)
ORDER BY s.id
FOR UPDATE;

-- name: AdoptScopeHolders :one
-- Counts the running executions against a new limit. Executions that ended and are not yet released
-- hold nothing of it.
WITH taken AS (
    INSERT INTO execution_slot (execution, scope_id)
    SELECT e.id, sqlc.arg(scope)::bigint
    FROM execution_holder h
    CROSS JOIN LATERAL (SELECT x.id, x.status FROM execution x WHERE x.id = ANY (ARRAY[h.execution]) OFFSET 0) e
    WHERE h.state_id = ANY (sqlc.arg(states)::bigint[]) AND e.status NOT IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned')
    ON CONFLICT (execution, scope_id) DO NOTHING
    RETURNING 1
)
UPDATE admission_scope s
SET active_count = s.active_count + (SELECT count(*) FROM taken), counted_at = (SELECT policies FROM admission_epoch WHERE one)
WHERE s.id = sqlc.arg(scope)::bigint
RETURNING s.active_count;

-- name: FindAdmissionStates :many
SELECT s.id, s.action_id, coalesce(s.group_key_normalized, '')::text AS group_key
FROM (
    SELECT unnest(sqlc.arg(actions)::bigint[]) AS action, unnest(sqlc.arg(groups)::text[]) AS group_key
) r
CROSS JOIN LATERAL (
    SELECT id, action_id, group_key_normalized FROM execution_admission_state
    WHERE action_id = r.action AND group_key_normalized = r.group_key OFFSET 0
) s;
