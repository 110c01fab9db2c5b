-- The queue and the statistics of the action, which the engine creates with the first request.
WITH s AS (
    INSERT INTO execution_admission_state (action_id, max_concurrent, unlimited)
    SELECT a.id, greatest($1::int, 1), $1::int = 0 FROM action a WHERE a.ref = $2
    RETURNING id, action_id
), w AS (
    SELECT id FROM worker WHERE name LIKE 'bench-worker-%' ORDER BY id LIMIT 1
)
SELECT s.action_id, s.id, w.id, (SELECT c.relkind = 'r' FROM pg_class c WHERE c.oid = 'queue_stats'::regclass) FROM s CROSS JOIN w
