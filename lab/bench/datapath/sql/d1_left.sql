UPDATE execution_admission_state SET total_completed = total_completed + 1 WHERE id = $1
