-- request_key names what a request over HTTP with an Idempotency-Key has created, so that a repeated one creates
-- nothing. It belongs to one client, and counts for 24 hours.

-- +goose Up
CREATE TABLE IF NOT EXISTS request_key (
    client  text NOT NULL,
    key     text NOT NULL,
    digest  bytea NOT NULL, -- of the path and the body
    created timestamptz NOT NULL DEFAULT now(),
    subject bigint NOT NULL, -- the execution or event
    PRIMARY KEY (client, key)
);
CREATE INDEX IF NOT EXISTS request_key_created ON request_key (created);

-- +goose Down
DROP TABLE IF EXISTS request_key;
