-- Every round asks for the queues that have waited longest for a worker, under
-- its locks: by an index, however many wait.

-- +goose Up
CREATE INDEX IF NOT EXISTS attune_admission_blocked_ticket ON admission_blocked (ticket);

-- +goose Down
DROP INDEX IF EXISTS attune_admission_blocked_ticket;
