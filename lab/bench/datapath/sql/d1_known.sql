SELECT EXISTS (SELECT FROM execution_admission_entry WHERE execution_id = $1)
