SELECT d.xact_commit, d.deadlocks, e.n_tup_upd, e.n_tup_hot_upd, s.n_tup_upd, s.n_tup_hot_upd
FROM pg_stat_database d
CROSS JOIN pg_stat_user_tables e
CROSS JOIN pg_stat_user_tables s
WHERE d.datname = current_database()
  AND e.schemaname = $1 AND e.relname = 'execution'
  AND s.schemaname = $1 AND s.relname = 'execution_admission_state'
