WITH d AS (
    INSERT INTO workflow_definition (ref, pack, pack_ref, label, version, definition)
    SELECT $1::text, p.id, p.ref, $1::text, '1.0.0', $2::jsonb FROM pack p WHERE p.ref = 'bench'
    ON CONFLICT (ref) DO UPDATE SET definition = excluded.definition
    RETURNING id, pack
)
INSERT INTO action (ref, pack, pack_ref, label, entrypoint, workflow_def)
SELECT $1::text, d.pack, 'bench', $1::text, 'workflows/bench.workflow.yaml', d.id FROM d
ON CONFLICT (ref) DO NOTHING
