-- Columns of actions that the executor of an existing installation ignores.

-- +goose Up
-- attune_honours says whether such a column takes effect by a setting: true, false, or
-- origin, which is true unless the schema is that of an existing installation.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_honours(setting text) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
BEGIN
    RETURN setting IN ('true', '')
        OR setting = 'origin' AND NOT EXISTS (SELECT FROM attune_schema_origin WHERE origin = 'adopted');
END
$$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION attune_honours(text);
