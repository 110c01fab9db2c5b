-- The work queues of an existing installation. The engine reads them and never writes to them. A
-- schema may lack their tables: MonitorSchema says whether they exist with the published columns.

-- name: ViewWorkQueues :many
-- The queues that hold items, up to most, with the items counted up to bound each.
-- Waiting items of a disabled queue are not counted: no engine would dispatch them.
-- oldest is that of the items counted, in the order in which they are dispatched.
WITH leased AS MATERIALIZED (
    SELECT i.queue, i.created FROM work_queue_item i
    WHERE i.leased_execution IS NOT NULL AND i.status = 'leased' LIMIT sqlc.arg(bound)::bigint
), held AS MATERIALIZED (
    SELECT l.queue, count(*) AS n, min(l.created) AS oldest FROM leased l GROUP BY l.queue
)
SELECT q.ref, w.n::bigint AS waiting, coalesce(h.n, 0)::bigint AS leased, least(w.oldest, h.oldest)::timestamptz AS oldest
FROM work_queue q
LEFT JOIN held h ON h.queue = q.id
CROSS JOIN LATERAL (
    SELECT count(*) AS n, min(x.created) AS oldest
    FROM (SELECT i.created FROM work_queue_item i
          WHERE q.enabled AND i.queue = q.id AND i.status IN ('queued', 'retry')
          ORDER BY i.priority DESC, i.created, i.id LIMIT sqlc.arg(bound)::bigint) x
) w
WHERE w.n > 0 OR h.n > 0
ORDER BY q.ref LIMIT sqlc.arg(most)::bigint;

-- name: ViewWorkQueueLease :many
-- The work queue whose dispatch of an execution is open, with the items leased to it.
SELECT q.ref, (SELECT count(*) FROM work_queue_item i WHERE i.leased_execution = d.execution AND i.status = 'leased')::bigint AS items
FROM work_queue_dispatch d
JOIN work_queue q ON q.id = d.queue
WHERE d.execution = sqlc.arg(execution)::bigint AND d.status IN ('leased', 'dispatched');
