-- +goose NO TRANSACTION
-- Opens the workflows that were on their way before 0047, and their tasks, and builds
-- the indexes by which those are found, without blocking writers.

-- +goose Up
UPDATE workflow_execution SET open = true
WHERE NOT open AND state IS NULL AND status NOT IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned');
UPDATE workflow_task_dispatch d SET settled = false
FROM workflow_execution w
WHERE w.id = d.workflow_execution AND w.open AND w.state IS NULL AND d.settled;
-- Building an index blocks no writer, so it may wait for long transactions.
SELECT set_config('lock_timeout', coalesce(current_setting('attune.wait_timeout', true), '0'), false);
CREATE INDEX CONCURRENTLY IF NOT EXISTS attune_workflow_open ON workflow_execution (id) WHERE open;
CREATE INDEX CONCURRENTLY IF NOT EXISTS attune_workflow_task_open ON workflow_task_dispatch (workflow_execution) WHERE NOT settled;
RESET lock_timeout;

-- +goose Down
DROP INDEX IF EXISTS attune_workflow_task_open;
DROP INDEX IF EXISTS attune_workflow_open;
