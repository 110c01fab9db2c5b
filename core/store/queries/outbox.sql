-- Messages that became true with a commit and wait to be published.

-- name: AppendOutbox :one
-- One row for the whole batch; the arrays are of equal length.
INSERT INTO outbox (message_ids, exchanges, routing_keys, message_types, bodies, traces)
VALUES (sqlc.arg(message_ids)::text[], sqlc.arg(exchanges)::text[], sqlc.arg(routing_keys)::text[],
        sqlc.arg(message_types)::text[], sqlc.arg(bodies)::bytea[], sqlc.arg(traces)::text[])
RETURNING id;

-- name: DeleteOutbox :execrows
DELETE FROM outbox WHERE id = ANY (sqlc.arg(ids)::bigint[]);

-- name: ClaimOutbox :many
-- Takes rows that nobody published for a while, oldest first. The claim itself
-- ages, so that a claimer that dies is followed by another.
WITH due AS (
    SELECT o.id FROM outbox o
    WHERE coalesce(o.claimed_at, o.created) < now() - make_interval(secs => sqlc.arg(older_than_seconds)::float8)
    ORDER BY o.id
    LIMIT sqlc.arg(page)::int
    FOR UPDATE SKIP LOCKED
)
UPDATE outbox o SET claimed_at = now(), attempts = o.attempts + 1
WHERE o.id = ANY (ARRAY(SELECT id FROM due))
RETURNING o.id, o.attempts, o.message_ids, o.exchanges, o.routing_keys, o.message_types, o.bodies, o.traces;

-- name: LockOutbox :many
-- Nothing when the row is gone: another replica has settled it.
SELECT id FROM outbox WHERE id = sqlc.arg(id) FOR UPDATE;

-- name: SplitOutbox :one
-- What came back of a batch goes on in a row of its own, to be tried again.
-- Nothing is made when the row is already gone: another replica settled it.
INSERT INTO outbox (created, claimed_at, attempts, last_error, message_ids, exchanges, routing_keys, message_types, bodies, traces)
SELECT o.created, now(), o.attempts + 1, sqlc.arg(last_error)::text,
       sqlc.arg(message_ids)::text[], sqlc.arg(exchanges)::text[], sqlc.arg(routing_keys)::text[],
       sqlc.arg(message_types)::text[], sqlc.arg(bodies)::bytea[], sqlc.arg(traces)::text[]
FROM outbox o
WHERE o.id = sqlc.arg(id)
RETURNING id;

-- name: OutboxBacklog :one
-- How much waits and for how long, in seconds by the database's clock.
SELECT count(*) AS batches, coalesce(sum(cardinality(message_ids)), 0)::bigint AS messages,
       coalesce(extract(epoch FROM now() - min(created)), 0)::float8 AS oldest_seconds
FROM outbox;

-- name: NotifyOutbox :exec
-- Tells the engines of a row that its writer cannot publish, with the commit.
SELECT pg_notify('attune_outbox', current_schema() || ' ' || sqlc.arg(id)::bigint);

-- name: TakeOutbox :many
-- Takes a row of which an engine was told, unless another has it.
UPDATE outbox o SET claimed_at = now(), attempts = o.attempts + 1
WHERE o.id = sqlc.arg(id) AND o.claimed_at IS NULL
RETURNING o.id, o.attempts, o.message_ids, o.exchanges, o.routing_keys, o.message_types, o.bodies, o.traces;
