-- attune_partitions_ahead makes the partitions of a table from today to a
-- number of days ahead and says how many are new. Rows of such a day that have
-- already landed in the default partition move along. A table that is not natively
-- partitioned (a hypertable, or a plain one) is left alone.

-- +goose Up
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

-- +goose Down
DROP FUNCTION attune_partitions_ahead(regclass, integer, integer);
