-- +goose NO TRANSACTION
-- What was run by a workflow definition, by which deleting one finds what refers to it.
-- Built without blocking writers. Neither column changes, so a change of status stays
-- within its page.

-- +goose Up
-- Building an index blocks no writer, so it may wait for long transactions.
SELECT set_config('lock_timeout', coalesce(current_setting('attune.wait_timeout', true), '0'), false);
CREATE INDEX CONCURRENTLY IF NOT EXISTS attune_workflow_execution_def ON workflow_execution (workflow_def);
CREATE INDEX CONCURRENTLY IF NOT EXISTS attune_execution_workflow_def ON execution (workflow_def) WHERE workflow_def IS NOT NULL;
RESET lock_timeout;

-- +goose Down
DROP INDEX IF EXISTS attune_execution_workflow_def;
DROP INDEX IF EXISTS attune_workflow_execution_def;
