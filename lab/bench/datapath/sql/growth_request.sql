INSERT INTO execution (action, action_ref)
SELECT $2::bigint, 'bench.noop_0' FROM generate_series(1, $1::int)
RETURNING id
