UPDATE execution e SET status = 'completed', result = r.result
FROM unnest($1::bigint[], $2::jsonb[]) r (id, result)
WHERE e.id = ANY (ARRAY[r.id]) AND e.worker = $3 AND e.status IN ('running', 'canceling')
RETURNING e.id, e.finished_at
