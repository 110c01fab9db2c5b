-- Repetitions, cancellations, and hand-overs that reached no queue.
--
-- execution_retry says which execution repeats which: one at most, whoever
-- decides it and however often. Until it is due it waits for its time, in no line
-- and with no slot. avoid are the workers on which earlier attempts have failed.
--
-- execution_cancel says that a stop was asked for, so that what ends otherwise
-- meanwhile is not repeated. Others cancel by writing the status; the trigger
-- notes that too.
--
-- undelivered_dispatch is written in the transaction that takes a returned
-- message out of the outbox, and deleted in the one that decides.

-- +goose Up
-- No transaction holds two busy tables: each part is committed, and a repetition, Down too, passes over it.
CREATE TABLE IF NOT EXISTS execution_retry (
    failed       bigint PRIMARY KEY REFERENCES execution (id) ON DELETE CASCADE,
    execution    bigint NOT NULL UNIQUE,
    reason       text NOT NULL,
    requested_by text,
    created      timestamptz NOT NULL DEFAULT now(),
    due          timestamptz NOT NULL,
    waiting      boolean NOT NULL DEFAULT true,
    avoid        bigint[] NOT NULL DEFAULT '{}'
);
CREATE INDEX IF NOT EXISTS attune_execution_retry_due ON execution_retry (due) WHERE waiting;

CREATE TABLE IF NOT EXISTS execution_cancel (
    execution bigint PRIMARY KEY REFERENCES execution (id) ON DELETE CASCADE,
    at        timestamptz NOT NULL DEFAULT now(),
    actor     text,
    reason    text
);

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_note_cancel() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO execution_cancel (execution) VALUES (NEW.id) ON CONFLICT (execution) DO NOTHING;
    RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE OR REPLACE TRIGGER attune_40_note_cancel AFTER UPDATE OF status ON execution
    FOR EACH ROW WHEN (NEW.status = 'canceling' AND OLD.status <> 'canceling')
    EXECUTE FUNCTION attune_note_cancel();

INSERT INTO execution_cancel (execution) SELECT id FROM execution WHERE status = 'canceling' ON CONFLICT DO NOTHING;

COMMIT AND CHAIN;
CREATE TABLE IF NOT EXISTS undelivered_dispatch (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    execution bigint NOT NULL,
    attempt   integer NOT NULL,
    worker    bigint NOT NULL,
    reason    text NOT NULL,
    at        timestamptz NOT NULL DEFAULT now()
);

ALTER TABLE worker
    ADD COLUMN IF NOT EXISTS suspect_since timestamptz,
    ADD COLUMN IF NOT EXISTS suspect_reason text;

-- +goose Down
-- Foreign keys go first: dropping a table waits for the disk with its locks held.
ALTER TABLE worker DROP COLUMN IF EXISTS suspect_reason, DROP COLUMN IF EXISTS suspect_since;
COMMIT AND CHAIN;
DROP TABLE IF EXISTS undelivered_dispatch;
COMMIT AND CHAIN;
DROP FUNCTION IF EXISTS attune_note_cancel() CASCADE;
ALTER TABLE IF EXISTS execution_cancel DROP CONSTRAINT IF EXISTS execution_cancel_execution_fkey;
COMMIT AND CHAIN;
DROP TABLE IF EXISTS execution_cancel;
ALTER TABLE IF EXISTS execution_retry DROP CONSTRAINT IF EXISTS execution_retry_failed_fkey;
COMMIT AND CHAIN;
DROP TABLE IF EXISTS execution_retry;
