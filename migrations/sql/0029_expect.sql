-- attune_expect makes a batch all or nothing: a statement that changed another
-- number of rows than it was planned for raises AT001 and takes its whole
-- transaction back.

-- +goose Up
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
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION attune_expect(bigint, bigint, text);
