SELECT count(*) FROM execution e WHERE e.id > $1 AND e.finished_status IS NOT NULL
