-- +goose NO TRANSACTION
-- The same two indexes for a schema without the column: over the expression
-- that the function finished_status(execution) expands to.

-- +goose Up
-- Building an index blocks no writer, so it may wait for long transactions.
SELECT set_config('lock_timeout', coalesce(current_setting('attune.wait_timeout', true), '0'), false);
CREATE INDEX CONCURRENTLY IF NOT EXISTS attune_execution_live
    ON execution (id) WHERE (CASE WHEN attune_terminal(status) THEN status END) IS NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS attune_execution_finished
    ON execution ((CASE WHEN attune_terminal(status) THEN status END), id DESC)
    WHERE (CASE WHEN attune_terminal(status) THEN status END) IS NOT NULL;
RESET lock_timeout;

-- +goose Down
DROP INDEX IF EXISTS attune_execution_finished;
DROP INDEX IF EXISTS attune_execution_live;
