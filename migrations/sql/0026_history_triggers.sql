-- History is appended once per statement, not once per row. A schema that
-- already writes its own history (a trigger whose function names the table) is
-- left alone. The functions choose their own join method, because the sessions
-- of the engine forbid hash joins for the sake of other statements.

-- +goose Up
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_result_digest(result jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN result IS NOT NULL THEN jsonb_build_object(
    'digest', 'md5:' || md5(result::text), 'size', octet_length(result::text), 'type', jsonb_typeof(result)) END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_execution_history_insert() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO execution_history (time, operation, entity_id, entity_ref, changed_fields, new_values)
    SELECT clock_timestamp(), 'INSERT', n.id, n.action_ref, '{status}',
           jsonb_build_object('status', n.status, 'action_ref', n.action_ref, 'executor', n.executor,
               'worker', n.worker, 'parent', n.parent, 'enforcement', n.enforcement, 'started_at', n.started_at)
    FROM new_rows n;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_execution_history_update() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT SET enable_hashjoin = on SET enable_nestloop = off AS $$
BEGIN
    INSERT INTO execution_history (time, operation, entity_id, entity_ref, changed_fields, old_values, new_values)
    SELECT clock_timestamp(), 'UPDATE', n.id, n.action_ref,
           array_remove(ARRAY[
               CASE WHEN c.status THEN 'status' END, CASE WHEN c.worker THEN 'worker' END,
               CASE WHEN c.started_at THEN 'started_at' END, CASE WHEN c.executor THEN 'executor' END,
               CASE WHEN c.result THEN 'result' END], NULL),
           CASE WHEN c.status THEN jsonb_build_object('status', o.status) ELSE '{}' END
           || CASE WHEN c.worker THEN jsonb_build_object('worker', o.worker) ELSE '{}' END
           || CASE WHEN c.started_at THEN jsonb_build_object('started_at', o.started_at) ELSE '{}' END
           || CASE WHEN c.executor THEN jsonb_build_object('executor', o.executor) ELSE '{}' END
           || CASE WHEN c.result THEN jsonb_build_object('result', attune_result_digest(o.result)) ELSE '{}' END,
           CASE WHEN c.status THEN jsonb_build_object('status', n.status) ELSE '{}' END
           || CASE WHEN c.worker THEN jsonb_build_object('worker', n.worker) ELSE '{}' END
           || CASE WHEN c.started_at THEN jsonb_build_object('started_at', n.started_at) ELSE '{}' END
           || CASE WHEN c.executor THEN jsonb_build_object('executor', n.executor) ELSE '{}' END
           || CASE WHEN c.result THEN jsonb_build_object('result', attune_result_digest(n.result)) ELSE '{}' END
    FROM new_rows n
    JOIN old_rows o ON o.id = n.id
    CROSS JOIN LATERAL (SELECT
        n.status IS DISTINCT FROM o.status AS status,
        n.worker IS DISTINCT FROM o.worker AS worker,
        n.started_at IS DISTINCT FROM o.started_at AS started_at,
        n.executor IS DISTINCT FROM o.executor AS executor,
        n.result IS DISTINCT FROM o.result AS result) c
    WHERE c.status OR c.worker OR c.started_at OR c.executor OR c.result;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_worker_history() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    tracked text[] := '{name,status,capabilities,meta,host,port,cordoned,cordon_reason,cordoned_by,cordoned_at,draining}';
    before  jsonb := CASE WHEN TG_OP = 'UPDATE' THEN to_jsonb(OLD) END;
    after   jsonb := to_jsonb(NEW);
    changed text[];
BEGIN
    SELECT coalesce(array_agg(f), '{}') INTO changed
    FROM unnest(tracked) f WHERE before IS NULL OR before -> f IS DISTINCT FROM after -> f;
    INSERT INTO worker_history (operation, entity_id, entity_ref, changed_fields, old_values, new_values)
    SELECT TG_OP, NEW.id, NEW.name, changed,
           (SELECT jsonb_object_agg(f, before -> f) FROM unnest(changed) f WHERE before IS NOT NULL),
           (SELECT jsonb_object_agg(f, after -> f) FROM unnest(changed) f);
    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
                   WHERE t.tgrelid = 'execution'::regclass AND p.prosrc ILIKE '%execution_history%'
                     AND p.proname NOT LIKE 'attune\_%') THEN
        CREATE OR REPLACE TRIGGER attune_history_insert AFTER INSERT ON execution
            REFERENCING NEW TABLE AS new_rows
            FOR EACH STATEMENT EXECUTE FUNCTION attune_execution_history_insert();
        CREATE OR REPLACE TRIGGER attune_history_update AFTER UPDATE ON execution
            REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
            FOR EACH STATEMENT EXECUTE FUNCTION attune_execution_history_update();
    END IF;
    IF NOT EXISTS (SELECT FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
                   WHERE t.tgrelid = 'worker'::regclass AND p.prosrc ILIKE '%worker_history%'
                     AND p.proname NOT LIKE 'attune\_%') THEN
        CREATE OR REPLACE TRIGGER attune_history_insert AFTER INSERT ON worker
            FOR EACH ROW EXECUTE FUNCTION attune_worker_history();
        -- A heartbeat names neither of these columns and costs nothing here.
        CREATE OR REPLACE TRIGGER attune_history_update AFTER UPDATE ON worker
            FOR EACH ROW WHEN (
                (OLD.name, OLD.status, OLD.capabilities, OLD.meta, OLD.host, OLD.port, OLD.cordoned,
                 OLD.cordon_reason, OLD.cordoned_by, OLD.cordoned_at, OLD.draining)
                IS DISTINCT FROM
                (NEW.name, NEW.status, NEW.capabilities, NEW.meta, NEW.host, NEW.port, NEW.cordoned,
                 NEW.cordon_reason, NEW.cordoned_by, NEW.cordoned_at, NEW.draining))
            EXECUTE FUNCTION attune_worker_history();
    END IF;
END
$$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION attune_worker_history() CASCADE;
DROP FUNCTION attune_execution_history_update() CASCADE;
DROP FUNCTION attune_execution_history_insert() CASCADE;
DROP FUNCTION attune_result_digest(jsonb);
