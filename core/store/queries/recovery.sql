-- Sweeps find work that no message brings back. They only find: batches process the findings like
-- messages.

-- name: TryLoopLock :one
-- One replica at a time runs a sweep; the lock ends with the transaction.
SELECT pg_try_advisory_xact_lock(hashtextextended(current_schema() || '.attune.' || sqlc.arg(loop)::text, 0)) AS won;

-- name: FindLostRequests :one
-- Requested executions without a queue position, older than any message in flight should be: one
-- window of live rows at a time, so that a million waiting executions cost no more than a thousand.
-- last is where the next window begins; scanned below the window size means that the end was
-- reached. early are items that another engine requested before they are due; their workflow
-- requests them. by_status is for an adopted database, which indexes the status.
SELECT coalesce(max(w.id), 0)::bigint AS last, count(*)::int AS scanned,
       coalesce(array_agg(w.id ORDER BY w.id) FILTER (
           WHERE w.status = 'requested' AND w.updated < now() - make_interval(secs => sqlc.arg(older_than)::float8)
             AND w.waits IS NULL AND NOT w.timed AND NOT w.early), '{}')::bigint[] AS ids,
       coalesce(array_agg(w.id ORDER BY w.id) FILTER (
           WHERE w.status = 'scheduling' AND w.updated < now() - make_interval(secs => sqlc.arg(claim_age)::float8)), '{}')::bigint[] AS claims
FROM (
    SELECT e.id, e.status, e.updated,
           (SELECT q.id FROM execution_admission_entry q WHERE q.execution_id = e.id) AS waits,
           CASE WHEN e.status = 'requested' AND e.retry_count > 0 THEN
               coalesce((SELECT t.waiting FROM execution_retry t WHERE t.execution = ANY (ARRAY[e.id])), false) ELSE false END AS timed,
           CASE WHEN e.status = 'requested' AND jsonb_typeof(e.workflow_task -> 'task_index') = 'number' THEN
               coalesce((SELECT o.open AND (o.state IS NULL OR jsonb_typeof(t.task) = 'object'
                                                               AND (e.workflow_task ->> 'task_index')::numeric >= coalesce((t.task ->> 'next')::int, 0))
                         FROM workflow_execution o
                         CROSS JOIN LATERAL (SELECT o.state -> 'tasks' -> (e.workflow_task ->> 'task_name') AS task) t
                         WHERE o.id = ANY (ARRAY[(e.workflow_task ->> 'workflow_execution')::bigint])), false) ELSE false END AS early
    FROM (
        (SELECT e.id, e.status, e.updated, e.retry_count, e.workflow_task FROM execution e
         WHERE NOT sqlc.arg(by_status)::bool AND e.finished_status IS NULL AND e.id > sqlc.arg(after)::bigint
         ORDER BY e.id LIMIT sqlc.arg(window_size)::int)
        UNION ALL
        (SELECT e.id, e.status, e.updated, e.retry_count, e.workflow_task FROM execution e
         WHERE sqlc.arg(by_status)::bool AND e.status IN ('requested', 'scheduling') AND e.id > sqlc.arg(after)::bigint
         ORDER BY e.id LIMIT sqlc.arg(window_size)::int)) e
) w;

-- name: ReclaimClaims :many
-- Puts unfinished claims back, so that they are admitted like all others. It checks the age again:
-- a claim that is being finished stays.
UPDATE execution e SET status = 'requested'
WHERE e.id = ANY (ARRAY(
        SELECT x.id FROM execution x WHERE x.id = ANY (sqlc.arg(ids)::bigint[]) ORDER BY x.id FOR UPDATE SKIP LOCKED))
  AND e.status = 'scheduling' AND NOT EXISTS (SELECT FROM execution_holder h WHERE h.execution = ANY (ARRAY[e.id]))
  AND e.updated < now() - make_interval(secs => sqlc.arg(claim_age)::float8)
RETURNING e.id;

-- name: FindEndedHolders :one
-- Executions that ended long enough ago to have been reported and still hold a slot, one window of
-- holders at a time. missing are holders whose execution is gone.
SELECT coalesce(max(w.id), 0)::bigint AS last, count(*)::int AS scanned,
       coalesce(array_agg(w.id ORDER BY w.id) FILTER (
           WHERE w.status IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned')
             AND w.updated < now() - make_interval(secs => sqlc.arg(older_than)::float8)), '{}')::bigint[] AS ids,
       coalesce(array_agg(w.id ORDER BY w.id) FILTER (WHERE w.status IS NULL), '{}')::bigint[] AS missing
FROM (
    SELECT h.execution AS id, e.status, e.updated
    FROM (SELECT o.execution FROM execution_holder o WHERE o.execution > sqlc.arg(after)::bigint
          ORDER BY o.execution LIMIT sqlc.arg(window_size)::int) h
    LEFT JOIN LATERAL (SELECT x.status, x.updated FROM execution x WHERE x.id = ANY (ARRAY[h.execution]) OFFSET 0) e ON true
) w;

-- name: NoteMissingHolders :exec
-- Writes the notes of executions that were truncated, or deleted while triggers were off.
WITH gone AS (
    DELETE FROM execution_holder h
    WHERE h.execution = ANY (sqlc.arg(ids)::bigint[]) AND NOT EXISTS (SELECT FROM execution e WHERE e.id = h.execution)
    RETURNING h.execution, h.state_id, h.worker
), slots AS (
    DELETE FROM execution_slot t WHERE t.execution = ANY (ARRAY(SELECT g.execution FROM gone g)) RETURNING t.execution, t.scope_id
)
INSERT INTO lost_holder (execution, state_id, worker, scopes)
SELECT g.execution, g.state_id, g.worker, ARRAY(SELECT s.scope_id FROM slots s WHERE s.execution = g.execution ORDER BY 1)
FROM gone g;

-- name: FindUnfilledQueues :one
-- Queues with a free slot and a waiting execution, one window of queues at a time. These are queues
-- whose limit was raised without a change of their row, and blocked queues. Of the blocked ones,
-- unless the pass is thorough, only the one that has waited longest for each obstacle: its batch
-- tries the others.
SELECT coalesce(max(w.id), 0)::bigint AS last, count(*)::int AS scanned,
       coalesce(array_agg(w.id ORDER BY w.id) FILTER (WHERE w.queued_count > 0 AND NOT w.paused AND w.active_count <
           CASE WHEN w.queued_count > 0 THEN greatest(w.max_concurrent, w.limit_override, CASE WHEN w.limit_override IS NULL THEN
               coalesce((SELECT p.threshold FROM policy p WHERE p.action = w.action_id AND p.kind = 'concurrency'
                         ORDER BY p.created DESC, p.id DESC LIMIT 1), 2147483647) END) END
           AND NOT w.kept), '{}')::bigint[] AS ids
FROM (
    SELECT s.id, s.action_id, s.queued_count, s.active_count, s.max_concurrent, s.limit_override, s.paused,
           NOT sqlc.arg(thorough)::bool AND s.queued_count > 0 AND EXISTS (
               SELECT FROM admission_blocked b
               WHERE b.state_id = s.id
                 AND CASE WHEN b.scope_id IS NULL
                     THEN EXISTS (SELECT FROM admission_blocked o WHERE o.scope_id IS NULL AND o.need = b.need AND o.ticket < b.ticket)
                     ELSE EXISTS (SELECT FROM admission_blocked o WHERE o.scope_id = b.scope_id AND o.ticket < b.ticket) END) AS kept
    FROM execution_admission_state s
    WHERE s.id > sqlc.arg(after)::bigint
    ORDER BY s.id
    LIMIT sqlc.arg(window_size)::int
) w;

-- name: ReadAdmissionEpoch :one
SELECT epoch FROM admission_epoch WHERE one;

-- name: FindExpiredExecutions :one
-- Executions that have waited longer than their queue allows, at most some of each lane, in their
-- order; one window of queues at a time. Waiting time stops in a paused queue and starts anew at
-- the end of the pause; it starts anew for all queues undisturbed_seconds ago. A timeout of 0 means
-- none.
WITH w AS MATERIALIZED (
    SELECT s.id, s.queued_count, s.paused, s.resumed_at, s.head_high, s.head_order, s.head_low,
           coalesce(s.queue_timeout_seconds, sqlc.arg(default_seconds)::int) AS seconds
    FROM execution_admission_state s
    WHERE s.id > sqlc.arg(after)::bigint
    ORDER BY s.id
    LIMIT sqlc.arg(window_size)::int
)
SELECT coalesce((SELECT max(w.id) FROM w), 0)::bigint AS last, (SELECT count(*) FROM w)::int AS scanned,
       ARRAY(
           SELECT h.execution_id
           FROM w
           CROSS JOIN (VALUES (1), (0), (-1)) AS l (lane)
           CROSS JOIN LATERAL (
               SELECT q.execution_id, q.enqueued_at FROM execution_admission_entry q
               WHERE q.state_id = w.id AND q.lane = l.lane
                 AND q.queue_order >= CASE l.lane WHEN 1 THEN w.head_high WHEN 0 THEN w.head_order ELSE w.head_low END
               ORDER BY q.queue_order LIMIT sqlc.arg(per_lane)::int
           ) h
           WHERE w.queued_count > 0 AND NOT w.paused AND w.seconds > 0 AND w.seconds < sqlc.arg(undisturbed_seconds)::float8
             AND greatest(h.enqueued_at, w.resumed_at) < now() - make_interval(secs => w.seconds)
       )::bigint[] AS ids;

-- name: FindMisplacedExecutions :one
-- Executions that wait in a queue whose group has other parameters than the present policy, in the
-- order in which they began to wait.
WITH w AS MATERIALIZED (
    SELECT s.id, s.action_id, s.queued_count, s.group_key
    FROM execution_admission_state s
    WHERE s.id > sqlc.arg(after)::bigint
    ORDER BY s.id
    LIMIT sqlc.arg(window_size)::int
)
SELECT coalesce((SELECT max(w.id) FROM w), 0)::bigint AS last, (SELECT count(*) FROM w)::int AS scanned,
       ARRAY(
           SELECT h.execution_id
           FROM w
           CROSS JOIN LATERAL (
               SELECT q.execution_id, q.id AS ticket FROM execution_admission_entry q
               WHERE q.state_id = w.id ORDER BY q.state_id, q.lane, q.queue_order LIMIT sqlc.arg(per_queue)::int
           ) h
           WHERE w.queued_count > 0
             AND attune_queue_shape(w.action_id) IS DISTINCT FROM CASE WHEN w.group_key LIKE '{%}'
                 THEN ARRAY(SELECT k COLLATE "C" FROM jsonb_object_keys(w.group_key::jsonb) AS u (k) ORDER BY 1)
                 ELSE '{}' END
           ORDER BY h.ticket
       )::bigint[] AS ids;

-- name: FindLostHolders :many
-- The notes of executions that were deleted while they held a slot or waited.
SELECT id, coalesce(state_id, 0)::bigint AS state_id, coalesce(waited_in, 0)::bigint AS waited_in, worker, scopes
FROM lost_holder
ORDER BY id
LIMIT sqlc.arg(page)::int;

-- name: RefreshOldestQueued :exec
-- Stores the oldest waiting execution of actions with groups, which a batch does not search in all
-- groups.
WITH oldest AS (
    SELECT s.action_id, min(least(
        (SELECT q.enqueued_at FROM execution_admission_entry q
         WHERE q.state_id = s.id AND q.lane = 0 AND q.queue_order >= s.head_order ORDER BY q.queue_order LIMIT 1),
        (SELECT q.enqueued_at FROM execution_admission_entry q
         WHERE q.state_id = s.id AND q.lane = 1 AND q.queue_order >= s.head_high ORDER BY q.queue_order LIMIT 1),
        (SELECT q.enqueued_at FROM execution_admission_entry q
         WHERE q.state_id = s.id AND q.lane = -1 AND q.queue_order >= s.head_low ORDER BY q.queue_order LIMIT 1))) AS at
    FROM execution_admission_state s
    WHERE s.queued_count > 0
    GROUP BY s.action_id
    HAVING bool_or(s.group_key IS NOT NULL)
), stale AS (
    SELECT t.action_id, o.at
    FROM queue_stats t JOIN oldest o ON o.action_id = t.action_id
    WHERE t.oldest_enqueued_at IS DISTINCT FROM o.at AND t.queue_length > 0
    ORDER BY t.action_id
    FOR UPDATE OF t SKIP LOCKED
)
UPDATE queue_stats t SET oldest_enqueued_at = s.at FROM stale s WHERE t.action_id = s.action_id;

-- name: FindWrongQueueStats :many
-- Actions whose statistics differ from the sums of their queues, for example after statistics were
-- off for a time.
SELECT s.action_id
FROM (
    SELECT action_id, sum(queued_count) AS queued, sum(active_count) AS active
    FROM execution_admission_state GROUP BY action_id
) s
LEFT JOIN queue_stats t ON t.action_id = s.action_id
WHERE coalesce(t.queue_length, 0) <> s.queued OR coalesce(t.active_count, 0) <> s.active
ORDER BY s.action_id
LIMIT sqlc.arg(page)::int;

-- name: LockActionQueues :many
SELECT id FROM execution_admission_state WHERE action_id = sqlc.arg(action) ORDER BY id FOR UPDATE;

-- name: SumQueueStats :exec
-- Needs the locks of all queues of the action.
INSERT INTO queue_stats AS t (action_id, queue_length, active_count, max_concurrent, total_enqueued, total_completed, last_updated)
SELECT s.action_id, sum(s.queued_count), sum(s.active_count), max(s.max_concurrent), sum(s.total_enqueued), sum(s.total_completed), now()
FROM execution_admission_state s
WHERE s.action_id = sqlc.arg(action)
GROUP BY s.action_id
ON CONFLICT (action_id) DO UPDATE
SET queue_length = excluded.queue_length, active_count = excluded.active_count, last_updated = excluded.last_updated;

-- name: FindEndedQueued :one
-- Entries whose execution another program ended or moved on, one window of entries at a time.
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
-- An adopted database keeps its own execution table, without our generated column.
SELECT NOT EXISTS (
    SELECT FROM pg_catalog.pg_attribute a
    WHERE a.attrelid = to_regclass('execution') AND a.attname = 'finished_status' AND NOT a.attisdropped
) AS adopted;

-- name: LeftByAnotherEngine :one
-- Entries of running executions are never ours, nor are entries that no queue counts.
SELECT (EXISTS (SELECT FROM execution_admission_entry WHERE status = 'active')
        OR (SELECT count(*) FROM execution_admission_entry)
           > (SELECT coalesce(sum(queued_count), 0) FROM execution_admission_state))::bool AS left_over;

-- name: TakeOver :one
-- Executions that were taken over hold no slots of shared limits: these count the running
-- executions again.
WITH counted AS (UPDATE admission_epoch SET epoch = epoch + 1, policies = policies + 1 RETURNING 1)
SELECT attune_take_over()::bigint AS holders FROM counted;
