-- +goose NO TRANSACTION
-- Under load: online. Builds indexes on execution, enforcement, inquiry and the workflow tables without blocking
-- writers.
--
-- None has status, updated or worker of executions, so that a change of status stays within its page. Their columns
-- are written once: the time of the end, too, adds one entry for each execution.

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
CREATE INDEX CONCURRENTLY IF NOT EXISTS attune_execution_workflow_def
    ON execution (workflow_def) WHERE workflow_def IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS attune_execution_ended
    ON execution (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS attune_enforcement_open ON enforcement (id) WHERE status = 'created';
CREATE INDEX CONCURRENTLY IF NOT EXISTS attune_inquiry_pending ON inquiry (id) WHERE status = 'pending';
CREATE INDEX CONCURRENTLY IF NOT EXISTS attune_inquiry_unsettled ON inquiry (id) WHERE status <> 'pending' AND NOT settled;
CREATE INDEX CONCURRENTLY IF NOT EXISTS attune_workflow_open ON workflow_execution (id) WHERE open;
CREATE INDEX CONCURRENTLY IF NOT EXISTS attune_workflow_execution_def ON workflow_execution (workflow_def);
CREATE INDEX CONCURRENTLY IF NOT EXISTS attune_workflow_execution_source
    ON workflow_execution (source) WHERE source IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS attune_workflow_task_open
    ON workflow_task_dispatch (workflow_execution) WHERE NOT settled;
RESET lock_timeout;

-- +goose Down
DROP INDEX IF EXISTS attune_workflow_task_open;
DROP INDEX IF EXISTS attune_workflow_execution_source, attune_workflow_execution_def, attune_workflow_open;
DROP INDEX IF EXISTS attune_inquiry_unsettled, attune_inquiry_pending;
DROP INDEX IF EXISTS attune_enforcement_open;
DROP INDEX IF EXISTS attune_execution_ended, attune_execution_workflow_def, attune_execution_original,
    attune_execution_workflow, attune_execution_parent, attune_execution_action;
