UPDATE execution SET status = 'scheduled', worker = $2, attempt = 1, admitted_at = now() WHERE id = ANY ($1::bigint[]) AND status = 'requested'
