-- Queues, for users: waiting executions and their reasons, holders of slots, and rates. Nothing
-- locks, and nothing costs more when more executions wait: positions are found by the index on
-- (state_id, lane, queue_order), executions by the partial index on unfinished rows or by (action,
-- id), each up to a bound. A pair compared as a row, with the action as a range of one value, keeps
-- the planner to the index on (action, id), whatever the statistics say of the action.

-- name: ViewAdmission :many
-- The admission state of one execution. A config too large to open is null.
SELECT e.attempt, e.admitted_at, coalesce(h.state_id, 0)::bigint AS held_state, coalesce(e.priority, 0)::smallint AS priority,
       a.id AS action_id, a.pack AS pack_id, a.param_schema, a.workflow_def,
       coalesce(a.scheduled_timeout_seconds, 0)::int AS scheduled_timeout_seconds,
       coalesce(CASE WHEN pg_column_size(e.config) <= sqlc.arg(cut)::int THEN e.config END, 'null')::jsonb AS config,
       coalesce(CASE WHEN attune_terminal(e.status) AND pg_column_size(e.result) < 8000
                     THEN left(e.result ->> 'error', 100) END, '')::text AS error,
       en.state_id, en.lane, en.queue_order, en.enqueued_at
FROM execution e
LEFT JOIN action a ON a.id = coalesce(e.action, (SELECT x.id FROM action x WHERE x.ref = e.action_ref))
LEFT JOIN execution_admission_entry en ON en.execution_id = ANY (ARRAY[e.id])
LEFT JOIN execution_holder h ON h.execution = ANY (ARRAY[e.id])
WHERE e.id = sqlc.arg(id)::bigint;

-- name: ViewQueueIDs :many
-- The busiest matching queues. A leftover queue holds nothing, has no override, and is of a group
-- that the policies in force do not make. Leftover queues are omitted unless all are requested.
WITH shapes AS MATERIALIZED (
    SELECT d.action_id, attune_queue_shape(d.action_id) AS shape
    FROM (SELECT DISTINCT i.action_id FROM execution_admission_state i
          WHERE NOT sqlc.arg(everything)::bool AND i.queued_count = 0 AND i.active_count = 0
            AND (sqlc.arg(action_id)::bigint = 0 OR i.action_id = sqlc.arg(action_id)::bigint)
            AND (i.group_key IS NOT NULL OR (SELECT count(*) > 0 FROM policy p WHERE cardinality(p.parameters) > 0))) d
)
SELECT st.id
FROM execution_admission_state st JOIN action a ON a.id = st.action_id LEFT JOIN shapes h ON h.action_id = st.action_id
WHERE (sqlc.arg(pattern)::text = '' OR (a.ref || ' ' || coalesce(st.group_key, '')) ILIKE sqlc.arg(pattern)::text)
  AND (sqlc.arg(action_id)::bigint = 0 OR st.action_id = sqlc.arg(action_id)::bigint)
  AND (NOT sqlc.arg(only_paused)::bool OR st.paused)
  AND (NOT sqlc.arg(only_blocked)::bool OR EXISTS (SELECT FROM admission_blocked b WHERE b.state_id = st.id))
  AND (sqlc.arg(everything)::bool OR st.queued_count > 0 OR st.active_count > 0 OR st.paused OR st.limit_override IS NOT NULL
       OR coalesce(h.shape, '{}') = CASE WHEN st.group_key ~ '^[{].*[}]$'
            THEN ARRAY(SELECT k COLLATE "C" FROM jsonb_object_keys(st.group_key::jsonb) k ORDER BY 1) ELSE '{}' END)
ORDER BY st.queued_count DESC, st.active_count DESC, st.id
LIMIT sqlc.arg(bound)::bigint;

-- name: ViewQueues :many
-- Queues with the newest concurrency policy of their action.
SELECT s.id, s.action_id, a.ref AS action_ref, a.pack AS pack_id, coalesce(s.group_key, '')::text AS "group",
       s.active_count AS active, s.queued_count AS queued, s.queued_high, s.queued_low,
       CASE WHEN NOT s.unlimited THEN s.max_concurrent END AS "limit", CASE WHEN s.max_queued > 0 THEN s.max_queued END AS max_queued,
       make_interval(secs => greatest(coalesce(s.queue_timeout_seconds, 0), 0)) AS queue_timeout,
       s.paused, coalesce(s.pause_reason, '')::text AS pause_reason, coalesce(s.paused_by, '')::text AS paused_by, s.paused_at, s.resumed_at,
       s.total_enqueued AS enqueued, s.total_completed AS completed, s.head_high, s.head_order, s.head_low, s.next_queue_order,
       (CASE WHEN b.state_id IS NOT NULL THEN coalesce(nullif(b.reason, ''), 'waiting for a worker') ELSE '' END)::text AS blocked,
       b.since AS blocked_since, b.until AS blocked_until, b.scope_id AS blocked_scope,
       coalesce(n.ref, '')::text AS policy, n.threshold,
       (CASE WHEN s.unlimited THEN 'none'
             WHEN s.adaptive_limit > 0 AND s.max_concurrent < coalesce(s.limit_override, n.threshold, 0) THEN 'adaptive'
             WHEN s.limit_override IS NOT NULL THEN 'override' ELSE 'policy' END)::text AS kind
FROM execution_admission_state s
JOIN action a ON a.id = s.action_id
LEFT JOIN admission_blocked b ON b.state_id = s.id
LEFT JOIN (SELECT DISTINCT ON (p.action) p.action, p.ref, p.threshold FROM policy p
           WHERE p.kind = 'concurrency' AND p.action IS NOT NULL
           ORDER BY p.action, p.created DESC, p.id DESC) n ON n.action = s.action_id
WHERE s.id = ANY (sqlc.arg(ids)::bigint[])
ORDER BY s.queued_count DESC, s.active_count DESC, s.id;

-- name: ViewHeads :many
-- The first waiting execution of each lane, one step into the index each.
SELECT s.id AS state_id, l.lane::smallint AS lane, h.execution_id, h.enqueued_at
FROM (
    SELECT st.id, st.head_high, st.head_order, st.head_low, st.queued_count, st.queued_high, st.queued_low
    FROM execution_admission_state st WHERE st.id = ANY (sqlc.arg(ids)::bigint[]) AND st.queued_count > 0
) s
CROSS JOIN LATERAL (
    SELECT unnest(ARRAY[1, 0, -1]::smallint[]) AS lane, unnest(ARRAY[s.head_high, s.head_order, s.head_low]) AS head,
           unnest(ARRAY[s.queued_high, s.queued_count - s.queued_high - s.queued_low, s.queued_low]) AS n
) l
CROSS JOIN LATERAL (
    SELECT q.execution_id, q.enqueued_at FROM execution_admission_entry q
    WHERE q.state_id = s.id AND q.lane = l.lane AND q.queue_order >= l.head
    ORDER BY q.queue_order LIMIT 1
) h
WHERE l.n > 0;

-- name: ViewAhead :one
-- The number of waiting executions before a position in its lane, up to the bound.
SELECT count(*) FROM (
    SELECT 1 FROM execution_admission_entry o
    WHERE o.state_id = sqlc.arg(state)::bigint AND o.lane = sqlc.arg(lane)::smallint
      AND o.queue_order >= sqlc.arg(head)::bigint AND o.queue_order < sqlc.arg(place)::bigint
    ORDER BY o.queue_order LIMIT sqlc.arg(bound)::bigint) k;

-- name: ViewQueueID :many
SELECT s.id FROM execution_admission_state s
WHERE s.action_id = sqlc.arg(action_id)::bigint AND s.group_key_normalized = sqlc.arg(group_key)::text;

-- name: ViewAction :many
-- An action by its ref, or by its id if that is not zero.
SELECT a.id, a.ref, a.pack AS pack_id, a.param_schema
FROM action a
WHERE a.ref = sqlc.arg(ref)::text OR a.id = sqlc.arg(id)::bigint;

-- name: ViewActionTotals :one
-- The totals of all queues of an action.
SELECT count(*) FILTER (WHERE s.group_key IS NOT NULL) AS groups, coalesce(sum(s.queued_count), 0)::bigint AS queued,
       coalesce(sum(s.active_count), 0)::bigint AS active
FROM execution_admission_state s WHERE s.action_id = sqlc.arg(action_id)::bigint;

-- name: ViewPolicies :many
-- Every policy that could apply to an action, the newest first.
SELECT p.id, p.ref, p.kind, p.threshold, p.method::text AS method, p.parameters, p.window_seconds, p.burst,
       p.max_queue_length, p.queue_timeout_seconds, p.created, p.updated,
       (CASE WHEN p.action IS NOT NULL THEN 'action' WHEN p.pack IS NOT NULL THEN 'pack' ELSE 'global' END)::text AS scope,
       coalesce((SELECT k.ref FROM pack k WHERE k.id = sqlc.arg(pack_id)::bigint), '')::text AS pack_ref
FROM policy p
WHERE p.action = sqlc.arg(action_id)::bigint
   OR (p.action IS NULL AND (p.pack = sqlc.arg(pack_id)::bigint OR p.pack IS NULL))
ORDER BY p.created DESC, p.id DESC
LIMIT sqlc.arg(bound)::int;

-- name: ViewScopesByKey :many
SELECT sc.id
FROM (
    SELECT unnest(sqlc.arg(kinds)::text[]) AS kind, unnest(sqlc.arg(keys)::text[]) AS scope_key
) r
CROSS JOIN LATERAL (
    SELECT c.id FROM admission_scope c WHERE c.kind = r.kind AND c.scope_key = r.scope_key OFFSET 0
) sc;

-- name: ViewScopeIDs :many
-- Shared limits in force, and limits with taken slots; with a pattern, the limits of actions whose
-- ref matches.
SELECT c.id FROM admission_scope c LEFT JOIN policy p ON p.id = c.policy
WHERE (c.policy IS NOT NULL OR c.active_count > 0)
  AND (sqlc.arg(pattern)::text = '' OR c.scope_key ILIKE sqlc.arg(pattern)::text OR EXISTS (
      SELECT FROM action a
      WHERE a.ref ILIKE sqlc.arg(pattern)::text
        AND (p.action = a.id OR (p.id IS NOT NULL AND p.action IS NULL AND (p.pack = a.pack OR p.pack IS NULL))
             OR (p.id IS NULL AND (c.kind = 'global' OR (c.kind = 'pack' AND split_part(c.scope_key, ' ', 1) = a.pack::text))))))
ORDER BY c.kind, c.scope_key LIMIT sqlc.arg(bound)::bigint;

-- name: ViewScopes :many
-- Shared limits with their policy, and the queues that they block.
SELECT c.id, c.kind, c.scope_key, c.max_concurrent AS "limit", c.active_count AS active, c.policy AS policy_id, c.policy_ref,
       make_interval(secs => coalesce(c.window_seconds, 0)) AS "window", coalesce(c.burst, 0)::int AS burst,
       c.next_at, c.period_start, c.used AS starts,
       coalesce((SELECT k.ref FROM pack k WHERE k.id = CASE WHEN c.kind = 'pack' AND c.scope_key ~ '^[0-9]{1,18}( |$)'
                 THEN split_part(c.scope_key, ' ', 1)::bigint END), '')::text AS pack_ref,
       (SELECT count(*) FROM (SELECT 1 FROM admission_blocked b WHERE b.scope_id = c.id LIMIT 1000) k)::bigint AS blocked
FROM admission_scope c
WHERE c.id = ANY (sqlc.arg(ids)::bigint[])
ORDER BY c.kind, c.scope_key;

-- name: ViewQueueHolders :many
-- The oldest holders of a queue.
SELECT h.execution AS id, h.granted_at AS since FROM execution_holder h
WHERE h.state_id = sqlc.arg(state)::bigint
ORDER BY h.granted_at, h.execution LIMIT sqlc.arg(bound)::bigint;

-- name: ViewScopeHolders :many
SELECT c.execution AS id, c.created AS since FROM (
    SELECT s.execution, s.created FROM execution_slot s
    WHERE s.scope_id = sqlc.arg(scope)::bigint LIMIT sqlc.arg(bound)::bigint) c
ORDER BY c.created, c.execution;

-- name: ViewHolders :many
SELECT e.id, e.action_ref, e.status::text AS status, e.worker AS worker_id, coalesce(w.name, '')::text AS worker_name,
       coalesce(w.status::text, '')::text AS worker_status, coalesce((to_jsonb(w) ->> 'heartbeat_seen')::timestamptz, w.last_heartbeat) AS heartbeat,
       coalesce(w.cordoned, false)::bool AS cordoned, coalesce(w.draining, false)::bool AS draining, (to_jsonb(w) ->> 'suspect_since')::timestamptz AS suspect_since
FROM execution e LEFT JOIN worker w ON w.id = e.worker
WHERE e.id = ANY (sqlc.arg(ids)::bigint[]);

-- name: ViewSample :many
-- A sample of recent admissions, searched below each of the given ids: the heads of the lanes,
-- before which the admitted executions stand, and the end.
SELECT c.id, c.created, c.admitted_at AS at, c.started_at, c.finished_at, coalesce(h.state_id, 0)::bigint AS held_state, c.config
FROM (SELECT unnest(sqlc.arg(belows)::bigint[]) AS below) r
CROSS JOIN LATERAL (
    SELECT e.id, e.created, e.admitted_at, e.started_at, e.finished_at,
           coalesce(CASE WHEN sqlc.arg(with_config)::bool AND pg_column_size(e.config) <= sqlc.arg(cut)::int THEN e.config END, 'null')::jsonb AS config
    FROM execution e
    WHERE (e.action, e.id) < (sqlc.arg(action_id)::bigint, r.below) AND e.action >= sqlc.arg(action_id)::bigint
    ORDER BY e.action DESC, e.id DESC LIMIT sqlc.arg(scan)::bigint) c
LEFT JOIN LATERAL (SELECT o.state_id FROM execution_holder o WHERE o.execution = ANY (ARRAY[c.id]) OFFSET 0) h ON true
WHERE c.admitted_at IS NOT NULL;

-- name: ViewAges :many
-- The waiting times of executions from positions of lanes on, up to the bound each.
SELECT r.lane::smallint AS lane, greatest(now() - w.enqueued_at, '0')::interval AS since
FROM (
    SELECT unnest(sqlc.arg(lanes)::smallint[]) AS lane, unnest(sqlc.arg(places)::bigint[]) AS place
) r
CROSS JOIN LATERAL (
    SELECT q.enqueued_at FROM execution_admission_entry q
    WHERE q.state_id = sqlc.arg(state)::bigint AND q.lane = r.lane AND q.queue_order >= r.place
    ORDER BY q.queue_order LIMIT sqlc.arg(bound)::bigint) w;

-- name: ViewReplicas :one
-- The number of replicas seen within the given time, and the seconds since the last one; -1 if
-- there was none.
SELECT count(*) FILTER (WHERE r.last_seen > now() - make_interval(secs => sqlc.arg(seconds)::float8)) AS alive,
       coalesce(extract(epoch FROM now() - max(r.last_seen)), -1)::float8 AS silent
FROM engine_replica r;

-- name: ViewQueueStats :many
SELECT q.action_id, a.ref AS action_ref, q.queue_length, q.active_count, nullif(q.max_concurrent, 2147483647) AS max_concurrent,
       q.oldest_enqueued_at, q.total_enqueued, q.total_completed, q.last_updated
FROM queue_stats q JOIN action a ON a.id = q.action_id
WHERE q.action_id = sqlc.arg(action_id)::bigint;

-- name: ViewBusiest :many
-- The busiest actions, all their queues together. The limit is the one of each queue: an operator's
-- override of the action, or the newest concurrency policy, below which the one queue of an action
-- without groups may have been lowered.
SELECT t.action_id, a.ref AS action_ref, t.queued, t.active, t.enqueued, t.completed, t.paused, t.blocked,
       least(coalesce(w.limit_override, p.threshold), CASE WHEN coalesce(cardinality(p.parameters), 0) = 0 AND w.adaptive_limit >= 1
             THEN floor(w.adaptive_limit)::int END)::int AS "limit"
FROM (
    SELECT s.action_id, sum(s.queued_count)::bigint AS queued, sum(s.active_count)::bigint AS active,
           sum(s.total_enqueued)::bigint AS enqueued, sum(s.total_completed)::bigint AS completed,
           bool_or(s.paused)::bool AS paused, count(b.state_id) AS blocked
    FROM execution_admission_state s LEFT JOIN admission_blocked b ON b.state_id = s.id
    GROUP BY s.action_id
    ORDER BY sum(s.queued_count) DESC, sum(s.active_count) DESC, s.action_id
    LIMIT sqlc.arg(bound)::int) t
JOIN action a ON a.id = t.action_id
LEFT JOIN execution_admission_state w ON w.action_id = t.action_id AND w.group_key IS NULL
LEFT JOIN LATERAL (
    SELECT o.threshold, o.parameters FROM policy o WHERE o.action = t.action_id AND o.kind = 'concurrency'
    ORDER BY o.created DESC, o.id DESC LIMIT 1) p ON true
ORDER BY t.queued DESC, t.active DESC, t.action_id;
