-- Attempts, for users. The attempts of an execution name the same first one, or are chained by
-- their retries, because the first may have been deleted. Retries of other programs have no
-- chain.

-- name: ViewAttempts :many
-- All attempts of the execution's chain, the last first. A chain longer than the page is cut at its
-- beginning.
WITH RECURSIVE chain (id) AS (
    SELECT e.id FROM execution e WHERE e.id = sqlc.arg(id)::bigint
    UNION
    SELECT x.id
    FROM chain c
    CROSS JOIN LATERAL (
        SELECT e.original_execution AS id FROM execution e WHERE e.id = c.id AND e.original_execution IS NOT NULL
        UNION ALL SELECT e.id FROM execution e WHERE e.original_execution = c.id
        UNION ALL SELECT r.execution FROM execution_retry r WHERE r.failed = c.id
        UNION ALL SELECT r.failed FROM execution_retry r WHERE r.execution = c.id
    ) x
)
SELECT e.id, e.retry_count + 1 AS number, coalesce(r.reason, e.retry_reason, '')::text AS reason,
       coalesce(r.requested_by, '')::text AS requested_by, r.failed AS repeats,
       CASE WHEN r.waiting AND e.status = 'requested' THEN r.due END AS due
FROM chain c
JOIN execution e ON e.id = ANY (ARRAY[c.id])
LEFT JOIN execution_retry r ON r.execution = ANY (ARRAY[e.id])
ORDER BY e.retry_count DESC, e.id DESC
LIMIT sqlc.arg(page)::int;

-- name: ViewPublishedAttempts :many
-- ViewAttempts from the published schema.
WITH first AS (
    SELECT coalesce(e.original_execution, e.id) AS id FROM execution e WHERE e.id = sqlc.arg(id)::bigint
), chain AS (
    SELECT f.id FROM first f
    UNION
    SELECT e.id FROM first f JOIN execution e ON e.original_execution = f.id
)
SELECT e.id, e.retry_count + 1 AS number, coalesce(e.retry_reason, '')::text AS reason
FROM chain c
JOIN execution e ON e.id = ANY (ARRAY[c.id])
ORDER BY e.retry_count DESC, e.id DESC
LIMIT sqlc.arg(page)::int;

-- name: ViewNextRetry :one
-- The inputs of the decision whether an ended execution is repeated, and its outcome.
SELECT e.status, e.retry_count, (e.started_at IS NOT NULL)::bool AS started, (e.workflow_task IS NOT NULL)::bool AS workflow_task,
       left(concat_ws(' ', e.result->>'error', e.result->>'message'), 2000)::text AS error,
       coalesce(e.result->>'failed_by', e.result->>'abandoned_by', '')::text AS ended_by,
       coalesce(e.max_retries, (SELECT a.max_retries FROM action a WHERE a.id = e.action), 0)::int AS allowed,
       (e.max_retries IS NULL)::bool AS action_allows, EXISTS (SELECT FROM attune_schema_origin o WHERE o.origin = 'adopted')::bool AS adopted,
       EXISTS (SELECT FROM execution_cancel c WHERE c.execution = e.id)::bool AS cancel_asked,
       coalesce((SELECT r.execution FROM execution_retry r WHERE r.failed = e.id), 0)::bigint AS repeated_by
FROM execution e
WHERE e.id = sqlc.arg(id)::bigint;

-- name: FindNewestAttempt :one
-- An execution to repeat, and the newest attempt after it: itself if there is none.
WITH RECURSIVE later (id, depth) AS (
    SELECT sqlc.arg(id)::bigint, 0
    UNION ALL
    SELECT r.execution, l.depth + 1 FROM later l JOIN execution_retry r ON r.failed = l.id
)
SELECT e.id, e.status, e.action, e.action_ref,
       coalesce((SELECT x.id FROM execution x
                 WHERE x.original_execution = coalesce(e.original_execution, e.id)
                   AND (x.retry_count, x.id) > (e.retry_count, e.id)
                 ORDER BY x.retry_count DESC, x.id DESC LIMIT 1),
                (SELECT l.id FROM later l ORDER BY l.depth DESC LIMIT 1))::bigint AS newest
FROM execution e
WHERE e.id = sqlc.arg(id)::bigint;
