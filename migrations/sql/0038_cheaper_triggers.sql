-- What every change of an execution pays for. A condition that calls a function
-- is prepared anew for each statement (about 30 µs a trigger), and a function
-- that promises too much cannot be put into its caller: jsonb_build_object,
-- which this one calls, is only stable.

-- +goose Up
ALTER FUNCTION attune_result_digest(jsonb) STABLE;

CREATE OR REPLACE TRIGGER attune_20_finished_insert BEFORE INSERT ON execution
    FOR EACH ROW WHEN (NEW.status IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned') AND NEW.finished_at IS NULL)
    EXECUTE FUNCTION attune_finish();
CREATE OR REPLACE TRIGGER attune_20_finished BEFORE UPDATE OF status ON execution
    FOR EACH ROW WHEN (NEW.status IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned')
                       AND OLD.status NOT IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned'))
    EXECUTE FUNCTION attune_finish();
CREATE OR REPLACE TRIGGER attune_10_terminal_guard
    BEFORE UPDATE OF status, result, worker, started_at ON execution
    FOR EACH ROW WHEN (
        OLD.status IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned')
        AND (NEW.status IS DISTINCT FROM OLD.status
             OR NEW.result IS DISTINCT FROM OLD.result
             OR NEW.started_at IS DISTINCT FROM OLD.started_at
             OR (NEW.worker IS NOT NULL AND NEW.worker IS DISTINCT FROM OLD.worker)))
    EXECUTE FUNCTION attune_refuse_late_write();

-- +goose Down
CREATE OR REPLACE TRIGGER attune_10_terminal_guard
    BEFORE UPDATE OF status, result, worker, started_at ON execution
    FOR EACH ROW WHEN (
        attune_terminal(OLD.status)
        AND (NEW.status IS DISTINCT FROM OLD.status
             OR NEW.result IS DISTINCT FROM OLD.result
             OR NEW.started_at IS DISTINCT FROM OLD.started_at
             OR (NEW.worker IS NOT NULL AND NEW.worker IS DISTINCT FROM OLD.worker)))
    EXECUTE FUNCTION attune_refuse_late_write();
CREATE OR REPLACE TRIGGER attune_20_finished BEFORE UPDATE OF status ON execution
    FOR EACH ROW WHEN (attune_terminal(NEW.status) AND NOT attune_terminal(OLD.status))
    EXECUTE FUNCTION attune_finish();
CREATE OR REPLACE TRIGGER attune_20_finished_insert BEFORE INSERT ON execution
    FOR EACH ROW WHEN (attune_terminal(NEW.status) AND NEW.finished_at IS NULL)
    EXECUTE FUNCTION attune_finish();
ALTER FUNCTION attune_result_digest(jsonb) IMMUTABLE;
