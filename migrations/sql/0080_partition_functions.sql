-- The engine's login needs no DDL: these functions maintain the partitions with the privileges of their
-- owner. They accept only the tables that the engine maintains. `attune-executor roles` grants them.

-- +goose Up
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
-- +goose StatementEnd

-- attune_partition_default creates the default partition.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_partition_default(parent text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    EXECUTE format('CREATE TABLE IF NOT EXISTS %I PARTITION OF %s DEFAULT', parent || '_default', attune_partitioned(parent));
END
$$;
-- +goose StatementEnd

-- attune_partition_add creates a partition and moves its rows from the default partition. It locks that
-- first, as attaching does in the end, so that no row arrives in between. While the partition of the
-- present time is created, no transaction can write to the table. The result is false if it exists, and
-- null if more than most rows would move: then nothing is created.
-- +goose StatementBegin
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
-- +goose StatementEnd

-- attune_partition_drop drops a partition with its rows, once its time is over.
-- +goose StatementBegin
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
-- +goose StatementEnd

-- attune_partition_prune deletes at most page rows from the default partition that are older than an
-- age, and returns their number.
-- +goose StatementBegin
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
-- +goose StatementEnd

-- attune_partition_rest counts the rows of the default partition, at most most.
-- +goose StatementBegin
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
-- +goose StatementEnd

-- A function with its owner's privileges must not find a caller's objects: temporary ones are searched
-- last. It belongs to the owner of the tables, even if a superuser migrates, and PUBLIC may not run it.
-- +goose StatementBegin
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
DROP FUNCTION attune_partition_rest(text, integer);
DROP FUNCTION attune_partition_prune(text, text, interval, integer);
DROP FUNCTION attune_partition_drop(text, regclass);
DROP FUNCTION attune_partition_add(text, text, text, timestamptz, timestamptz, integer);
DROP FUNCTION attune_partition_default(text);
DROP FUNCTION attune_partitioned(text);
