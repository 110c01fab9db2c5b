UPDATE execution_admission_entry SET status = 'active', activated_at = now() WHERE execution_id = $1
