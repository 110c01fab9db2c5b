-- Inquiries of the shop that have waited longer than $2.
SELECT coalesce(array_agg(q.id ORDER BY q.id), '{}')
FROM (
    SELECT i.id
    FROM inquiry i
    JOIN execution e ON e.id = i.execution
    WHERE i.status = 'pending' AND e.id > $1 AND i.created < now() - $2::interval
    ORDER BY i.id LIMIT 50
) q
