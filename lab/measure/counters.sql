SELECT (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()),
       pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint,
       t.n_tup_upd, t.n_tup_hot_upd
FROM pg_stat_user_tables t
WHERE t.relid = 'execution'::regclass
