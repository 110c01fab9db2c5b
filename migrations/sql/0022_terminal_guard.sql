-- A finished execution stays as it finished (invariant S8). Workers of older
-- make write without looking; such a write is recorded and has no effect, and
-- the statement still reports one row so that its writer does not fail.
-- Taking back the slot (admission_state_id) of a finished row stays possible,
-- and so does the loss of its worker through a foreign key.

-- +goose Up
CREATE TABLE IF NOT EXISTS late_write (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    execution      bigint NOT NULL,
    old_status     execution_status_enum NOT NULL,
    refused_status execution_status_enum NOT NULL,
    refused_result jsonb,
    worker         bigint,
    writer         text,
    at             timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX IF NOT EXISTS idx_late_write_execution ON late_write (execution);

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_refuse_late_write() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO late_write (execution, old_status, refused_status, refused_result, worker, writer)
    VALUES (OLD.id, OLD.status, NEW.status, NEW.result, NEW.worker,
            current_setting('application_name', true));
    NEW.status     := OLD.status;
    NEW.result     := OLD.result;
    NEW.worker     := OLD.worker;
    NEW.started_at := OLD.started_at;
    RETURN NEW;
END
$$;
-- +goose StatementEnd
CREATE OR REPLACE TRIGGER attune_10_terminal_guard
    BEFORE UPDATE OF status, result, worker, started_at ON execution
    FOR EACH ROW WHEN (
        attune_terminal(OLD.status)
        AND (NEW.status IS DISTINCT FROM OLD.status
             OR NEW.result IS DISTINCT FROM OLD.result
             OR NEW.started_at IS DISTINCT FROM OLD.started_at
             OR (NEW.worker IS NOT NULL AND NEW.worker IS DISTINCT FROM OLD.worker)))
    EXECUTE FUNCTION attune_refuse_late_write();

-- +goose Down
DROP FUNCTION attune_refuse_late_write() CASCADE;
DROP TABLE late_write;
