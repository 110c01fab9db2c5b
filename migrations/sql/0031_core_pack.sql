-- A fresh system can run something: four native actions that every worker of
-- ours knows, and the system identity. An adopted schema has its own.

-- +goose Up
-- +goose StatementBegin
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM attune_schema_origin WHERE origin = 'own') THEN
        RETURN;
    END IF;
    INSERT INTO identity (id, login, display_name) VALUES (1, 'system', 'System') ON CONFLICT DO NOTHING;
    PERFORM setval(pg_get_serial_sequence('identity', 'id'), (SELECT max(id) FROM identity));

    INSERT INTO pack (ref, label, description, version, is_standard)
    VALUES ('core', 'Core', 'Actions that every worker can run', '1.0.0', true)
    ON CONFLICT DO NOTHING;
    INSERT INTO action (ref, pack, pack_ref, label, description, entrypoint, output_format, param_schema)
    SELECT v.ref, p.id, p.ref, v.label, v.description, 'native', 'json', v.param_schema::jsonb
    FROM pack p, (VALUES
        ('core.echo', 'Echo', 'Returns its message',
         '{"message": {"type": "string", "description": "What to return", "default": ""}}'),
        ('core.noop', 'Nothing', 'Does nothing and succeeds', '{}'),
        ('core.sleep', 'Sleep', 'Waits and succeeds',
         '{"seconds": {"type": "number", "description": "How long to wait", "default": 1}}'),
        ('core.fail', 'Fail', 'Fails with its message',
         '{"message": {"type": "string", "description": "Why it fails", "default": "failed on request"}}')
    ) AS v (ref, label, description, param_schema)
    WHERE p.ref = 'core'
    ON CONFLICT DO NOTHING;
END
$$;
-- +goose StatementEnd

-- +goose Down
DELETE FROM action WHERE entrypoint = 'native' AND ref IN ('core.echo', 'core.noop', 'core.sleep', 'core.fail');
DELETE FROM pack WHERE ref = 'core' AND is_standard
    AND NOT EXISTS (SELECT FROM action WHERE pack_ref = 'core')
    AND EXISTS (SELECT FROM attune_schema_origin WHERE origin = 'own');
