-- +goose NO TRANSACTION
-- used is when a definition was taken last to start a workflow with: one that no
-- workflow refers to and that nobody has taken for long is removed, by the index.

-- +goose Up
ALTER TABLE workflow_source ADD COLUMN IF NOT EXISTS used timestamptz NOT NULL DEFAULT now();
-- Building an index blocks no writer, so it may wait for long transactions.
SELECT set_config('lock_timeout', coalesce(current_setting('attune.wait_timeout', true), '0'), false);
CREATE INDEX CONCURRENTLY IF NOT EXISTS attune_workflow_execution_source ON workflow_execution (source) WHERE source IS NOT NULL;
RESET lock_timeout;

-- +goose Down
DROP INDEX IF EXISTS attune_workflow_execution_source;
ALTER TABLE workflow_source DROP COLUMN IF EXISTS used;
