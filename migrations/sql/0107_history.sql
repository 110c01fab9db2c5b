-- Under load: brief lock. Adds history triggers to execution and worker, unless the schema writes its own history;
-- creates partitions ahead, and locks default partitions while they are scanned.
--
-- History and its partitions.

-- +goose Up
-- No transaction holds two busy tables: each part is committed, and a repetition, Down too, passes over it.
-- The tables of an installation stay. Ours have a comment, by which Down knows them.
-- +goose StatementBegin
DO $$
DECLARE
    name text;
BEGIN
    IF to_regclass('execution_history') IS NULL THEN
        CREATE TABLE execution_history (
            time           timestamptz NOT NULL DEFAULT now(),
            operation      text NOT NULL,
            entity_id      bigint NOT NULL,
            entity_ref     text,
            changed_fields text[] NOT NULL DEFAULT '{}',
            old_values     jsonb,
            new_values     jsonb
        ) PARTITION BY RANGE (time);
        CREATE TABLE worker_history (LIKE execution_history INCLUDING DEFAULTS) PARTITION BY RANGE (time);
        CREATE TABLE sensor_process_history (
            LIKE execution_history INCLUDING DEFAULTS, worker_id bigint, worker_name text
        ) PARTITION BY RANGE (time);
        FOREACH name IN ARRAY ARRAY['execution_history', 'worker_history', 'sensor_process_history'] LOOP
            EXECUTE format('CREATE TABLE %I PARTITION OF %I DEFAULT', name || '_default', name);
            EXECUTE format('CREATE INDEX %I ON %I (entity_id, time DESC)', 'idx_' || name || '_entity', name);
            EXECUTE format('COMMENT ON TABLE %I IS %L', name, 'of attune-executor');
        END LOOP;
    END IF;
END
$$;
-- +goose StatementEnd

COMMIT AND CHAIN;
-- A statement on executions adds its rows at once. A full join cannot be a nested loop: the sessions of the engine
-- forbid hash joins, and the function needs no settings of its own. A new result becomes text once for its digest.
-- attune_result_digest is STABLE, as jsonb_build_object: otherwise PostgreSQL could not inline it.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_result_digest(result jsonb) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE WHEN result IS NOT NULL THEN jsonb_build_object(
    'digest', 'md5:' || md5(result::text), 'size', octet_length(result::text), 'type', jsonb_typeof(result)) END;
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
CREATE OR REPLACE FUNCTION attune_execution_history_update() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
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
           || CASE WHEN c.result THEN jsonb_build_object('result', CASE WHEN n.result IS NOT NULL THEN
                  -- As attune_result_digest has it.
                  (SELECT jsonb_build_object('digest', 'md5:' || md5(t.result), 'size', octet_length(t.result),
                                             'type', jsonb_typeof(n.result))
                   FROM (SELECT n.result::text AS result OFFSET 0) t) END) ELSE '{}' END
    FROM new_rows n
    FULL JOIN old_rows o ON o.id = n.id
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
END
$$;
-- +goose StatementEnd

COMMIT AND CHAIN;
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
DO $$
BEGIN
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

COMMIT AND CHAIN;
-- attune_partitions_ahead creates the partitions of a table from today to a number of days ahead, and returns their
-- number. Rows in the default partition move along. It changes no table that is not natively partitioned (a
-- hypertable, or a plain one).
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_partitions_ahead(parent regclass, step_days integer, ahead_days integer)
RETURNS integer LANGUAGE plpgsql SET search_path FROM CURRENT SET timezone = 'UTC' AS $$
DECLARE
    step  interval := make_interval(days => step_days);
    lower timestamptz := date_bin(step, now(), timestamptz '2000-01-03 00:00:00+00');
    base  text := (SELECT relname FROM pg_class WHERE oid = parent);
    key   text := (SELECT a.attname FROM pg_partitioned_table p JOIN pg_attribute a
                   ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0] WHERE p.partrelid = parent);
    rest  regclass := (SELECT nullif(partdefid, 0)::regclass FROM pg_partitioned_table WHERE partrelid = parent);
    child text;
    made  integer := 0;
BEGIN
    IF key IS NULL THEN
        RETURN 0;
    END IF;
    WHILE lower <= now() + make_interval(days => ahead_days) LOOP
        child := format('%s_p%s', base, to_char(lower, 'YYYYMMDD'));
        IF to_regclass(quote_ident(child)) IS NULL THEN
            EXECUTE format('CREATE TABLE %I (LIKE %s INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', child, parent);
            IF rest IS NOT NULL THEN
                EXECUTE format('WITH moved AS (DELETE FROM %s WHERE %I >= %L AND %I < %L RETURNING *)
                                INSERT INTO %I SELECT * FROM moved',
                               rest, key, lower, key, lower + step, child);
            END IF;
            EXECUTE format('ALTER TABLE %s ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
                           parent, child, lower, lower + step);
            made := made + 1;
        END IF;
        lower := lower + step;
    END LOOP;
    RETURN made;
END
$$;
-- +goose StatementEnd
SELECT attune_partitions_ahead(to_regclass('event'), 1, 7);
SELECT attune_partitions_ahead(to_regclass('execution_history'), 1, 7);
SELECT attune_partitions_ahead(to_regclass('audit_event'), 1, 7);
SELECT attune_partitions_ahead(to_regclass('worker_history'), 7, 14);
SELECT attune_partitions_ahead(to_regclass('sensor_process_history'), 7, 14);

COMMIT AND CHAIN;
-- The engine's login needs no DDL: these functions maintain the partitions with the privileges of their owner. They
-- accept only the tables that the engine maintains. `attune-executor roles` grants them.
--
-- attune_partitioned returns the maintained table of a name, or fails.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_partitioned(parent text) RETURNS regclass
LANGUAGE plpgsql STABLE AS $$
DECLARE
    found regclass := (SELECT p.partrelid::regclass FROM pg_partitioned_table p WHERE p.partrelid = to_regclass(quote_ident(parent)));
BEGIN
    IF found IS NULL OR parent NOT IN ('event', 'execution_history', 'audit_event', 'worker_history', 'sensor_process_history') THEN
        RAISE EXCEPTION '% is no partitioned table of the engine', parent USING ERRCODE = 'undefined_table';
    END IF;
    RETURN found;
END
$$;

-- attune_partition_default creates the default partition.
CREATE OR REPLACE FUNCTION attune_partition_default(parent text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    EXECUTE format('CREATE TABLE IF NOT EXISTS %I PARTITION OF %s DEFAULT', parent || '_default', attune_partitioned(parent));
END
$$;

-- attune_partition_add creates a partition and moves its rows from the default partition. It locks that
-- first, as attaching does in the end, so that no row arrives in between. While the partition of the
-- present time is created, no transaction can write to the table. The result is false if it exists, and
-- null if more than most rows would move: then nothing is created.
CREATE OR REPLACE FUNCTION attune_partition_add(
    parent text, column_name text, child text, since timestamptz, until timestamptz, most integer)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    base   regclass := attune_partitioned(parent);
    rest   regclass := (SELECT nullif(partdefid, 0)::regclass FROM pg_partitioned_table WHERE partrelid = base);
    landed integer;
BEGIN
    IF child NOT LIKE parent || '\_p%' THEN
        RAISE EXCEPTION '% is no name of a partition of %', child, parent USING ERRCODE = 'invalid_name';
    END IF;
    -- another replica may have created it
    IF EXISTS (SELECT FROM pg_inherits WHERE inhrelid = to_regclass(quote_ident(child)) AND inhparent = base) THEN
        RETURN false;
    END IF;
    IF since <= now() THEN -- a waiting writer has already chosen the default partition, and would fail
        EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', base);
    END IF;
    IF rest IS NOT NULL THEN
        EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', rest);
        EXECUTE format('SELECT count(*) FROM (SELECT FROM %s WHERE %I >= $1 AND %I < $2 LIMIT $3) r', rest, column_name, column_name)
        INTO landed USING since, until, most + 1;
        IF landed > most THEN
            RETURN NULL;
        END IF;
    END IF;
    EXECUTE format('CREATE TABLE %I (LIKE %s INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', child, base);
    IF landed > 0 THEN
        EXECUTE format('WITH moved AS (DELETE FROM %s WHERE %I >= $1 AND %I < $2 RETURNING *) INSERT INTO %I SELECT * FROM moved',
                       rest, column_name, column_name, child) USING since, until;
    END IF;
    EXECUTE format('ALTER TABLE %s ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', base, child, since, until);
    RETURN true;
END
$$;

-- attune_partition_drop drops a partition with its rows, once its time is over.
CREATE OR REPLACE FUNCTION attune_partition_drop(parent text, child regclass) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    base regclass := attune_partitioned(parent);
BEGIN
    IF NOT EXISTS (
        SELECT FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhrelid = child AND i.inhparent = base
        AND (regexp_match(pg_get_expr(c.relpartbound, c.oid), 'TO \(''([^'']*)''\)'))[1]::timestamptz <= now()) THEN
        RAISE EXCEPTION '% is no past partition of %', child, parent USING ERRCODE = 'undefined_table';
    END IF;
    EXECUTE format('ALTER TABLE %s DETACH PARTITION %s', base, child);
    EXECUTE format('DROP TABLE %s', child);
END
$$;

-- attune_partition_prune deletes at most page rows from the default partition that are older than an
-- age, and returns their number.
CREATE OR REPLACE FUNCTION attune_partition_prune(parent text, column_name text, age interval, page integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    rest    regclass := (SELECT nullif(partdefid, 0)::regclass FROM pg_partitioned_table WHERE partrelid = attune_partitioned(parent));
    removed integer := 0;
BEGIN
    IF rest IS NOT NULL THEN
        EXECUTE format('DELETE FROM %s WHERE ctid = ANY (ARRAY(SELECT ctid FROM %s WHERE %I < now() - $1 LIMIT $2))',
                       rest, rest, column_name) USING age, page;
        GET DIAGNOSTICS removed = ROW_COUNT;
    END IF;
    RETURN removed;
END
$$;

-- attune_partition_rest counts the rows of the default partition, at most most.
CREATE OR REPLACE FUNCTION attune_partition_rest(parent text, most integer) RETURNS integer
LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
DECLARE
    rest regclass := (SELECT nullif(partdefid, 0)::regclass FROM pg_partitioned_table WHERE partrelid = attune_partitioned(parent));
    n    integer := 0;
BEGIN
    IF rest IS NOT NULL THEN
        EXECUTE format('SELECT count(*) FROM (SELECT FROM %s LIMIT $1) r', rest) INTO n USING most;
    END IF;
    RETURN n;
END
$$;

-- A function with its owner's privileges must not find a caller's objects: temporary ones are searched
-- last. It belongs to the owner of the tables, even if a superuser migrates, and PUBLIC may not run it.
DO $$
DECLARE
    f     regprocedure;
    owner regrole := (SELECT relowner::regrole FROM pg_class WHERE oid = to_regclass('execution'));
BEGIN
    FOR f IN SELECT oid::regprocedure FROM pg_proc
             WHERE pronamespace = quote_ident(current_schema())::regnamespace AND starts_with(proname, 'attune_partition')
               AND proname <> 'attune_partitions_ahead' LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path TO %I, pg_temp', f, current_schema());
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
        BEGIN
            EXECUTE format('ALTER FUNCTION %s OWNER TO %s', f, owner);
        EXCEPTION WHEN insufficient_privilege THEN
            NULL; -- a migrating user who owns the tables by membership stays the owner
        END;
    END LOOP;
END
$$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION IF EXISTS attune_partition_rest(text, integer), attune_partition_prune(text, text, interval, integer),
    attune_partition_drop(text, regclass), attune_partition_add(text, text, text, timestamptz, timestamptz, integer),
    attune_partition_default(text), attune_partitioned(text), attune_partitions_ahead(regclass, integer, integer);
DROP FUNCTION IF EXISTS attune_worker_history() CASCADE;
COMMIT AND CHAIN;
DROP FUNCTION IF EXISTS attune_execution_history_update(), attune_execution_history_insert() CASCADE;
DROP FUNCTION IF EXISTS attune_result_digest(jsonb);
COMMIT AND CHAIN;
-- +goose StatementBegin
DO $$
BEGIN
    IF obj_description(to_regclass('execution_history'), 'pg_class') = 'of attune-executor' THEN
        DROP TABLE sensor_process_history, worker_history, execution_history;
    END IF;
END
$$;
-- +goose StatementEnd
