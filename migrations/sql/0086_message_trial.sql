-- message_trial names a message that a process of attune is trying alone, because the process that had it in
-- hand before did not settle it and it is large. A row that is left belongs to a process that died while it
-- tried the message: the message is not tried again.

-- +goose Up
CREATE TABLE IF NOT EXISTS message_trial (
    fingerprint text PRIMARY KEY, -- of the queue and the content
    queue       text NOT NULL,
    begun       timestamptz NOT NULL DEFAULT now()
);

-- +goose Down
DROP TABLE IF EXISTS message_trial;
