UPDATE execution SET status = 'scheduling' WHERE id = $1 AND status = 'requested'
