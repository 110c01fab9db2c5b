-- activity_minute has what happened in each minute, by action. An engine counts requests and ends again and again until
-- 30 seconds after the end of the minute, so that a transaction that commits late is counted. What waits and runs is
-- read from the counters at the end of the minute, and cannot be read again later.
--
-- The row of the action '' exists for every counted minute. Its numbers are 0; it has what an engine saw of queues and
-- workers at the end of the minute. If no engine saw it, queues is NULL.

-- +goose Up
CREATE TABLE IF NOT EXISTS activity_minute (
    minute     timestamptz NOT NULL, -- its start
    action_ref text NOT NULL,
    requested  bigint NOT NULL DEFAULT 0,
    completed  bigint NOT NULL DEFAULT 0,
    failed     bigint NOT NULL DEFAULT 0,
    timeout    bigint NOT NULL DEFAULT 0,
    cancelled  bigint NOT NULL DEFAULT 0,
    abandoned  bigint NOT NULL DEFAULT 0,
    queued     bigint NOT NULL DEFAULT 0, -- at the end of the minute
    running    bigint NOT NULL DEFAULT 0, -- hold a slot at the end of the minute
    queues     jsonb, -- {id: [waiting executions, seconds that the first has waited]} of the longest queues; more: true if others wait
    slots      jsonb, -- {worker: taken slots}
    ended      jsonb, -- {worker: executions that ended in the minute}
    counted    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (minute, action_ref)
);
-- Requests are counted by time. A published schema has such an index.
-- +goose StatementBegin
DO $$
BEGIN
    IF to_regclass('idx_execution_created') IS NULL THEN
        CREATE INDEX IF NOT EXISTS attune_execution_created ON execution (created);
    END IF;
END
$$;
-- +goose StatementEnd

-- +goose Down
DROP INDEX IF EXISTS attune_execution_created;
DROP TABLE IF EXISTS activity_minute;
