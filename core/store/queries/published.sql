-- Reads of the published HTTP routes.

-- name: StoredSize :one
-- The bytes that the documents of an answer take in the tables, compressed: of an execution with the variables of its
-- workflow, an event, an inquiry, a dead letter, or a page of actions of operators below an id.
SELECT coalesce(CASE sqlc.arg(kind)::text
    WHEN 'execution' THEN (
        SELECT coalesce(pg_column_size(e.config), 0) + coalesce(pg_column_size(e.result), 0)
               + coalesce((SELECT max(pg_column_size(w.variables)) FROM workflow_execution w WHERE w.execution = e.id), 0)
        FROM execution e WHERE e.id = sqlc.arg(id)::bigint)
    WHEN 'event' THEN (SELECT max(pg_column_size(v.payload)) FROM event v WHERE v.id = sqlc.arg(id)::bigint)
    WHEN 'inquiry' THEN (SELECT pg_column_size(i.response) FROM inquiry i WHERE i.id = sqlc.arg(id)::bigint)
    WHEN 'dead letter' THEN (SELECT pg_column_size(l.body) FROM dead_letter l WHERE l.id = sqlc.arg(id)::bigint)
    WHEN 'audit' THEN (
        SELECT sum(pg_column_size(a.request)) FROM (
            SELECT o.request FROM operator_audit o WHERE o.id < sqlc.arg(id)::bigint ORDER BY o.id DESC LIMIT sqlc.arg(page)::bigint
        ) a)
END, 0)::bigint AS size;

-- name: ExecutionWithin :one
-- Whether an execution is another one or below it.
WITH RECURSIVE above AS (
    SELECT e.id, e.parent, 0 AS n FROM execution e WHERE e.id = sqlc.arg(id)::bigint
    UNION ALL
    SELECT e.id, e.parent, a.n + 1 FROM above a JOIN execution e ON e.id = ANY (ARRAY[a.parent]) WHERE a.n < 32
)
SELECT EXISTS (SELECT FROM above a WHERE a.id = sqlc.arg(top)::bigint)::bool AS within;

-- name: PublishedExecutions :many
-- The newest first. lead names the one index that finds candidates, at most scan of them; branches
-- of other indexes are not executed. The other filters apply to the candidates only; a pattern is
-- one of LIKE, empty for any. All ids are below before. matched counts the matching candidates. Unfinished rows are searched
-- from both ends, because running executions are old and waiting ones may be many.
WITH RECURSIVE tree AS (
    SELECT e.id FROM execution e
    WHERE sqlc.arg(lead)::text = 'enforcement' AND e.enforcement = sqlc.arg(enforcement)::bigint
      AND e.parent IS NULL AND (e.config IS NULL OR NOT (e.config ? 'retry_of'))
    UNION
    SELECT c.id FROM tree t JOIN execution c ON c.parent = t.id OR c.original_execution = t.id
), candidate AS (
    (SELECT e.id FROM execution e
     WHERE sqlc.arg(lead)::text = 'all' AND e.id < sqlc.arg(before)::bigint ORDER BY e.id DESC LIMIT sqlc.arg(scan)::bigint)
    UNION ALL
    (SELECT u.id FROM (
        (SELECT e.id FROM execution e WHERE sqlc.arg(lead)::text = 'unended' AND e.finished_status IS NULL
           AND e.id < sqlc.arg(before)::bigint ORDER BY e.id DESC LIMIT sqlc.arg(scan)::bigint)
        UNION
        (SELECT e.id FROM execution e WHERE sqlc.arg(lead)::text = 'unended' AND e.finished_status IS NULL
           AND e.id < sqlc.arg(before)::bigint ORDER BY e.id LIMIT sqlc.arg(scan)::bigint)) u)
    UNION ALL
    (SELECT e.id FROM unnest(sqlc.arg(ended)::text[]) AS s (status) CROSS JOIN LATERAL (
        SELECT x.id FROM execution x
        WHERE x.finished_status >= s.status::execution_status_enum AND x.finished_status <= s.status::execution_status_enum
          AND x.id < sqlc.arg(before)::bigint ORDER BY x.finished_status, x.id DESC LIMIT sqlc.arg(scan)::bigint) e
     WHERE sqlc.arg(lead)::text = 'ended')
    UNION ALL
    (SELECT e.id FROM unnest(sqlc.arg(actions)::bigint[]) AS a (id) CROSS JOIN LATERAL (
        SELECT x.id FROM execution x WHERE x.action >= a.id AND x.action <= a.id
          AND x.id < sqlc.arg(before)::bigint ORDER BY x.action DESC, x.id DESC LIMIT sqlc.arg(scan)::bigint) e
     WHERE sqlc.arg(lead)::text = 'action')
    UNION ALL
    (SELECT e.id FROM execution e -- of deleted actions
     WHERE sqlc.arg(lead)::text = 'action' AND e.action IS NULL AND e.id < sqlc.arg(before)::bigint ORDER BY e.id DESC LIMIT 20000)
    UNION ALL
    (SELECT e.id FROM execution e
     WHERE sqlc.arg(lead)::text = 'parent' AND e.parent = sqlc.arg(parent)::bigint
       AND e.id < sqlc.arg(before)::bigint ORDER BY e.id + 0 DESC LIMIT sqlc.arg(scan)::bigint)
    UNION ALL
    (SELECT t.id FROM tree t LIMIT sqlc.arg(scan)::bigint)
)
SELECT e.id, e.action_ref, e.status, e.parent, e.enforcement, f.rule_ref, f.trigger_ref, e.created, e.updated,
       e.started_at, e.workflow_task, e.original_execution, count(*) OVER () AS matched
FROM candidate c
JOIN execution e ON e.id = c.id
LEFT JOIN enforcement f ON f.id = e.enforcement
WHERE e.id < sqlc.arg(before)::bigint AND (sqlc.arg(status)::text = '' OR e.status::text = sqlc.arg(status)::text)
  AND (sqlc.arg(action)::text = '' OR e.action_ref LIKE sqlc.arg(action)::text)
  AND (sqlc.arg(pack)::text = '' OR e.action_ref LIKE sqlc.arg(pack)::text)
  AND (sqlc.arg(rule)::text = '' OR f.rule_ref LIKE sqlc.arg(rule)::text)
  AND (sqlc.arg(trigger)::text = '' OR f.trigger_ref LIKE sqlc.arg(trigger)::text)
  AND (sqlc.arg(executor)::bigint = 0 OR e.executor = sqlc.arg(executor)::bigint)
  AND (sqlc.arg(enforcement)::bigint = 0 OR e.enforcement = sqlc.arg(enforcement)::bigint)
  AND (sqlc.arg(parent)::bigint = 0 OR e.parent = sqlc.arg(parent)::bigint)
  AND (NOT sqlc.arg(top_level)::bool OR e.parent IS NULL)
  AND (sqlc.arg(result)::text = '' OR e.result::text ILIKE sqlc.arg(result)::text)
ORDER BY e.id DESC OFFSET sqlc.arg(skip)::bigint LIMIT sqlc.arg(page)::bigint;

-- name: PublishedStats :many
-- Counts every execution.
SELECT e.status, count(*)::bigint AS n FROM execution e GROUP BY e.status;

-- name: ActionIDsLike :many
SELECT a.id FROM action a WHERE a.ref LIKE sqlc.arg(pattern)::text ORDER BY a.id LIMIT sqlc.arg(page)::bigint;

-- name: PublishedAction :one
SELECT a.id, a.ref, a.pack_ref, a.default_execution_permission_set_refs FROM action a WHERE a.ref = sqlc.arg(ref);

-- name: TokenExecution :one
-- Whether an execution token is still valid, and the identity as which its execution acts.
SELECT e.status, e.executor FROM execution e WHERE e.id = sqlc.arg(id);

-- name: TokenIdentity :one
SELECT i.frozen FROM identity i WHERE i.id = sqlc.arg(id);

-- name: HasPermissionSets :one
-- A schema of our own has none.
SELECT (to_regclass('permission_set') IS NOT NULL AND to_regclass('permission_assignment') IS NOT NULL
        AND to_regclass('permission_set_role_assignment') IS NOT NULL
        AND to_regclass('identity_role_assignment') IS NOT NULL)::bool AS has;

-- name: IdentityPermissionSets :many
-- The permission sets of an identity, its own and the ones of its roles.
SELECT p.ref, p.grants FROM permission_set p
WHERE p.id IN (SELECT a.permset FROM permission_assignment a WHERE a.identity = sqlc.arg(identity))
   OR p.id IN (SELECT r.permset FROM permission_set_role_assignment r
               JOIN identity_role_assignment i ON i.role = r.role WHERE i.identity = sqlc.arg(identity))
ORDER BY p.id;

-- name: PermissionSetsByRef :many
SELECT p.ref, p.grants FROM permission_set p WHERE p.ref = ANY (sqlc.arg(refs)::text[]);
