VACUUM (ANALYZE) execution, execution_admission_entry, execution_admission_state
