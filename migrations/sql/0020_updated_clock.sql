-- The column "updated" strictly increases: two updates of one row in one
-- transaction, or a clock set back, still give two different instants. It is
-- part of the fence a dispatch carries. On an adopted schema only executions
-- get it; its name sorts behind the trigger that is already there, so it wins.

-- +goose Up
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_touch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.updated := greatest(now(), OLD.updated + interval '1 microsecond');
    RETURN NEW;
END
$$;
-- +goose StatementEnd
-- +goose StatementBegin
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
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION attune_touch() CASCADE;
