-- Draining and the incarnation of a worker; how long an execution of an action
-- may wait to be picked up.

-- +goose Up
ALTER TABLE worker
    ADD COLUMN IF NOT EXISTS draining boolean NOT NULL DEFAULT false,
    ADD COLUMN IF NOT EXISTS incarnation uuid;
ALTER TABLE action
    ADD COLUMN IF NOT EXISTS scheduled_timeout_seconds integer;

-- +goose Down
ALTER TABLE action DROP COLUMN scheduled_timeout_seconds;
ALTER TABLE worker DROP COLUMN incarnation, DROP COLUMN draining;
