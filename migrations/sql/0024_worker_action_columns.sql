-- Draining and the incarnation of a worker; how long an execution of an action
-- may wait to be picked up.

-- +goose Up
-- No transaction holds two busy tables: each part is committed, and a repetition, Down too, passes over it.
ALTER TABLE worker
    ADD COLUMN IF NOT EXISTS draining boolean NOT NULL DEFAULT false,
    ADD COLUMN IF NOT EXISTS incarnation uuid;
COMMIT AND CHAIN;
ALTER TABLE action
    ADD COLUMN IF NOT EXISTS scheduled_timeout_seconds integer;

-- +goose Down
ALTER TABLE action DROP COLUMN IF EXISTS scheduled_timeout_seconds;
COMMIT AND CHAIN;
ALTER TABLE worker DROP COLUMN IF EXISTS incarnation, DROP COLUMN IF EXISTS draining;
