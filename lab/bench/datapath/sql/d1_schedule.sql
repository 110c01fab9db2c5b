UPDATE execution SET status = 'scheduled', worker = $2, attempt = 1 WHERE id = $1 AND status = 'scheduling'
