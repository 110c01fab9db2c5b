INSERT INTO policy (ref, pack, pack_ref, action, action_ref, method, threshold, name)
SELECT a.ref || '_limit', a.pack, a.pack_ref, a.id, a.ref, 'enqueue', $1::int, 'limit'
FROM action a
WHERE a.pack_ref = 'bench' AND a.ref LIKE format('bench.noop\_%s\_%%', $1::int)
ON CONFLICT (ref) DO NOTHING
