-- +goose NO TRANSACTION
-- Under load: online. Builds indexes on execution without blocking writers; in some schemas also one each on rule and
-- enforcement under a brief lock.
--
-- What an adopted schema has in place of our column finished_status and of indexes of our published tables.

-- +goose Up
CREATE OR REPLACE FUNCTION finished_status(e execution) RETURNS execution_status_enum
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN attune_terminal(e.status) THEN e.status END;
-- Building an index blocks no writer, so it may wait for long transactions. Each expression is what
-- finished_status(execution) expands to.
SELECT set_config('lock_timeout', coalesce(current_setting('attune.wait_timeout', true), '0'), false);
CREATE INDEX CONCURRENTLY IF NOT EXISTS attune_execution_live
    ON execution (id) WHERE (CASE WHEN attune_terminal(status) THEN status END) IS NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS attune_execution_finished
    ON execution ((CASE WHEN attune_terminal(status) THEN status END), id DESC)
    WHERE (CASE WHEN attune_terminal(status) THEN status END) IS NOT NULL;
RESET lock_timeout;
-- An installation may have such indexes under other names. Without them, matching would read whole tables.
-- +goose StatementBegin
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
                   WHERE i.indrelid = to_regclass('rule') AND a.attname = 'trigger_ref' AND i.indpred IS NULL) THEN
        CREATE INDEX attune_rule_trigger_ref ON rule (trigger_ref);
    END IF;
    IF NOT EXISTS (SELECT FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
                   WHERE i.indrelid = to_regclass('enforcement') AND a.attname = 'event') THEN
        CREATE INDEX attune_enforcement_event ON enforcement (event);
    END IF;
END;
$$;
-- +goose StatementEnd

-- +goose Down
DROP INDEX IF EXISTS attune_enforcement_event;
DROP INDEX IF EXISTS attune_rule_trigger_ref;
DROP INDEX IF EXISTS attune_execution_finished, attune_execution_live;
DROP FUNCTION IF EXISTS finished_status(execution);
