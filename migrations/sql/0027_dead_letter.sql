-- The ledger of dead letters: the message as it came, what was known about its
-- execution, and what was decided. A row without a decision waits for a person.
-- fingerprint names one dead-lettering of one message, so that a dead letter
-- which is delivered twice is recorded once.

-- +goose Up
CREATE TABLE IF NOT EXISTS dead_letter (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    fingerprint      text UNIQUE,
    message_id       text,
    message_type     text,
    exchange         text,
    routing_key      text,
    queue            text,
    reason           text,
    x_death          jsonb,
    headers          jsonb,
    body             bytea,
    execution        bigint,
    worker           bigint,
    execution_status execution_status_enum,
    decision         text,
    decided_at       timestamptz,
    decided_by       text,
    evidence         jsonb,
    created          timestamptz NOT NULL DEFAULT now(),
    updated          timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX IF NOT EXISTS idx_dead_letter_open ON dead_letter (id) WHERE decision IS NULL;
CREATE INDEX IF NOT EXISTS idx_dead_letter_execution ON dead_letter (execution) WHERE execution IS NOT NULL;
CREATE OR REPLACE TRIGGER zz_attune_updated BEFORE UPDATE ON dead_letter
    FOR EACH ROW EXECUTE FUNCTION attune_touch();

-- +goose Down
DROP TABLE dead_letter;
