DELETE FROM execution_holder WHERE execution = ANY ($1::bigint[])
