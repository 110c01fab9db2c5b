-- Empty actions with a limit each, and a limit and a rate of their pack. 0 means none.
WITH p AS (
    INSERT INTO pack (ref, label, version) VALUES ('bench', 'Bench', '1.0.0') RETURNING id
), a AS (
    INSERT INTO action (ref, pack, pack_ref, label, entrypoint)
    SELECT 'bench.noop_' || n, p.id, 'bench', 'No operation', 'core.noop'
    FROM p, generate_series(0, $2::int - 1) n
    RETURNING id, ref, pack, pack_ref
), wide AS (
    INSERT INTO policy (ref, pack, pack_ref, kind, method, threshold, window_seconds, burst, name)
    SELECT 'bench.' || w.kind, p.id, 'bench', w.kind, 'enqueue', w.threshold, w.seconds, w.burst, w.kind
    FROM p, (VALUES ('concurrency', $3::int, NULL::int, NULL::int), ('rate', $4::int, 1, $5::int)) w (kind, threshold, seconds, burst)
    WHERE w.threshold > 0
)
INSERT INTO policy (ref, pack, pack_ref, action, action_ref, method, threshold, name)
SELECT a.ref || '_limit', a.pack, a.pack_ref, a.id, a.ref, 'enqueue', $1::int, 'limit'
FROM a WHERE $1::int > 0
