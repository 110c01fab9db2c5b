-- Sizes of the results of workflows' children, read before the results.

-- name: SizeOfTaskResults :one
-- The size of the results of tasks in bytes. Compressed results must be opened for it; the others
-- are not.
SELECT (coalesce(sum(CASE WHEN pg_column_compression(e.result) IS NULL THEN pg_column_size(e.result) ELSE octet_length(e.result::text) END), 0)
        + coalesce(sum(pg_column_size(q.response)), 0))::bigint AS bytes
FROM (SELECT unnest(sqlc.arg(tasks)::text[]) AS task) r
JOIN workflow_task_dispatch d ON d.workflow_execution = sqlc.arg(workflow)::bigint AND d.task_name = r.task
JOIN execution e ON e.id = d.execution_id
LEFT JOIN inquiry q ON q.execution = e.id;

-- name: ReadChildResults :many
-- ReadTaskResults for single children, whatever else their task has. The child of a task without a
-- list has no index; its index is passed as 0.
SELECT d.workflow_execution, d.task_name, coalesce(d.task_index, -1)::int AS task_index, e.id AS execution, e.status, e.result, q.response,
       coalesce(q.status::text, '')::text AS asked, coalesce(f.reason, '')::text AS fault
FROM (SELECT unnest(sqlc.arg(tasks)::text[]) AS task, unnest(sqlc.arg(indexes)::int[]) AS index) r
CROSS JOIN LATERAL (
    SELECT x.workflow_execution, x.task_name, x.task_index, x.execution_id FROM workflow_task_dispatch x
    WHERE x.workflow_execution = sqlc.arg(workflow)::bigint AND x.task_name = r.task
      AND coalesce(x.task_index, -1) = ANY (ARRAY[r.index, CASE WHEN r.index = 0 THEN -1 ELSE r.index END])
    OFFSET 0
) d
JOIN execution e ON e.id = d.execution_id
LEFT JOIN inquiry q ON q.execution = e.id
LEFT JOIN inquiry_fault f ON f.execution = e.id;
