-- Operators' actions on admission queues: overrides (pause, limit), clearing, and the repair of
-- counters. Every writer has locked the rows first, in order of id, as a batch does.

-- name: ControlAction :one
-- An action with its newest concurrency policy, which limits its queues, and the parameters by
-- which its executions are grouped.
SELECT a.id, a.ref, (a.workflow_def IS NOT NULL)::bool AS workflow, (p.id IS NULL)::bool AS unlimited, coalesce(p.threshold, 0)::int AS threshold,
       coalesce(attune_queue_shape(a.id), '{}')::text[] AS parameters
FROM action a
LEFT JOIN LATERAL (
    SELECT id, threshold FROM policy
    WHERE policy.action = a.id AND policy.kind = 'concurrency'
    ORDER BY created DESC, id DESC LIMIT 1
) p ON true
WHERE a.ref = sqlc.arg(ref)::text;

-- name: ControlEnsureQueue :exec
-- Creates a queue of an action if it is missing. A group starts with the override of the action's
-- plain queue.
INSERT INTO execution_admission_state (action_id, group_key, max_concurrent, unlimited, limit_override,
                                       paused, pause_reason, paused_by, paused_at, resumed_at)
SELECT a.id, nullif(sqlc.arg(group_key)::text, ''), coalesce(w.limit_override, sqlc.arg(max_concurrent)::int),
       w.limit_override IS NULL AND sqlc.arg(unlimited)::bool, w.limit_override,
       coalesce(w.paused, false), w.pause_reason, w.paused_by, w.paused_at, w.resumed_at
FROM action a
LEFT JOIN execution_admission_state w ON w.action_id = a.id AND w.group_key_normalized = ''
WHERE a.id = sqlc.arg(action)::bigint
ON CONFLICT (action_id, group_key_normalized) DO NOTHING;

-- name: ControlReadQueues :many
-- The queues of an action; groups NULL means all of them.
SELECT s.id, coalesce(s.group_key, '')::text AS group_key, s.max_concurrent, s.unlimited, s.limit_override, s.adaptive_limit,
       s.paused, s.pause_reason, s.paused_by, s.paused_at, s.active_count, s.queued_count
FROM execution_admission_state s
WHERE s.action_id = sqlc.arg(action)::bigint
  AND (sqlc.narg(groups)::text[] IS NULL OR s.group_key_normalized = ANY (sqlc.narg(groups)::text[]))
ORDER BY s.id;

-- name: ControlLockQueues :many
-- ControlReadQueues with locks. Run it twice: the second run sees a group that another transaction
-- created while the first waited, and no group is created while the plain queue is locked.
SELECT s.id, coalesce(s.group_key, '')::text AS group_key, s.max_concurrent, s.unlimited, s.limit_override, s.adaptive_limit,
       s.paused, s.pause_reason, s.paused_by, s.paused_at, s.active_count, s.queued_count
FROM execution_admission_state s
WHERE s.action_id = sqlc.arg(action)::bigint
  AND (sqlc.narg(groups)::text[] IS NULL OR s.group_key_normalized = ANY (sqlc.narg(groups)::text[]))
ORDER BY s.id
FOR UPDATE;

-- name: ControlPauseQueues :exec
-- Changes only the reason of a paused queue.
UPDATE execution_admission_state
SET paused = true, pause_reason = nullif(sqlc.arg(reason)::text, ''),
    paused_by = CASE WHEN paused THEN paused_by ELSE sqlc.arg(paused_by)::text END,
    paused_at = CASE WHEN paused THEN paused_at ELSE now() END
WHERE id = ANY (sqlc.arg(ids)::bigint[]);

-- name: ControlResumeQueues :exec
UPDATE execution_admission_state
SET paused = false, pause_reason = NULL, paused_by = NULL, paused_at = NULL, resumed_at = now()
WHERE id = ANY (sqlc.arg(ids)::bigint[]);

-- name: ControlLimitQueues :exec
-- override 0 removes an operator's limit.
UPDATE execution_admission_state s
SET limit_override = nullif(sqlc.arg(override)::int, 0), max_concurrent = r.max_concurrent, unlimited = r.unlimited
FROM (
    SELECT unnest(sqlc.arg(ids)::bigint[]) AS id, unnest(sqlc.arg(max_concurrent)::int[]) AS max_concurrent,
           unnest(sqlc.arg(unlimited)::bool[]) AS unlimited
) r
WHERE s.id = ANY (ARRAY[r.id]);

-- name: ControlUnblockQueues :exec
-- Queues that an override holds back do not wait for a shared limit or a worker.
DELETE FROM admission_blocked WHERE state_id = ANY (sqlc.arg(ids)::bigint[]);

-- name: ControlStatsLimit :exec
UPDATE queue_stats SET max_concurrent = sqlc.arg(max_concurrent)::int, last_updated = now()
WHERE action_id = sqlc.arg(action)::bigint;

-- name: ControlHeads :many
-- The execution at the head of each queue.
SELECT r.state_id::bigint AS state_id, e.id, e.action, e.action_ref, e.parent, e.enforcement, e.config
FROM (SELECT unnest(sqlc.arg(ids)::bigint[])::bigint AS state_id) r
CROSS JOIN LATERAL (
    SELECT h.execution_id
    FROM (SELECT unnest(ARRAY[1, 0, -1]) AS which) l
    CROSS JOIN LATERAL (
        SELECT q.execution_id FROM execution_admission_entry q
        WHERE q.state_id = r.state_id AND q.lane = l.which
        ORDER BY q.queue_order LIMIT 1
    ) h
    ORDER BY l.which DESC LIMIT 1
) f
JOIN execution e ON e.id = ANY (ARRAY[f.execution_id])
ORDER BY r.state_id;

-- name: ControlFirstBlocked :many
-- The queue that has waited longest for each of these shared limits and, if requested, for each
-- kind of worker: the batch that takes its head tries the others.
SELECT DISTINCT x.state_id::bigint AS state_id
FROM (
    SELECT (SELECT b.state_id FROM admission_blocked b WHERE b.scope_id = s.id ORDER BY b.ticket LIMIT 1) AS state_id
    FROM (SELECT unnest(sqlc.arg(scopes)::bigint[]) AS id) s
    UNION ALL
    (SELECT DISTINCT ON (w.need) w.state_id FROM admission_blocked w
     WHERE w.scope_id IS NULL AND sqlc.arg(workers)::bool ORDER BY w.need, w.ticket)
) x
WHERE x.state_id IS NOT NULL
ORDER BY 1;

-- name: ControlWaiting :many
-- Executions that have waited in the queues of an action since the cutoff or longer. ticket bounds
-- them: entries of a queue are numbered in order of creation.
SELECT s.id, coalesce(s.group_key, '')::text AS group_key, s.paused, w.waiting, w.ticket, w.oldest
FROM execution_admission_state s
CROSS JOIN LATERAL (
    SELECT count(*) AS waiting, coalesce(max(q.id), 0)::bigint AS ticket, coalesce(min(q.enqueued_at), now())::timestamptz AS oldest
    FROM execution_admission_entry q
    WHERE q.state_id = s.id AND q.enqueued_at <= sqlc.arg(cutoff)::timestamptz
) w
WHERE s.action_id = sqlc.arg(action)::bigint
  AND (sqlc.narg(groups)::text[] IS NULL OR s.group_key_normalized = ANY (sqlc.narg(groups)::text[]))
  AND w.waiting > 0
ORDER BY s.id;

-- name: ControlPage :many
-- The next waiting executions of some queues, each behind its cursor and not above its ticket, read
-- without locks.
SELECT r.state_id::bigint AS state_id, q.execution_id, q.lane, q.queue_order, coalesce(e.action, 0)::bigint AS action, e.action_ref
FROM (
    SELECT unnest(sqlc.arg(states)::bigint[]) AS state_id, unnest(sqlc.arg(tickets)::bigint[]) AS ticket,
           unnest(sqlc.arg(lanes)::smallint[]) AS lane, unnest(sqlc.arg(orders)::bigint[]) AS queue_order
) r
CROSS JOIN LATERAL (
    SELECT n.execution_id, n.lane, n.queue_order FROM execution_admission_entry n
    WHERE n.state_id = r.state_id AND (n.lane, n.queue_order) > (r.lane, r.queue_order)
      AND n.id <= r.ticket AND n.enqueued_at <= sqlc.arg(cutoff)::timestamptz
    ORDER BY n.lane, n.queue_order
    LIMIT sqlc.arg(page)::int
) q
JOIN execution e ON e.id = ANY (ARRAY[q.execution_id])
ORDER BY r.state_id, q.lane, q.queue_order
LIMIT sqlc.arg(page)::int;

-- name: CancelWaiting :exec
-- Ends waiting executions for an operator.
WITH changed AS (
    UPDATE execution e
    SET status = 'cancelled', result = sqlc.arg(result)::jsonb
    WHERE e.id = ANY (sqlc.arg(ids)::bigint[]) AND e.status = 'requested'
    RETURNING e.id
)
SELECT attune_expect((SELECT count(*) FROM changed), cardinality(sqlc.arg(ids)::bigint[])::bigint, 'cancelled executions');

-- name: InsertAudit :one
INSERT INTO operator_audit (actor, source, action, target_type, target_id, target, reason, request, outcome, error)
VALUES (sqlc.arg(actor)::text, sqlc.arg(source)::text, sqlc.arg(action)::text, sqlc.arg(target_type)::text,
        sqlc.narg(target_id)::bigint, sqlc.arg(target)::text, nullif(sqlc.arg(reason)::text, ''), sqlc.arg(request)::jsonb,
        sqlc.arg(outcome)::text, nullif(sqlc.arg(error)::text, ''))
RETURNING id;

-- name: UpdateAudit :exec
UPDATE operator_audit
SET request = sqlc.arg(request)::jsonb, outcome = sqlc.arg(outcome)::text, error = nullif(sqlc.arg(error)::text, '')
WHERE id = sqlc.arg(id)::bigint;

-- name: NewestAudit :one
SELECT coalesce((SELECT a.id FROM operator_audit a ORDER BY a.id DESC LIMIT 1), 0)::bigint AS id;

-- name: QueueEmptied :one
-- The newest action after another one that took messages out of a queue of the broker.
SELECT a.actor, a.action, a.at FROM operator_audit a
WHERE a.id > sqlc.arg(after)::bigint AND a.id <> sqlc.arg(besides)::bigint
  AND (a.action = 'dead_letter.purge-broker' AND a.request ->> 'queue' = sqlc.arg(queue)::text
       OR a.action = 'dead_letter.take' AND a.request -> 'plan' ->> 'queue' = sqlc.arg(queue)::text)
ORDER BY a.id DESC LIMIT 1;

-- name: RepairLockQueues :many
-- Lock order of a batch: shared limits, queues, loads, notes, statistics.
SELECT id FROM execution_admission_state WHERE id = ANY (sqlc.arg(ids)::bigint[]) ORDER BY id FOR UPDATE;

-- name: RepairLockScopes :many
SELECT id FROM admission_scope WHERE id = ANY (sqlc.arg(ids)::bigint[]) ORDER BY id FOR UPDATE;

-- name: RepairLockLoads :many
SELECT worker FROM worker_load WHERE worker = ANY (sqlc.arg(workers)::bigint[]) ORDER BY worker FOR UPDATE;

-- name: RepairQueues :many
-- Queues with wrong counters: ids NULL means all, action 0 means every action. The repair, the
-- doctor and the dashboard's checks all use this comparison. Without entries it counts holders
-- only, so that its cost does not depend on the number of waiting executions. A deleted holder
-- counts until its note in lost_holder is processed, because that corrects the counters.
WITH chosen AS (
    SELECT s.id, s.action_id, s.group_key, s.active_count, s.queued_count, s.queued_high, s.queued_low,
           s.head_order, s.head_high, s.head_low, s.next_queue_order
    FROM execution_admission_state s
    WHERE (sqlc.narg(ids)::bigint[] IS NULL OR s.id = ANY (sqlc.narg(ids)::bigint[]))
      AND (sqlc.arg(action)::bigint = 0 OR s.action_id = sqlc.arg(action)::bigint)
), holders AS (
    SELECT h.id, sum(h.n)::int AS n FROM (
        SELECT e.state_id AS id, count(*) AS n FROM execution_holder e GROUP BY 1
        UNION ALL
        SELECT l.state_id, count(*) FROM lost_holder l WHERE l.state_id IS NOT NULL GROUP BY 1) h
    GROUP BY 1
), entries AS (
    SELECT q.state_id AS id, count(*)::int AS n, count(*) FILTER (WHERE q.lane = 1)::int AS high,
           count(*) FILTER (WHERE q.lane = -1)::int AS low, min(q.queue_order) FILTER (WHERE q.lane = 1) AS first_high,
           min(q.queue_order) FILTER (WHERE q.lane = 0) AS first, min(q.queue_order) FILTER (WHERE q.lane = -1) AS first_low,
           max(q.queue_order) AS latest
    FROM execution_admission_entry q
    WHERE sqlc.arg(entries)::bool AND q.state_id IN (SELECT c.id FROM chosen c) GROUP BY 1
), counted AS (
    SELECT c.id, c.action_id, c.group_key, c.active_count, c.queued_count, c.queued_high, c.queued_low,
           c.head_order, c.head_high, c.head_low, c.next_queue_order,
           coalesce(h.n, 0) AS active,
           CASE WHEN sqlc.arg(entries)::bool THEN coalesce(e.n, 0) ELSE c.queued_count END AS queued,
           CASE WHEN sqlc.arg(entries)::bool THEN coalesce(e.high, 0) ELSE c.queued_high END AS high,
           CASE WHEN sqlc.arg(entries)::bool THEN coalesce(e.low, 0) ELSE c.queued_low END AS low,
           least(c.head_order, e.first) AS head, least(c.head_high, e.first_high) AS first_high, least(c.head_low, e.first_low) AS first_low,
           greatest(c.next_queue_order, e.latest + 1) AS next_order
    FROM chosen c
    LEFT JOIN holders h ON h.id = c.id
    LEFT JOIN entries e ON e.id = c.id
)
SELECT c.id, c.action_id, a.ref, coalesce(c.group_key, '')::text AS group_key,
       c.active_count, c.active::int AS active, c.queued_count, c.queued::int AS queued,
       c.queued_high, c.high::int AS high, c.queued_low, c.low::int AS low,
       c.head_order, c.head::bigint AS head, c.head_high, c.first_high::bigint AS first_high,
       c.head_low, c.first_low::bigint AS first_low, c.next_queue_order, c.next_order::bigint AS next_order
FROM counted c
JOIN action a ON a.id = c.action_id
WHERE (c.active_count, c.queued_count, c.queued_high, c.queued_low, c.head_order, c.head_high, c.head_low, c.next_queue_order)
   <> (c.active, c.queued, c.high, c.low, c.head, c.first_high, c.first_low, c.next_order)
ORDER BY c.id;

-- name: RepairSetQueues :exec
UPDATE execution_admission_state s
SET active_count = r.active, queued_count = r.queued, queued_high = r.high, queued_low = r.low,
    head_order = r.head, head_high = r.first_high, head_low = r.first_low, next_queue_order = r.next_order
FROM (
    SELECT unnest(sqlc.arg(ids)::bigint[]) AS id, unnest(sqlc.arg(active)::int[]) AS active,
           unnest(sqlc.arg(queued)::int[]) AS queued, unnest(sqlc.arg(high)::int[]) AS high, unnest(sqlc.arg(low)::int[]) AS low,
           unnest(sqlc.arg(head)::bigint[]) AS head, unnest(sqlc.arg(first_high)::bigint[]) AS first_high,
           unnest(sqlc.arg(first_low)::bigint[]) AS first_low, unnest(sqlc.arg(next_order)::bigint[]) AS next_order
) r
WHERE s.id = ANY (ARRAY[r.id]);

-- name: RepairLoads :many
-- Workers whose load is not the number of slots that their executions hold.
WITH holders AS (
    SELECT h.id, sum(h.n)::int AS n FROM (
        SELECT e.worker AS id, count(*) AS n FROM execution_holder e WHERE e.worker IS NOT NULL GROUP BY 1
        UNION ALL
        SELECT l.worker, count(*) FROM lost_holder l WHERE l.state_id IS NOT NULL AND l.worker IS NOT NULL GROUP BY 1) h
    GROUP BY 1
)
SELECT l.worker, w.name, l.assigned, coalesce(h.n, 0)::int AS held
FROM worker_load l
JOIN worker w ON w.id = l.worker
LEFT JOIN holders h ON h.id = l.worker
WHERE l.assigned <> coalesce(h.n, 0)
  AND (sqlc.narg(workers)::bigint[] IS NULL OR l.worker = ANY (sqlc.narg(workers)::bigint[]))
ORDER BY l.worker;

-- name: RepairSetLoads :exec
UPDATE worker_load l SET assigned = r.assigned
FROM (
    SELECT unnest(sqlc.arg(workers)::bigint[]) AS worker, unnest(sqlc.arg(assigned)::int[]) AS assigned
) r
WHERE l.worker = ANY (ARRAY[r.worker]);

-- name: RepairScopes :many
-- Shared limits whose counter is not the number of slots taken from them.
SELECT s.id, s.kind, s.scope_key, s.active_count, (coalesce(t.n, 0) + coalesce(g.n, 0))::int AS taken
FROM admission_scope s
LEFT JOIN (SELECT x.scope_id, count(*) AS n FROM execution_slot x GROUP BY 1) t ON t.scope_id = s.id
LEFT JOIN (SELECT x.scope_id, count(*) AS n FROM lost_holder l CROSS JOIN LATERAL unnest(l.scopes) x (scope_id) GROUP BY 1) g
       ON g.scope_id = s.id
WHERE s.active_count <> coalesce(t.n, 0) + coalesce(g.n, 0)
  AND (sqlc.narg(ids)::bigint[] IS NULL OR s.id = ANY (sqlc.narg(ids)::bigint[]))
ORDER BY s.id;

-- name: RepairSetScopes :exec
UPDATE admission_scope s SET active_count = r.active
FROM (
    SELECT unnest(sqlc.arg(ids)::bigint[]) AS id, unnest(sqlc.arg(active)::int[]) AS active
) r
WHERE s.id = ANY (ARRAY[r.id]);

-- name: RepairLost :many
-- Unprocessed notes of deleted executions.
SELECT l.id, l.execution, coalesce(l.state_id, 0)::bigint AS state_id, coalesce(l.waited_in, 0)::bigint AS waited_in,
       coalesce(l.worker, 0)::bigint AS worker, l.scopes
FROM lost_holder l
WHERE sqlc.arg(action)::bigint = 0
   OR EXISTS (SELECT FROM execution_admission_state s
              WHERE s.id IN (l.state_id, l.waited_in) AND s.action_id = sqlc.arg(action)::bigint)
ORDER BY l.id
LIMIT sqlc.arg(page)::int;

-- name: RepairEnded :many
-- Executions that ended a while ago and still hold a slot, or, with entries, still wait. Holders
-- and entries are read first, and executions by key.
SELECT e.id, e.status::text AS status, coalesce(c.holds, 0)::bigint AS state_id, coalesce(c.waits, 0)::bigint AS waits,
       coalesce(c.worker, 0)::bigint AS worker, e.action_ref,
       ARRAY(SELECT t.scope_id FROM execution_slot t WHERE t.execution = e.id ORDER BY 1)::bigint[] AS scopes
FROM (
    SELECT coalesce(h.execution, q.execution_id) AS execution, h.state_id AS holds, h.worker, q.state_id AS waits
    FROM execution_holder h
    FULL JOIN (SELECT w.execution_id, w.state_id FROM execution_admission_entry w WHERE sqlc.arg(entries)::bool) q
        ON q.execution_id = h.execution
) c
CROSS JOIN LATERAL (
    SELECT x.id, x.status, x.action_ref, x.finished_at, x.updated FROM execution x WHERE x.id = ANY (ARRAY[c.execution]) OFFSET 0
) e
WHERE e.status IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned')
  AND coalesce(e.finished_at, e.updated) < now() - make_interval(secs => sqlc.arg(older_than)::float8)
  AND (sqlc.arg(action)::bigint = 0 OR EXISTS (
       SELECT FROM execution_admission_state s
       WHERE s.id IN (c.holds, c.waits) AND s.action_id = sqlc.arg(action)::bigint))
ORDER BY e.id
LIMIT sqlc.arg(page)::int;

-- name: RepairStats :many
-- Actions whose published statistics are not the sum of their queues. kept is false where they are
-- older than the newest change of a queue: statistics are then switched off.
SELECT t.action_id, a.ref, t.queue_length, t.active_count,
       coalesce(s.queued, 0)::int AS queued, coalesce(s.active, 0)::int AS active,
       coalesce(t.last_updated >= s.changed, false)::bool AS kept
FROM queue_stats t
JOIN action a ON a.id = t.action_id
LEFT JOIN (SELECT action_id, sum(queued_count) AS queued, sum(active_count) AS active, max(updated) AS changed
           FROM execution_admission_state GROUP BY 1) s ON s.action_id = t.action_id
WHERE (sqlc.narg(actions)::bigint[] IS NULL OR t.action_id = ANY (sqlc.narg(actions)::bigint[]))
  AND (t.queue_length <> coalesce(s.queued, 0) OR t.active_count <> coalesce(s.active, 0))
ORDER BY t.action_id;

-- name: RepairLockStats :many
-- Every change of a queue also changes its action's statistics, in the same transaction: under this
-- lock the committed sum is exact.
SELECT action_id FROM queue_stats WHERE action_id = ANY (sqlc.arg(actions)::bigint[]) ORDER BY action_id FOR UPDATE;

-- name: RepairSetStats :exec
UPDATE queue_stats t SET queue_length = r.queued, active_count = r.active, last_updated = now()
FROM (
    SELECT unnest(sqlc.arg(actions)::bigint[]) AS action, unnest(sqlc.arg(queued)::int[]) AS queued,
           unnest(sqlc.arg(active)::int[]) AS active
) r
WHERE t.action_id = ANY (ARRAY[r.action]);

-- name: ControlPlaces :many
-- The places of waiting executions, in the order in which their queues serve them. Under the
-- queues' locks they do not change.
SELECT q.state_id, q.execution_id, q.lane, q.queue_order, s.front_order
FROM execution_admission_entry q
JOIN execution_admission_state s ON s.id = q.state_id
WHERE q.execution_id = ANY (sqlc.arg(executions)::bigint[])
ORDER BY q.state_id, q.lane DESC, q.queue_order;

-- name: ControlMoveEntries :many
-- Moves waiting executions to other places of their queues, each from the place that was read under
-- the lock. No order is used twice: the ones below front_order are new, and an old one was its
-- execution's own.
UPDATE execution_admission_entry q
SET lane = r.lane, queue_order = r.queue_order
FROM (
    SELECT unnest(sqlc.arg(executions)::bigint[]) AS execution, unnest(sqlc.arg(from_lanes)::smallint[]) AS from_lane,
           unnest(sqlc.arg(from_orders)::bigint[]) AS from_order, unnest(sqlc.arg(lanes)::smallint[]) AS lane,
           unnest(sqlc.arg(orders)::bigint[]) AS queue_order
) r
WHERE q.execution_id = ANY (ARRAY[r.execution]) AND (q.lane, q.queue_order) = (r.from_lane, r.from_order)
RETURNING q.execution_id;

-- name: ControlMoveStates :many
-- Counts the lanes of the locked queues again. No entry waits below the head of its lane, nor at or
-- below front_order.
UPDATE execution_admission_state s
SET queued_high = c.high, queued_low = c.low, head_high = least(s.head_high, c.first_high),
    head_order = least(s.head_order, c.first), head_low = least(s.head_low, c.first_low),
    front_order = least(s.front_order, c.first_any - 1)
FROM (
    SELECT q.state_id, count(*) FILTER (WHERE q.lane = 1)::int AS high, count(*) FILTER (WHERE q.lane = -1)::int AS low,
           min(q.queue_order) FILTER (WHERE q.lane = 1) AS first_high, min(q.queue_order) FILTER (WHERE q.lane = 0) AS first,
           min(q.queue_order) FILTER (WHERE q.lane = -1) AS first_low, min(q.queue_order) AS first_any
    FROM execution_admission_entry q
    WHERE q.state_id = ANY (sqlc.arg(ids)::bigint[]) GROUP BY 1
) c
WHERE s.id = c.state_id
RETURNING s.id;

-- name: ControlTakeTickets :exec
-- A ticket is the turn of a queue's head at shared limits and workers. The queue keeps its turns:
-- in each lane the first executions, up to an order, get the same tickets again, the oldest one
-- first. They stay negative until ControlGiveTickets, so that no two are equal.
WITH span AS (
    SELECT unnest(sqlc.arg(states)::bigint[]) AS state_id, unnest(sqlc.arg(lanes)::smallint[]) AS lane,
           unnest(sqlc.arg(through)::bigint[]) AS through
), ranked AS (
    SELECT q.id, q.state_id, q.lane,
           row_number() OVER (PARTITION BY q.state_id, q.lane ORDER BY q.queue_order) AS turn,
           row_number() OVER (PARTITION BY q.state_id, q.lane ORDER BY q.id) AS age
    FROM span s
    JOIN execution_admission_entry q ON q.state_id = s.state_id AND q.lane = s.lane AND q.queue_order <= s.through
)
UPDATE execution_admission_entry q SET id = -t.id
FROM ranked r
JOIN ranked t ON (t.state_id, t.lane, t.age) = (r.state_id, r.lane, r.turn)
WHERE q.id = r.id AND r.turn <> r.age;

-- name: ControlGiveTickets :exec
UPDATE execution_admission_entry SET id = -id WHERE state_id = ANY (sqlc.arg(states)::bigint[]) AND id < 0;

-- name: ControlSetPriorities :exec
-- A waiting execution keeps the lane that an operator gave it if it moves to another queue.
UPDATE execution e SET priority = nullif(r.lane, 0)
FROM (SELECT unnest(sqlc.arg(executions)::bigint[]) AS execution, unnest(sqlc.arg(lanes)::smallint[]) AS lane) r
WHERE e.id = ANY (ARRAY[r.execution]) AND e.status = 'requested';

-- name: ControlAudited :one
-- What an action wrote into its audit.
SELECT a.action, a.request FROM operator_audit a WHERE a.id = sqlc.arg(id)::bigint;
