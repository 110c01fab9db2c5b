-- Children of workflows whose rows were deleted while they were waited for.

-- name: CountOpenTasks :many
-- How many children of each task are waited for.
SELECT d.workflow_execution, d.task_name, count(*)::int AS open
FROM workflow_task_dispatch d
WHERE d.workflow_execution = ANY (sqlc.arg(workflows)::bigint[]) AND NOT d.settled
GROUP BY d.workflow_execution, d.task_name;

-- name: ReadTaskIndexes :many
-- The items of a list that have a child.
SELECT coalesce(d.task_index, 0)::int AS index
FROM workflow_task_dispatch d
WHERE d.workflow_execution = sqlc.arg(workflow) AND d.task_name = sqlc.arg(task);
