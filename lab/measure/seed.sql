WITH p AS (
    INSERT INTO pack (ref, label, version) VALUES ('bench', 'Bench', '1.0.0')
    ON CONFLICT (ref) DO UPDATE SET label = excluded.label
    RETURNING id
)
INSERT INTO action (ref, pack, pack_ref, label, entrypoint)
SELECT format('bench.noop_%s_%s', $1::int, n), p.id, 'bench', 'No operation', 'core.noop'
FROM p, generate_series(0, $2::int - 1) n
ON CONFLICT (ref) DO NOTHING
