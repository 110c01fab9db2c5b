-- +goose NO TRANSACTION
-- Finds executions by the time of their end. finished_at is written once, at the end, so that each execution
-- adds one entry.

-- +goose Up
-- Building an index blocks no writer, so it may wait for long transactions.
SELECT set_config('lock_timeout', coalesce(current_setting('attune.wait_timeout', true), '0'), false);
CREATE INDEX CONCURRENTLY IF NOT EXISTS attune_execution_ended
    ON execution (finished_at) WHERE finished_at IS NOT NULL;
RESET lock_timeout;

-- +goose Down
DROP INDEX IF EXISTS attune_execution_ended;
