-- +goose NO TRANSACTION
-- Which events have met the rules, and what became of it. Built without blocking
-- writers; every statement may run twice.
--
-- event_matched has a row for every event that was compared with the rules, made
-- in the transaction that makes its enforcements: rules is how many were looked
-- at, matched how many of them fired, failures what went wrong in conditions that
-- could not be evaluated. event_matching says from when on events without such a
-- row count as forgotten, so that nothing fires that was there before.
--
-- enforcement.error is why a rule that matched has no execution.

-- +goose Up
ALTER TABLE enforcement ADD COLUMN IF NOT EXISTS error text;

CREATE TABLE IF NOT EXISTS event_matched (
    event    bigint PRIMARY KEY,
    rules    integer NOT NULL DEFAULT 0,
    matched  integer NOT NULL DEFAULT 0,
    failures text[] NOT NULL DEFAULT '{}',
    at       timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE IF NOT EXISTS event_matching (
    one   boolean PRIMARY KEY DEFAULT true CHECK (one),
    since timestamptz NOT NULL DEFAULT now()
);
INSERT INTO event_matching DEFAULT VALUES ON CONFLICT DO NOTHING;

-- Building an index blocks no writer, so it may wait for long transactions.
SELECT set_config('lock_timeout', coalesce(current_setting('attune.wait_timeout', true), '0'), false);
CREATE INDEX CONCURRENTLY IF NOT EXISTS attune_enforcement_open ON enforcement (id) WHERE status = 'created';
RESET lock_timeout;

-- +goose StatementBegin
DO $$
BEGIN
    -- Both are there in a schema of our own. An existing one has them too, under
    -- whatever name; where not, matching would read whole tables.
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
DROP INDEX IF EXISTS attune_enforcement_open;
DROP TABLE IF EXISTS event_matching;
DROP TABLE IF EXISTS event_matched;
ALTER TABLE enforcement DROP COLUMN IF EXISTS error;
