-- +goose NO TRANSACTION
-- How executions are found: by action, by parent, as child of a workflow, as
-- attempt of an original. Built without blocking writers. None mentions
-- status, updated or worker, so a change of status stays within its page.

-- +goose Up
-- Building an index blocks no writer, so it may wait for long transactions.
SELECT set_config('lock_timeout', coalesce(current_setting('attune.wait_timeout', true), '0'), false);
CREATE INDEX CONCURRENTLY IF NOT EXISTS attune_execution_action ON execution (action, id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS attune_execution_parent ON execution (parent) WHERE parent IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS attune_execution_workflow
    ON execution (((workflow_task ->> 'workflow_execution')::bigint))
    WHERE jsonb_typeof(workflow_task) = 'object';
CREATE INDEX CONCURRENTLY IF NOT EXISTS attune_execution_original
    ON execution (original_execution) WHERE original_execution IS NOT NULL;
RESET lock_timeout;

-- +goose Down
DROP INDEX IF EXISTS attune_execution_original;
DROP INDEX IF EXISTS attune_execution_workflow;
DROP INDEX IF EXISTS attune_execution_parent;
DROP INDEX IF EXISTS attune_execution_action;
