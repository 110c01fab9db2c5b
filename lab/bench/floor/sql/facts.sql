SELECT id, status::text FROM execution WHERE id = ANY ($1::bigint[])
