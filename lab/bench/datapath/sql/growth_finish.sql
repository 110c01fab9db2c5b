UPDATE execution SET status = 'completed', started_at = now(), result = '{}' WHERE id = ANY ($1::bigint[])
