DELETE FROM execution_admission_entry WHERE execution_id = $1 AND status = 'active'
