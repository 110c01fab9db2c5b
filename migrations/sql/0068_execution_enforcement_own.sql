-- +goose NO TRANSACTION
-- An enforcement is deleted when no execution refers to it, and the foreign key looks
-- that up. The schema of an existing installation has an index of its own for it.

-- +goose Up
-- Building an index blocks no writer, so it may wait for long transactions.
SELECT set_config('lock_timeout', coalesce(current_setting('attune.wait_timeout', true), '0'), false);
CREATE INDEX CONCURRENTLY IF NOT EXISTS attune_execution_enforcement ON execution (enforcement) WHERE enforcement IS NOT NULL;
RESET lock_timeout;

-- +goose Down
DROP INDEX IF EXISTS attune_execution_enforcement;
