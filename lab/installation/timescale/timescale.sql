-- A stand-in for TimescaleDB, which is not needed to build it: the catalogue views and the functions that an
-- installation calls, and the restrictions that its documentation names. Rows of a hypertable are kept in chunks,
-- which are inheritance children in _timescaledb_internal, as in TimescaleDB. Unlike there, a row enters the table
-- and an AFTER trigger of the statement moves it to its chunk.

CREATE SCHEMA _timescaledb_catalog;
CREATE SCHEMA _timescaledb_internal;
CREATE SCHEMA timescaledb_information;

CREATE TABLE _timescaledb_catalog.hypertable (
    id             serial PRIMARY KEY,
    relation       regclass NOT NULL UNIQUE,
    time_column    name NOT NULL,
    chunk_interval interval NOT NULL,
    compression    boolean NOT NULL DEFAULT false
);
CREATE TABLE _timescaledb_catalog.chunk (
    relation    regclass PRIMARY KEY,
    hypertable  integer NOT NULL REFERENCES _timescaledb_catalog.hypertable ON DELETE CASCADE,
    range_start timestamptz NOT NULL,
    range_end   timestamptz NOT NULL,
    compressed  boolean NOT NULL DEFAULT false,
    UNIQUE (hypertable, range_start)
);
CREATE TABLE _timescaledb_catalog.job (
    job_id     serial PRIMARY KEY,
    proc_name  name NOT NULL,
    hypertable integer REFERENCES _timescaledb_catalog.hypertable ON DELETE CASCADE,
    config     jsonb NOT NULL
);
CREATE TABLE _timescaledb_catalog.continuous_aggregate (
    view       regclass PRIMARY KEY,
    hypertable integer NOT NULL REFERENCES _timescaledb_catalog.hypertable ON DELETE CASCADE,
    materialized regclass NOT NULL
);

CREATE VIEW timescaledb_information.hypertables AS
SELECT n.nspname AS hypertable_schema, c.relname AS hypertable_name, pg_get_userbyid(c.relowner) AS owner,
    1::smallint AS num_dimensions,
    (SELECT count(*) FROM _timescaledb_catalog.chunk k WHERE k.hypertable = h.id) AS num_chunks,
    h.compression AS compression_enabled
FROM _timescaledb_catalog.hypertable h JOIN pg_class c ON c.oid = h.relation JOIN pg_namespace n ON n.oid = c.relnamespace;

CREATE VIEW timescaledb_information.chunks AS
SELECT n.nspname AS hypertable_schema, c.relname AS hypertable_name, '_timescaledb_internal'::name AS chunk_schema,
    k.relname AS chunk_name, h.time_column AS primary_dimension, x.range_start, x.range_end, x.compressed AS is_compressed
FROM _timescaledb_catalog.chunk x JOIN _timescaledb_catalog.hypertable h ON h.id = x.hypertable
JOIN pg_class c ON c.oid = h.relation JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_class k ON k.oid = x.relation;

CREATE VIEW timescaledb_information.jobs AS
SELECT j.job_id, j.proc_name, n.nspname AS hypertable_schema, c.relname AS hypertable_name, j.config
FROM _timescaledb_catalog.job j JOIN _timescaledb_catalog.hypertable h ON h.id = j.hypertable
JOIN pg_class c ON c.oid = h.relation JOIN pg_namespace n ON n.oid = c.relnamespace;

CREATE VIEW timescaledb_information.continuous_aggregates AS
SELECT hn.nspname AS hypertable_schema, h.relname AS hypertable_name, vn.nspname AS view_schema, v.relname AS view_name
FROM _timescaledb_catalog.continuous_aggregate a JOIN _timescaledb_catalog.hypertable t ON t.id = a.hypertable
JOIN pg_class h ON h.oid = t.relation JOIN pg_namespace hn ON hn.oid = h.relnamespace
JOIN pg_class v ON v.oid = a.view JOIN pg_namespace vn ON vn.oid = v.relnamespace;

-- chunk_of returns the chunk of a time, and creates it.
CREATE FUNCTION _timescaledb_internal.chunk_of(hypertable_id integer, at timestamptz) RETURNS regclass
LANGUAGE plpgsql AS $$
DECLARE
    h     _timescaledb_catalog.hypertable;
    since timestamptz;
    found regclass;
    child text;
BEGIN
    SELECT * INTO h FROM _timescaledb_catalog.hypertable WHERE id = hypertable_id;
    since := date_bin(h.chunk_interval, at, timestamptz '2000-01-03 00:00:00+00');
    SELECT relation INTO found FROM _timescaledb_catalog.chunk WHERE hypertable = h.id AND range_start = since;
    IF found IS NULL THEN
        PERFORM pg_advisory_xact_lock(h.relation::oid::bigint);
        SELECT relation INTO found FROM _timescaledb_catalog.chunk WHERE hypertable = h.id AND range_start = since;
    END IF;
    IF found IS NULL THEN
        child := format('_hyper_%s_%s_chunk', h.id, to_char(since AT TIME ZONE 'UTC', 'YYYYMMDD'));
        EXECUTE format('CREATE TABLE _timescaledb_internal.%I (LIKE %s INCLUDING ALL,
            CONSTRAINT time_range CHECK (%I >= %L AND %I < %L)) INHERITS (%s)', child, h.relation, h.time_column, since,
            h.time_column, since + h.chunk_interval, h.relation);
        found := format('_timescaledb_internal.%I', child)::regclass;
        EXECUTE format('CREATE TRIGGER compressed BEFORE UPDATE OR DELETE ON %s FOR EACH ROW
            EXECUTE FUNCTION _timescaledb_internal.refuse_compressed()', found);
        INSERT INTO _timescaledb_catalog.chunk (relation, hypertable, range_start, range_end)
        VALUES (found, h.id, since, since + h.chunk_interval);
    END IF;
    RETURN found;
END
$$;

CREATE FUNCTION _timescaledb_internal.refuse_compressed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT compressed FROM _timescaledb_catalog.chunk WHERE relation = TG_RELID) THEN
        RAISE EXCEPTION 'cannot update/delete rows from chunk "%" as it is compressed', TG_TABLE_NAME
            USING ERRCODE = 'feature_not_supported';
    END IF;
    RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
END
$$;

-- insert_blocker moves the rows of a statement to their chunks.
CREATE FUNCTION _timescaledb_internal.insert_blocker() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    h   _timescaledb_catalog.hypertable;
    at  timestamptz;
BEGIN
    SELECT * INTO h FROM _timescaledb_catalog.hypertable WHERE relation = TG_RELID;
    FOR at IN EXECUTE format('SELECT DISTINCT date_bin(%L, %I, timestamptz ''2000-01-03 00:00:00+00'') FROM ONLY %s',
        h.chunk_interval, h.time_column, h.relation)
    LOOP
        EXECUTE format('WITH moved AS (DELETE FROM ONLY %s WHERE %I >= %L AND %I < %L RETURNING *)
            INSERT INTO %s SELECT * FROM moved', h.relation, h.time_column, at, h.time_column, at + h.chunk_interval,
            _timescaledb_internal.chunk_of(h.id, at));
    END LOOP;
    RETURN NULL;
END
$$;

CREATE FUNCTION public.create_hypertable(relation regclass, time_column_name name,
    chunk_time_interval interval DEFAULT interval '7 days', if_not_exists boolean DEFAULT false,
    migrate_data boolean DEFAULT false) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    made   integer;
    other  text;
    filled boolean;
BEGIN
    IF EXISTS (SELECT FROM _timescaledb_catalog.hypertable h WHERE h.relation = create_hypertable.relation) THEN
        IF if_not_exists THEN
            RETURN NULL;
        END IF;
        RAISE EXCEPTION 'table "%" is already a hypertable', relation;
    END IF;
    SELECT i.indexrelid::regclass::text INTO other FROM pg_index i WHERE i.indrelid = relation AND i.indisunique
        AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = relation AND a.attname = time_column_name
            AND a.attnum = ANY (i.indkey));
    IF other IS NOT NULL THEN
        RAISE EXCEPTION 'cannot create a unique index without the column "%" (used in partitioning)', time_column_name
            USING DETAIL = other;
    END IF;
    IF EXISTS (SELECT FROM pg_constraint WHERE contype = 'f' AND confrelid = relation) THEN
        RAISE EXCEPTION 'cannot have FOREIGN KEY constraints to hypertable "%"', relation;
    END IF;
    EXECUTE format('SELECT EXISTS (SELECT FROM %s)', relation) INTO filled;
    IF filled AND NOT migrate_data THEN
        RAISE EXCEPTION 'table "%" is not empty', relation;
    END IF;
    INSERT INTO _timescaledb_catalog.hypertable (relation, time_column, chunk_interval)
    VALUES (relation, time_column_name, chunk_time_interval) RETURNING id INTO made;
    EXECUTE format('CREATE TRIGGER ts_insert_blocker AFTER INSERT ON %s FOR EACH STATEMENT
        EXECUTE FUNCTION _timescaledb_internal.insert_blocker()', relation);
    -- The chunks around now are there before concurrent writers need them.
    PERFORM _timescaledb_internal.chunk_of(made, now() + n * chunk_time_interval) FROM generate_series(-1, 2) n;
    IF filled THEN
        EXECUTE format('INSERT INTO %s SELECT * FROM %s WHERE false', relation, relation);
    END IF;
    RETURN made;
END
$$;

CREATE FUNCTION public.show_chunks(relation regclass, older_than interval DEFAULT NULL, newer_than interval DEFAULT NULL)
RETURNS SETOF regclass LANGUAGE sql AS $$
    SELECT k.relation FROM _timescaledb_catalog.chunk k JOIN _timescaledb_catalog.hypertable h ON h.id = k.hypertable
    WHERE h.relation = show_chunks.relation AND (older_than IS NULL OR k.range_end <= now() - older_than)
      AND (newer_than IS NULL OR k.range_start >= now() - newer_than) ORDER BY k.range_start
$$;

CREATE FUNCTION public.drop_chunks(relation regclass, older_than interval) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    child regclass;
BEGIN
    FOR child IN SELECT * FROM public.show_chunks(relation, older_than) LOOP
        RETURN NEXT child::text;
        DELETE FROM _timescaledb_catalog.chunk k WHERE k.relation = child;
        EXECUTE format('DROP TABLE %s', child);
    END LOOP;
END
$$;

CREATE FUNCTION public.compress_chunk(chunk regclass, if_not_compressed boolean DEFAULT true) RETURNS regclass
LANGUAGE sql AS $$
    UPDATE _timescaledb_catalog.chunk SET compressed = true WHERE relation = compress_chunk.chunk RETURNING relation
$$;

CREATE FUNCTION _timescaledb_internal.add_job(proc name, of regclass, settings jsonb) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    made integer;
BEGIN
    INSERT INTO _timescaledb_catalog.job (proc_name, hypertable, config)
    SELECT proc, h.id, settings FROM _timescaledb_catalog.hypertable h WHERE h.relation = of RETURNING job_id INTO made;
    IF made IS NULL THEN
        RAISE EXCEPTION '"%" is not a hypertable or a continuous aggregate', of;
    END IF;
    RETURN made;
END
$$;

CREATE FUNCTION public.add_retention_policy(relation regclass, drop_after interval, if_not_exists boolean DEFAULT false)
RETURNS integer LANGUAGE sql AS $$
    SELECT _timescaledb_internal.add_job('policy_retention', relation, jsonb_build_object('drop_after', drop_after))
$$;

CREATE FUNCTION public.remove_retention_policy(relation regclass, if_exists boolean DEFAULT false) RETURNS void
LANGUAGE sql AS $$
    DELETE FROM _timescaledb_catalog.job j USING _timescaledb_catalog.hypertable h
    WHERE h.id = j.hypertable AND h.relation = remove_retention_policy.relation AND j.proc_name = 'policy_retention'
$$;

-- TimescaleDB enables compression by ALTER TABLE … SET (timescaledb.compress, …), which needs its hooks.
CREATE FUNCTION public.add_compression_policy(hypertable regclass, compress_after interval) RETURNS integer
LANGUAGE sql AS $$
    UPDATE _timescaledb_catalog.hypertable SET compression = true WHERE relation = add_compression_policy.hypertable;
    SELECT _timescaledb_internal.add_job('policy_compression', hypertable, jsonb_build_object('compress_after', compress_after))
$$;

-- continuous_aggregate replaces a view by one over a materialized table and the rows after it.
CREATE FUNCTION _timescaledb_internal.continuous_aggregate(view regclass, hypertable regclass) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    definition text := rtrim(pg_get_viewdef(view), ';');
    name       text := format('%I.%I', (SELECT nspname FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid
                           WHERE c.oid = view), (SELECT relname FROM pg_class WHERE oid = view));
    stored     text := format('_timescaledb_internal._materialized_hypertable_%s', view::oid);
BEGIN
    EXECUTE format('CREATE TABLE %s AS %s', stored, definition);
    EXECUTE format('CREATE OR REPLACE VIEW %s AS SELECT * FROM %s', name, stored);
    INSERT INTO _timescaledb_catalog.continuous_aggregate (view, hypertable, materialized)
    SELECT view, h.id, stored::regclass FROM _timescaledb_catalog.hypertable h
    WHERE h.relation = continuous_aggregate.hypertable;
END
$$;

-- refuse_commands refuses what TimescaleDB does on a hypertable.
CREATE FUNCTION _timescaledb_internal.refuse_commands() RETURNS event_trigger LANGUAGE plpgsql AS $$
DECLARE
    command record;
    h       record;
BEGIN
    FOR command IN SELECT * FROM pg_event_trigger_ddl_commands() WHERE schema_name IS DISTINCT FROM '_timescaledb_internal' LOOP
        FOR h IN SELECT t.*, t.relation::oid AS relid FROM _timescaledb_catalog.hypertable t WHERE t.relation::oid = coalesce(
            (SELECT i.indrelid FROM pg_index i WHERE i.indexrelid = command.objid AND command.classid = 'pg_class'::regclass),
            (SELECT g.tgrelid FROM pg_trigger g WHERE g.oid = command.objid AND command.classid = 'pg_trigger'::regclass),
            CASE WHEN command.classid = 'pg_class'::regclass THEN command.objid END)
        LOOP
            IF command.command_tag = 'CREATE INDEX' AND current_query() ~* '\mconcurrently\M' THEN
                RAISE EXCEPTION 'hypertables do not support concurrent index creation';
            END IF;
            IF EXISTS (SELECT FROM pg_index i WHERE i.indrelid = h.relid AND i.indisunique AND NOT EXISTS (
                SELECT FROM pg_attribute a WHERE a.attrelid = h.relid AND a.attname = h.time_column AND a.attnum = ANY (i.indkey)))
            THEN
                RAISE EXCEPTION 'cannot create a unique index without the column "%" (used in partitioning)', h.time_column;
            END IF;
            IF command.command_tag = 'CREATE TRIGGER' AND EXISTS (SELECT FROM pg_trigger g WHERE g.oid = command.objid
                AND g.tgtype & 1 = 1 AND (g.tgnewtable IS NOT NULL OR g.tgoldtable IS NOT NULL)) THEN
                RAISE EXCEPTION 'ROW triggers with transition tables are not supported on hypertable chunks';
            END IF;
            IF command.command_tag = 'ALTER TABLE' AND h.compression AND current_query() !~* '\madd\s+column\M|\mrename\M' THEN
                RAISE EXCEPTION 'operation not supported on hypertables that have compression enabled';
            END IF;
        END LOOP;
    END LOOP;
    IF EXISTS (SELECT FROM pg_constraint c JOIN _timescaledb_catalog.hypertable t ON t.relation = c.confrelid WHERE c.contype = 'f') THEN
        RAISE EXCEPTION 'cannot have FOREIGN KEY constraints to hypertables';
    END IF;
END
$$;
CREATE EVENT TRIGGER timescaledb_ddl_command_end ON ddl_command_end EXECUTE FUNCTION _timescaledb_internal.refuse_commands();
