-- Room for updates within a page, and cleaning that keeps up with tables that
-- are rewritten all day.

-- +goose Up
ALTER TABLE execution SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE execution_admission_state SET (fillfactor = 10, autovacuum_vacuum_threshold = 50,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE execution_admission_entry SET (autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_insert_threshold = 5000, autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE worker_load SET (autovacuum_vacuum_threshold = 50,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE queue_stats SET (fillfactor = 10, autovacuum_vacuum_threshold = 50,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE outbox SET (autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_insert_threshold = 5000, autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);

-- +goose Down
ALTER TABLE outbox RESET (autovacuum_vacuum_threshold, autovacuum_vacuum_scale_factor,
    autovacuum_vacuum_insert_threshold, autovacuum_vacuum_insert_scale_factor, autovacuum_vacuum_cost_delay);
ALTER TABLE queue_stats RESET (autovacuum_vacuum_threshold, autovacuum_vacuum_scale_factor, autovacuum_vacuum_cost_delay);
ALTER TABLE worker_load RESET (autovacuum_vacuum_threshold, autovacuum_vacuum_scale_factor, autovacuum_vacuum_cost_delay);
ALTER TABLE execution_admission_entry RESET (autovacuum_vacuum_threshold, autovacuum_vacuum_scale_factor,
    autovacuum_vacuum_insert_threshold, autovacuum_vacuum_insert_scale_factor, autovacuum_vacuum_cost_delay);
ALTER TABLE execution_admission_state RESET (autovacuum_vacuum_threshold, autovacuum_vacuum_scale_factor, autovacuum_vacuum_cost_delay);
ALTER TABLE execution RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_cost_delay);
-- A schema of our own has these from its first file on.
-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM attune_schema_origin WHERE origin = 'adopted') THEN
        ALTER TABLE execution RESET (fillfactor);
        ALTER TABLE execution_admission_state RESET (fillfactor);
        ALTER TABLE queue_stats RESET (fillfactor);
    END IF;
END
$$;
-- +goose StatementEnd
