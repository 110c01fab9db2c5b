-- Open tasks of workflows whose children were deleted.

-- name: CountOpenTasks :many
-- The number of open children of each task.
SELECT d.workflow_execution, d.task_name, count(*)::int AS open
FROM workflow_task_dispatch d
WHERE d.workflow_execution = ANY (sqlc.arg(workflows)::bigint[]) AND NOT d.settled
GROUP BY d.workflow_execution, d.task_name;

-- name: ReadTaskIndexes :many
-- The items of a list with a child, and whether its end was processed.
SELECT coalesce(d.task_index, 0)::int AS index, d.settled
FROM workflow_task_dispatch d
WHERE d.workflow_execution = sqlc.arg(workflow) AND d.task_name = sqlc.arg(task);
