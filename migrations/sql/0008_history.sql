-- What changed and when, partitioned by time so that old history is dropped
-- in one step.

-- +goose Up
CREATE TABLE execution_history (
    time           timestamptz NOT NULL DEFAULT now(),
    operation      text NOT NULL,
    entity_id      bigint NOT NULL,
    entity_ref     text,
    changed_fields text[] NOT NULL DEFAULT '{}',
    old_values     jsonb,
    new_values     jsonb
) PARTITION BY RANGE (time);
CREATE TABLE execution_history_default PARTITION OF execution_history DEFAULT;
CREATE INDEX idx_execution_history_entity ON execution_history (entity_id, time DESC);

CREATE TABLE worker_history (
    time           timestamptz NOT NULL DEFAULT now(),
    operation      text NOT NULL,
    entity_id      bigint NOT NULL,
    entity_ref     text,
    changed_fields text[] NOT NULL DEFAULT '{}',
    old_values     jsonb,
    new_values     jsonb
) PARTITION BY RANGE (time);
CREATE TABLE worker_history_default PARTITION OF worker_history DEFAULT;
CREATE INDEX idx_worker_history_entity ON worker_history (entity_id, time DESC);

CREATE TABLE sensor_process_history (
    time           timestamptz NOT NULL DEFAULT now(),
    operation      text NOT NULL,
    entity_id      bigint NOT NULL,
    entity_ref     text,
    worker_id      bigint,
    worker_name    text,
    changed_fields text[] NOT NULL DEFAULT '{}',
    old_values     jsonb,
    new_values     jsonb
) PARTITION BY RANGE (time);
CREATE TABLE sensor_process_history_default PARTITION OF sensor_process_history DEFAULT;
CREATE INDEX idx_sensor_process_history_entity ON sensor_process_history (entity_id, time DESC);

-- +goose Down
DROP TABLE sensor_process_history;
DROP TABLE worker_history;
DROP TABLE execution_history;
