-- The last attempt of each execution of an incident ($1).
SELECT r.id, coalesce(last.id, 0), coalesce(last.status::text, 'missing')
FROM unnest($1::bigint[]) AS r (id)
LEFT JOIN LATERAL (
    SELECT e.id, e.status FROM execution e
    WHERE e.id = r.id OR e.original_execution = r.id
    ORDER BY e.retry_count DESC, e.id DESC LIMIT 1
) last ON true
ORDER BY r.id
