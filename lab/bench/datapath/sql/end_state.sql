-- Counts rows that must not remain after the end of all executions.
SELECT (SELECT count(*) FROM execution),
       (SELECT count(*) FROM execution WHERE status <> 'completed'),
       (SELECT count(*) FROM execution WHERE attempt <> 1),
       (SELECT count(*) FROM execution_holder),
       (SELECT count(*) FROM execution_admission_entry),
       (SELECT coalesce(sum(abs(active_count) + abs(queued_count)), 0)::bigint FROM execution_admission_state),
       (SELECT coalesce(sum(abs(assigned)), 0)::bigint FROM worker_load),
       (SELECT count(*) FROM admission_blocked),
       (SELECT count(*) FROM execution_slot) + (SELECT coalesce(sum(abs(active_count)), 0) FROM admission_scope),
       (SELECT count(*) FROM late_write),
       (SELECT count(*) FROM outbox)
