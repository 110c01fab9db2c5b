DELETE FROM execution_admission_entry WHERE execution_id = ANY ($1::bigint[])
