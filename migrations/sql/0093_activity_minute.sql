-- activity_minute counts the executions of an action that ended in a minute, by how they ended. An engine counts
-- a minute again and again until 30 seconds after its end, so that a transaction that commits late is counted.

-- +goose Up
CREATE TABLE IF NOT EXISTS activity_minute (
    minute     timestamptz NOT NULL, -- its start
    action_ref text NOT NULL,
    completed  bigint NOT NULL,
    failed     bigint NOT NULL,
    timeout    bigint NOT NULL,
    cancelled  bigint NOT NULL,
    abandoned  bigint NOT NULL,
    counted    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (minute, action_ref)
);

-- +goose Down
DROP TABLE IF EXISTS activity_minute;
