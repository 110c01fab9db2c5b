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
