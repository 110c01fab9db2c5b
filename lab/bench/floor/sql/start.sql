UPDATE execution SET status = 'running', started_at = now()
WHERE id = ANY ($1::bigint[]) AND worker = $2 AND attempt = 1 AND status = 'scheduled'
RETURNING id, action, config, parent
