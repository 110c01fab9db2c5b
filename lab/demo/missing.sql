-- The executions requested by the demo ($1) without a row.
SELECT coalesce(array_agg(r.id ORDER BY r.id), '{}')
FROM unnest($1::bigint[]) AS r (id)
WHERE NOT EXISTS (SELECT FROM execution e WHERE e.id = r.id)
