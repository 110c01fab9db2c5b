-- One row per limited queue, one row per waiter, and the figures others read.

-- +goose Up
CREATE TABLE execution_admission_state (
    id                   bigserial PRIMARY KEY,
    action_id            bigint NOT NULL REFERENCES action (id) ON DELETE CASCADE,
    group_key            text,
    group_key_normalized text GENERATED ALWAYS AS (COALESCE(group_key, '')) STORED,
    max_concurrent       integer NOT NULL,
    next_queue_order     bigint NOT NULL DEFAULT 1,
    total_enqueued       bigint NOT NULL DEFAULT 0,
    total_completed      bigint NOT NULL DEFAULT 0,
    created              timestamptz NOT NULL DEFAULT now(),
    updated              timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT uq_execution_admission_state_identity UNIQUE (action_id, group_key_normalized)
) WITH (fillfactor = 10);

CREATE TABLE execution_admission_entry (
    id           bigserial PRIMARY KEY,
    state_id     bigint NOT NULL REFERENCES execution_admission_state (id) ON DELETE CASCADE,
    execution_id bigint NOT NULL UNIQUE REFERENCES execution (id) ON DELETE CASCADE,
    status       text NOT NULL CHECK (status IN ('active', 'queued')),
    queue_order  bigint NOT NULL,
    enqueued_at  timestamptz NOT NULL DEFAULT now(),
    activated_at timestamptz,
    created      timestamptz NOT NULL DEFAULT now(),
    updated      timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE queue_stats (
    action_id          bigint PRIMARY KEY REFERENCES action (id) ON DELETE CASCADE,
    queue_length       integer NOT NULL DEFAULT 0,
    active_count       integer NOT NULL DEFAULT 0,
    max_concurrent     integer NOT NULL DEFAULT 1,
    oldest_enqueued_at timestamptz,
    total_enqueued     bigint NOT NULL DEFAULT 0,
    total_completed    bigint NOT NULL DEFAULT 0,
    last_updated       timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 10);

-- +goose Down
DROP TABLE queue_stats;
DROP TABLE execution_admission_entry;
DROP TABLE execution_admission_state;
