-- Cancelling. Every writer has locked the workflows first, then the queues of waiting executions,
-- then the executions in order of id. Every change repeats the values read under the locks, and
-- rolls back its transaction if they have changed.

-- name: CancelTargets :many
-- The executions that a cancellation is about: the execution itself, or the last of its
-- retries. state_id is the queue to lock before the row: the queue in which it waits, or, for a
-- failed one, the queue of the slot that it still holds, because the batch that releases the slot
-- would repeat it.
WITH RECURSIVE chain AS (
    SELECT e.id AS named, e.id AS latest, 0 AS n FROM execution e WHERE e.id = ANY (sqlc.arg(ids)::bigint[])
    UNION ALL
    SELECT c.named, e.id, c.n + 1
    FROM chain c
    CROSS JOIN LATERAL (SELECT r.execution FROM execution_retry r WHERE r.failed = c.latest OFFSET 0) t
    CROSS JOIN LATERAL (SELECT x.id FROM execution x WHERE x.id = t.execution OFFSET 0) e
    WHERE c.n < 1000
)
SELECT c.named::bigint AS named, c.latest::bigint AS id,
       coalesce((SELECT q.state_id FROM execution_admission_entry q WHERE q.execution_id = e.id),
                CASE WHEN e.status IN ('failed', 'timeout', 'abandoned')
                     THEN (SELECT h.state_id FROM execution_holder h WHERE h.execution = ANY (ARRAY[e.id])) END, 0)::bigint AS state_id
FROM (SELECT DISTINCT ON (named) named, latest FROM chain ORDER BY named, n DESC) c
JOIN execution e ON e.id = c.latest
ORDER BY c.named;

-- name: CancelLockWorkflows :exec
SELECT id FROM workflow_execution WHERE execution = ANY (sqlc.arg(ids)::bigint[]) ORDER BY id FOR NO KEY UPDATE;

-- name: LockForChange :exec
-- Locks the rows. The next statement reads them: it sees everything that was committed while this
-- one waited.
SELECT e.id FROM execution e WHERE e.id = ANY (sqlc.arg(ids)::bigint[]) ORDER BY e.id FOR NO KEY UPDATE OF e;

-- name: CancelFacts :many
-- The inputs of the decision. retry is the execution that repeats this one, if any; held is the
-- queue of the slot that a failed one still holds; actor and reason belong to the first request;
-- tends is true for the execution of a workflow with live children.
SELECT e.id, e.status, coalesce(e.action, 0)::bigint AS action, e.action_ref, e.parent, coalesce(e.worker, 0)::bigint AS worker, e.attempt,
       (e.started_at IS NOT NULL)::bool AS started, extract(epoch FROM now() - e.updated)::float8 AS age, now()::timestamptz AS now,
       coalesce((SELECT q.state_id FROM execution_admission_entry q WHERE q.execution_id = e.id), 0)::bigint AS waits,
       coalesce(t.execution, 0)::bigint AS retry,
       coalesce(CASE WHEN e.status IN ('failed', 'timeout', 'abandoned')
                     THEN (SELECT h.state_id FROM execution_holder h WHERE h.execution = ANY (ARRAY[e.id])) END, 0)::bigint AS held,
       EXISTS (SELECT FROM workflow_execution f WHERE f.execution = e.id) AS workflow,
       (e.worker IS NULL AND EXISTS (SELECT FROM workflow_execution f WHERE f.execution = e.id)
        AND EXISTS (SELECT FROM (SELECT x.status FROM execution x WHERE x.parent = e.id OFFSET 0) h
                    WHERE h.status NOT IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned')))::bool AS tends,
       coalesce(k.name, '')::text AS worker_name, coalesce(k.capabilities->'attempt_fence' = 'true'::jsonb, false)::bool AS fences,
       (k.id IS NOT NULL AND coalesce(k.heartbeat_seen, '-infinity') < now() - make_interval(secs => sqlc.arg(stale_after)::float8))::bool AS gone,
       coalesce(c.actor, '')::text AS actor, coalesce(c.reason, '')::text AS reason
FROM execution e
LEFT JOIN LATERAL (SELECT w.id, w.name, w.capabilities, w.heartbeat_seen FROM worker w WHERE w.id = e.worker OFFSET 0) k ON true
LEFT JOIN LATERAL (SELECT n.actor, n.reason FROM execution_cancel n WHERE n.execution = e.id OFFSET 0) c ON true
LEFT JOIN LATERAL (
    SELECT r.execution FROM execution_retry r
    WHERE r.failed = e.id AND EXISTS (SELECT FROM execution x WHERE x.id = ANY (ARRAY[r.execution])) OFFSET 0
) t ON true
WHERE e.id = ANY (sqlc.arg(ids)::bigint[])
ORDER BY e.id;

-- name: NoteCancels :exec
-- The request is stored before the status changes, so that it has its author; a note that a trigger
-- derives from a status has none.
INSERT INTO execution_cancel AS c (execution, actor, reason)
SELECT r.id, sqlc.arg(actor)::text, nullif(sqlc.arg(reason)::text, '')
FROM (SELECT unnest(sqlc.arg(ids)::bigint[]) AS id) r
ORDER BY r.id
ON CONFLICT (execution) DO UPDATE SET actor = excluded.actor, reason = excluded.reason WHERE c.actor IS NULL;

-- name: NoteLaterCancels :many
-- Stores the requests of waiting executions that later transactions end: until then nothing starts them.
INSERT INTO execution_cancel AS c (execution, actor, reason)
SELECT e.id, sqlc.arg(actor)::text, nullif(sqlc.arg(reason)::text, '')
FROM execution e
WHERE e.id = ANY (sqlc.arg(ids)::bigint[]) AND e.status = 'requested'
ORDER BY e.id
ON CONFLICT (execution) DO UPDATE SET actor = coalesce(c.actor, excluded.actor), reason = CASE WHEN c.actor IS NULL THEN excluded.reason ELSE c.reason END
RETURNING c.execution;

-- name: EndCancelled :exec
-- Ends executions that do not run, or that no worker could stop. With IS NOT DISTINCT FROM the rows are found by their
-- ids: a join by equal statuses, workers and attempts takes a minute for 10,000 waiting executions.
WITH changed AS (
    UPDATE execution e
    SET status = 'cancelled', result = r.result
    FROM (
        SELECT unnest(sqlc.arg(ids)::bigint[]) AS id, unnest(sqlc.arg(statuses)::text[]) AS status,
               unnest(sqlc.arg(workers)::bigint[]) AS worker, unnest(sqlc.arg(attempts)::int[]) AS attempt,
               unnest(sqlc.arg(results)::jsonb[]) AS result
    ) r
    WHERE e.id = ANY (ARRAY[r.id])
      AND (e.status, coalesce(e.worker, 0), e.attempt) IS NOT DISTINCT FROM (r.status::execution_status_enum, r.worker, r.attempt)
      AND e.status NOT IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned')
    RETURNING e.id
)
SELECT attune_expect((SELECT count(*) FROM changed), cardinality(sqlc.arg(ids)::bigint[])::bigint, 'cancelled executions');

-- name: AskToStop :exec
WITH changed AS (
    UPDATE execution e
    SET status = 'canceling'
    FROM (
        SELECT unnest(sqlc.arg(ids)::bigint[]) AS id, unnest(sqlc.arg(statuses)::text[]) AS status,
               unnest(sqlc.arg(workers)::bigint[]) AS worker, unnest(sqlc.arg(attempts)::int[]) AS attempt
    ) r
    WHERE e.id = ANY (ARRAY[r.id])
      AND (e.status, coalesce(e.worker, 0), e.attempt) IS NOT DISTINCT FROM (r.status::execution_status_enum, r.worker, r.attempt) AND e.status IN ('scheduled', 'running')
    RETURNING e.id
)
SELECT attune_expect((SELECT count(*) FROM changed), cardinality(sqlc.arg(ids)::bigint[])::bigint, 'executions asked to stop');

-- name: CancelFollowers :exec
-- Cancels what belongs to a cancelled execution: its due time, its inquiry, its workflow. Inquiries
-- of other services about an execution that a worker had stay open.
WITH untimed AS (
    UPDATE execution_retry SET waiting = false WHERE execution = ANY (sqlc.arg(ids)::bigint[]) AND waiting
), unasked AS (
    UPDATE inquiry i SET status = 'cancelled'
    FROM execution e
    WHERE i.execution = ANY (sqlc.arg(ids)::bigint[]) AND i.status = 'pending' AND e.id = i.execution AND e.worker IS NULL
)
UPDATE workflow_execution SET status = 'cancelled'
WHERE execution = ANY (sqlc.arg(ids)::bigint[]) AND status NOT IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned');

-- name: CancelChildren :many
-- The children of executions, up to a bound. OFFSET 0 keeps the planner from searching them along
-- the primary key. By the definition of workflows, a task that a worker has started runs to its end
-- unless its workflow says otherwise.
SELECT c.id::bigint AS id
FROM (SELECT e.id, e.parent, e.status, e.worker FROM execution e WHERE e.parent = ANY (sqlc.arg(parents)::bigint[]) OFFSET 0) c
LEFT JOIN LATERAL (
    SELECT coalesce(s.definition ->> 'cancellation_policy', 'allow_finish') AS policy
    FROM workflow_execution w LEFT JOIN workflow_source s ON s.id = ANY (ARRAY[w.source])
    WHERE w.execution = ANY (ARRAY[c.parent]) OFFSET 0
) p ON sqlc.arg(as_defined)::bool AND c.status IN ('running', 'canceling') AND c.worker IS NOT NULL
WHERE p.policy IS DISTINCT FROM 'allow_finish'
ORDER BY c.id
LIMIT sqlc.arg(most)::int;

-- name: FindCancels :many
-- A page of requested cancels after the last id; asked and ended are the ages of the request and of
-- the end. strayed is true for a failed execution that was repeated nevertheless, by a batch that
-- read the row before the note was written. The page comes first, and everything else by key.
WITH page AS MATERIALIZED (
    SELECT n.execution, n.at FROM execution_cancel n
    WHERE n.execution > sqlc.arg(after)::bigint
    ORDER BY n.execution
    LIMIT sqlc.arg(page)::int
)
SELECT c.execution, (e.status NOT IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned'))::bool AS live,
       EXISTS (SELECT FROM execution_holder h WHERE h.execution = ANY (ARRAY[c.execution]))::bool AS holds, (e.status IN ('failed', 'timeout', 'abandoned'))::bool AS failed,
       coalesce((SELECT r.status NOT IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned')
                 FROM execution_retry t
                 CROSS JOIN LATERAL (SELECT x.status FROM execution x WHERE x.id = t.execution OFFSET 0) r
                 WHERE t.failed = ANY (ARRAY[c.execution]) AND t.requested_by IS NULL), false)::bool AS strayed,
       extract(epoch FROM now() - c.at)::float8 AS asked,
       coalesce(extract(epoch FROM now() - coalesce(e.finished_at, e.updated)), 0)::float8 AS ended
FROM page c
CROSS JOIN LATERAL (
    SELECT x.status, x.finished_at, x.updated FROM execution x WHERE x.id = c.execution OFFSET 0
) e
ORDER BY c.execution;

-- name: PruneCancels :exec
DELETE FROM execution_cancel WHERE execution = ANY (sqlc.arg(ids)::bigint[]);
