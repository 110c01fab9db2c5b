SELECT count(*) FROM execution WHERE id > $1 AND finished_status IS NOT NULL
