-- Messages that became true with a commit and still have to be published: one
-- row per batch, its messages side by side in arrays of equal length.

-- +goose Up
CREATE TABLE IF NOT EXISTS outbox (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    created       timestamptz NOT NULL DEFAULT now(),
    claimed_at    timestamptz,
    attempts      integer NOT NULL DEFAULT 0,
    last_error    text,
    message_ids   text[] NOT NULL,
    exchanges     text[] NOT NULL,
    routing_keys  text[] NOT NULL,
    message_types text[] NOT NULL,
    bodies        bytea[] NOT NULL,
    traces        text[] NOT NULL
) WITH (fillfactor = 50);

-- +goose Down
DROP TABLE outbox;
