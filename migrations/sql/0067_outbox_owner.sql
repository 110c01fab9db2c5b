-- A row of the outbox belongs to the relay of the replica that committed it, and
-- only that relay publishes it while its lease is renewed.

-- +goose Up
CREATE TABLE IF NOT EXISTS outbox_owner (
    id      uuid PRIMARY KEY,
    renewed timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 10);
-- The setting is that of the connection. Rows of writers without a relay have no owner.
ALTER TABLE outbox ADD COLUMN IF NOT EXISTS owner uuid DEFAULT nullif(current_setting('attune.relay', true), '')::uuid;

-- +goose Down
ALTER TABLE outbox DROP COLUMN IF EXISTS owner;
DROP TABLE IF EXISTS outbox_owner;
