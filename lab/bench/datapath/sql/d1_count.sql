SELECT count(*) FROM execution_admission_entry WHERE state_id = $1 AND status = $2
