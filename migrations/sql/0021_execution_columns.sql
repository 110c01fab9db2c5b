-- What admission, hand-over and the lists need to know about an execution:
-- the queue whose slot it holds, how often it was handed over, and when and
-- how it ended. attune_terminal names the final statuses; where a call would
-- cost every statement (the column here, the conditions of triggers) they are
-- spelled out, and a test holds both to the same list.
--
-- finished_status is NULL until the end, so an index on it is written once.
-- On an adopted schema it is a function of the row instead of a column; the
-- spelling e.finished_status works for both, the bare name only for ours.

-- +goose Up
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_terminal(s execution_status_enum) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN s IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned');
-- +goose StatementEnd

ALTER TABLE execution
    ADD COLUMN IF NOT EXISTS admission_state_id bigint,
    ADD COLUMN IF NOT EXISTS attempt integer NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS finished_at timestamptz;

-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM attune_schema_origin WHERE origin = 'own') THEN
        ALTER TABLE execution ADD COLUMN finished_status execution_status_enum
            GENERATED ALWAYS AS (CASE WHEN status IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned')
                                      THEN status END) STORED;
    ELSE
        CREATE OR REPLACE FUNCTION finished_status(e execution) RETURNS execution_status_enum
        LANGUAGE sql IMMUTABLE PARALLEL SAFE
        RETURN CASE WHEN attune_terminal(e.status) THEN e.status END;
    END IF;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_finish() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.finished_at := now();
    RETURN NEW;
END
$$;
-- +goose StatementEnd
CREATE OR REPLACE TRIGGER attune_20_finished_insert BEFORE INSERT ON execution
    FOR EACH ROW WHEN (attune_terminal(NEW.status) AND NEW.finished_at IS NULL)
    EXECUTE FUNCTION attune_finish();
CREATE OR REPLACE TRIGGER attune_20_finished BEFORE UPDATE OF status ON execution
    FOR EACH ROW WHEN (attune_terminal(NEW.status) AND NOT attune_terminal(OLD.status))
    EXECUTE FUNCTION attune_finish();

-- +goose Down
DROP FUNCTION attune_finish() CASCADE;
DROP FUNCTION IF EXISTS finished_status(execution) CASCADE;
ALTER TABLE execution DROP COLUMN IF EXISTS finished_status;
ALTER TABLE execution DROP COLUMN finished_at, DROP COLUMN attempt, DROP COLUMN admission_state_id;
DROP FUNCTION attune_terminal(execution_status_enum);
