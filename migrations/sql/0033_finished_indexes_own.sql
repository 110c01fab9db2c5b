-- +goose NO TRANSACTION
-- What still lives, and what ended how: both indexes are over a column that is
-- written once, at the end.

-- +goose Up
-- Building an index blocks no writer, so it may wait for long transactions.
SELECT set_config('lock_timeout', coalesce(current_setting('attune.wait_timeout', true), '0'), false);
CREATE INDEX CONCURRENTLY IF NOT EXISTS attune_execution_live
    ON execution (id) WHERE finished_status IS NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS attune_execution_finished
    ON execution (finished_status, id DESC) WHERE finished_status IS NOT NULL;
RESET lock_timeout;

-- +goose Down
DROP INDEX IF EXISTS attune_execution_finished;
DROP INDEX IF EXISTS attune_execution_live;
