-- What traces need beyond the rows of events, enforcements and executions. Nothing is written here
-- while tracing is off.
--
-- trace_pending names rows whose spans have not been sent: written by the transaction that ends the
-- row, deleted when the collector has the spans. trace_origin holds the traceparent with which a client
-- requested an execution or emitted an event. trace_seed makes trace ids those of this installation.

-- +goose Up
CREATE TABLE IF NOT EXISTS trace_pending (
    id      bigserial PRIMARY KEY,
    kind    text NOT NULL,
    subject bigint NOT NULL,
    at      timestamptz NOT NULL DEFAULT now(),
    claimed timestamptz
) WITH (fillfactor = 70, autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0,
        autovacuum_vacuum_insert_threshold = 5000, autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);
CREATE TABLE IF NOT EXISTS trace_origin (
    kind        text NOT NULL,
    subject     bigint NOT NULL,
    traceparent text NOT NULL,
    created     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (kind, subject)
);
CREATE TABLE IF NOT EXISTS trace_seed (
    one  boolean PRIMARY KEY DEFAULT true CHECK (one),
    seed uuid NOT NULL DEFAULT gen_random_uuid()
);
INSERT INTO trace_seed DEFAULT VALUES ON CONFLICT DO NOTHING;

-- +goose Down
DROP TABLE IF EXISTS trace_seed;
DROP TABLE IF EXISTS trace_origin;
DROP TABLE IF EXISTS trace_pending;
