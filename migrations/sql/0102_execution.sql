-- Under load: brief lock. Adds columns without rewriting and triggers to execution, and a trigger to enforcement.
--
-- The end of an execution, its retries and cancels.
--
-- finished_status is NULL until the end, so that an index on it has one entry for each execution. It is a
-- generated column of our own schema, and a function of an adopted one: e.finished_status reads both, the bare
-- name only the column.

-- +goose Up
-- No transaction holds two busy tables: each part is committed, and a repetition, Down too, passes over it.
-- updated strictly increases, also for two updates in one transaction, or after the clock was set back. It is
-- part of the fence of a dispatch. The name of the trigger sorts behind the one of an installation, so it wins.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_touch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.updated := greatest(now(), OLD.updated + interval '1 microsecond');
    RETURN NEW;
END
$$;
DO $$
DECLARE
    own  boolean := EXISTS (SELECT FROM attune_schema_origin WHERE origin = 'own');
    name text;
BEGIN
    FOR name IN
        SELECT c.relname
        FROM pg_class c
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'updated' AND NOT a.attisdropped
        WHERE c.relnamespace = quote_ident(current_schema())::regnamespace AND c.relkind = 'r'
          AND (own OR c.relname = 'execution')
    LOOP
        EXECUTE format('CREATE OR REPLACE TRIGGER zz_attune_updated BEFORE UPDATE ON %I
                        FOR EACH ROW EXECUTE FUNCTION attune_touch()', name);
    END LOOP;
END
$$;

-- attune_terminal names the final statuses. Where a call would cost every statement they are spelled out, and a
-- test compares the lists: PostgreSQL prepares a condition that calls a function anew for each statement.
CREATE OR REPLACE FUNCTION attune_terminal(s execution_status_enum) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN s IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned');

-- priority: 1 high, 0 or NULL normal, -1 low. admitted_at separates the wait of an execution from its run.
ALTER TABLE execution
    ADD COLUMN IF NOT EXISTS attempt integer NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS finished_at timestamptz,
    ADD COLUMN IF NOT EXISTS priority smallint,
    ADD COLUMN IF NOT EXISTS admitted_at timestamptz,
    SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

CREATE OR REPLACE FUNCTION attune_finish() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.finished_at := now();
    RETURN NEW;
END
$$;
CREATE OR REPLACE TRIGGER attune_20_finished_insert BEFORE INSERT ON execution
    FOR EACH ROW WHEN (NEW.status IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned') AND NEW.finished_at IS NULL)
    EXECUTE FUNCTION attune_finish();
CREATE OR REPLACE TRIGGER attune_20_finished BEFORE UPDATE OF status ON execution
    FOR EACH ROW WHEN (NEW.status IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned')
                       AND OLD.status NOT IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned'))
    EXECUTE FUNCTION attune_finish();

-- A finished execution stays as it finished (invariant S8). A write of a published worker that does not look is
-- recorded and has no effect, and the statement still reports one row so that its writer does not fail. The loss
-- of its worker through a foreign key stays possible.
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
        OLD.status IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned')
        AND (NEW.status IS DISTINCT FROM OLD.status
             OR NEW.result IS DISTINCT FROM OLD.result
             OR NEW.started_at IS DISTINCT FROM OLD.started_at
             OR (NEW.worker IS NOT NULL AND NEW.worker IS DISTINCT FROM OLD.worker)))
    EXECUTE FUNCTION attune_refuse_late_write();

COMMIT AND CHAIN;
-- execution_retry has the one execution that repeats a failed one. It waits without a slot until it is due.
-- avoid are the workers on which earlier attempts have failed.
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

-- execution_cancel has the executions whose stop was requested: they are not repeated. Other services cancel by
-- writing the status, and the trigger notes that too.
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
CREATE OR REPLACE TRIGGER attune_40_note_cancel AFTER UPDATE OF status ON execution
    FOR EACH ROW WHEN (NEW.status = 'canceling' AND OLD.status <> 'canceling')
    EXECUTE FUNCTION attune_note_cancel();

-- attune_cancel_words is what a result says about a cancel: who, when and why; an empty object without an actor.
CREATE OR REPLACE FUNCTION attune_cancel_words(id bigint) RETURNS jsonb
LANGUAGE sql STABLE SET search_path FROM CURRENT
RETURN coalesce((
    SELECT jsonb_build_object('message', coalesce(n.reason, 'cancelled on request'), 'cancelled_by', n.actor, 'cancelled_at', n.at)
    FROM execution_cancel n WHERE n.execution = $1 AND n.actor IS NOT NULL), '{}'::jsonb);

-- The secrets of a deleted execution or enforcement are deleted too. The table names its rows by type and number,
-- so that it cannot have a foreign key.
CREATE OR REPLACE FUNCTION attune_secrets_go_along() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF TG_TABLE_NAME = 'enforcement' THEN
        DELETE FROM execution_secret_value v USING gone g
        WHERE v.entity_type = 'enforcement_config' AND v.entity_id = g.id;
    ELSE
        DELETE FROM execution_secret_value v USING gone g
        WHERE v.entity_type = ANY (ARRAY['execution_config', 'execution_result']) AND v.entity_id = g.id;
    END IF;
    RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE OR REPLACE TRIGGER attune_secrets_go_along
    AFTER DELETE ON execution REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION attune_secrets_go_along();
COMMIT AND CHAIN;
CREATE OR REPLACE TRIGGER attune_secrets_go_along
    AFTER DELETE ON enforcement REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION attune_secrets_go_along();

COMMIT AND CHAIN;
-- attune_expect makes a batch atomic: a statement that changed another number of rows than planned raises AT001,
-- which rolls its transaction back.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_expect(actual bigint, expected bigint, what text) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF actual IS DISTINCT FROM expected THEN
        RAISE EXCEPTION '%: % rows instead of %', what, actual, expected
            USING ERRCODE = 'AT001',
                  HINT = 'Another writer changed these rows first; the whole batch was taken back.';
    END IF;
    RETURN actual;
END
$$;

-- attune_depth counts the executions above one, at most most.
CREATE OR REPLACE FUNCTION attune_depth(id bigint, most integer) RETURNS integer
LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
    WITH RECURSIVE up AS (
        SELECT e.parent, 0 AS n FROM execution e WHERE e.id = $1
        UNION ALL
        SELECT x.parent, u.n + 1
        FROM up u CROSS JOIN LATERAL (SELECT y.parent FROM execution y WHERE y.id = u.parent OFFSET 0) x
        WHERE u.n < $2
    )
    SELECT max(u.n) FROM up u
$$;

-- attune_honours says whether a column of actions that the published executor ignores takes effect by a setting:
-- true, false, or origin, which is true unless the schema is an adopted one.
CREATE OR REPLACE FUNCTION attune_honours(setting text) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
BEGIN
    RETURN setting IN ('true', '')
        OR setting = 'origin' AND NOT EXISTS (SELECT FROM attune_schema_origin WHERE origin = 'adopted');
END
$$;
-- +goose StatementEnd

-- +goose Down
-- Foreign keys go first: dropping a table waits for the disk with its locks held.
DROP TRIGGER IF EXISTS attune_secrets_go_along ON enforcement;
COMMIT AND CHAIN;
DROP FUNCTION IF EXISTS attune_secrets_go_along(), attune_note_cancel(), attune_refuse_late_write(), attune_finish(), attune_touch() CASCADE;
ALTER TABLE execution
    DROP COLUMN IF EXISTS admitted_at, DROP COLUMN IF EXISTS priority, DROP COLUMN IF EXISTS finished_at, DROP COLUMN IF EXISTS attempt,
    RESET (fillfactor, autovacuum_vacuum_scale_factor, autovacuum_vacuum_cost_delay);
ALTER TABLE IF EXISTS execution_cancel DROP CONSTRAINT IF EXISTS execution_cancel_execution_fkey;
ALTER TABLE IF EXISTS execution_retry DROP CONSTRAINT IF EXISTS execution_retry_failed_fkey;
COMMIT AND CHAIN;
DROP FUNCTION IF EXISTS attune_honours(text), attune_depth(bigint, integer), attune_expect(bigint, bigint, text),
    attune_cancel_words(bigint), attune_terminal(execution_status_enum);
DROP TABLE IF EXISTS execution_cancel, execution_retry, late_write;
