-- event_origin says which execution has emitted an event, and how many rules led to it:
-- event, rule, execution, event, and so on. An event without a row has a depth of 0.

-- +goose Up
CREATE TABLE IF NOT EXISTS event_origin (
    event     bigint PRIMARY KEY,
    execution bigint NOT NULL,
    depth     integer NOT NULL
);

-- +goose Down
DROP TABLE IF EXISTS event_origin;
