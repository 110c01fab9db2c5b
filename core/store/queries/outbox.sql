-- Committed messages that wait to be published.

-- name: AppendOutbox :one
-- One row for the whole batch; the arrays are of equal length. It also deletes rows that the
-- writer's relay has published.
WITH gone AS (
    DELETE FROM outbox o WHERE o.id = ANY (sqlc.arg(published)::bigint[])
)
INSERT INTO outbox (message_ids, exchanges, routing_keys, message_types, bodies, traces)
VALUES (sqlc.arg(message_ids)::text[], sqlc.arg(exchanges)::text[], sqlc.arg(routing_keys)::text[],
        sqlc.arg(message_types)::text[], sqlc.arg(bodies)::bytea[], sqlc.arg(traces)::text[])
RETURNING id;

-- name: DeleteOutbox :execrows
DELETE FROM outbox WHERE id = ANY (sqlc.arg(ids)::bigint[]);

-- name: RenewOutboxLease :exec
-- While this is repeated in time, only the named relay publishes the rows that it owns.
INSERT INTO outbox_owner (id) VALUES (sqlc.arg(owner)::uuid)
ON CONFLICT (id) DO UPDATE SET renewed = now();

-- name: EndOutboxLease :exec
-- Also removes the leases of replicas that were killed.
DELETE FROM outbox_owner WHERE id = sqlc.arg(owner)::uuid OR renewed < now() - interval '1 day';

-- name: ClaimOutbox :many
-- Claims due rows without an owner, or whose owner has no lease, oldest first. The claim itself
-- ages, so that rows of a claimer without a lease are claimed again.
WITH due AS (
    SELECT o.id FROM outbox o
    WHERE coalesce(o.claimed_at, o.created) < now() - make_interval(secs => sqlc.arg(older_than_seconds)::float8)
      AND NOT EXISTS (SELECT FROM outbox_owner l WHERE l.id = o.owner
                      AND l.renewed > now() - make_interval(secs => sqlc.arg(lease_seconds)::float8))
    ORDER BY o.id
    LIMIT sqlc.arg(page)::int
    FOR UPDATE OF o SKIP LOCKED
)
UPDATE outbox o SET claimed_at = now(), attempts = o.attempts + 1, owner = sqlc.narg(owner)::uuid
WHERE o.id = ANY (ARRAY(SELECT id FROM due))
RETURNING o.id, o.attempts, o.message_ids, o.exchanges, o.routing_keys, o.message_types, o.bodies, o.traces;

-- name: ReleaseOutbox :execrows
-- Releases old rows that their owner does not hold in memory: any replica may claim them.
UPDATE outbox o SET owner = NULL
WHERE o.id = ANY (ARRAY(
        SELECT t.id FROM outbox t
        WHERE t.owner = sqlc.arg(owner)::uuid
          AND coalesce(t.claimed_at, t.created) < now() - make_interval(secs => sqlc.arg(older_than_seconds)::float8)
          AND NOT EXISTS (SELECT FROM unnest(sqlc.arg(held)::bigint[]) h (id) WHERE h.id = t.id)
        ORDER BY t.id LIMIT sqlc.arg(page)::int FOR UPDATE SKIP LOCKED))
  AND o.owner = sqlc.arg(owner)::uuid;

-- name: KeepOutbox :many
-- The rows that a relay still owns after its lease lapsed. The renewed claim makes a concurrent
-- ClaimOutbox of another replica skip them.
WITH mine AS (
    SELECT o.id FROM outbox o WHERE o.id = ANY (sqlc.arg(held)::bigint[]) AND o.owner = sqlc.arg(owner)::uuid
    ORDER BY o.id FOR UPDATE
)
UPDATE outbox o SET claimed_at = now() WHERE o.id = ANY (ARRAY(SELECT id FROM mine)) RETURNING o.id;

-- name: LockOutbox :many
-- Returns nothing if the row is gone or another replica has claimed it.
SELECT id FROM outbox WHERE id = sqlc.arg(id) AND owner IS NOT DISTINCT FROM sqlc.narg(owner)::uuid FOR UPDATE;

-- name: SplitOutbox :one
-- The undelivered messages of a row get a row of their own without an owner, which a sweep
-- publishes. Nothing is inserted if the row is gone.
INSERT INTO outbox (created, claimed_at, attempts, last_error,
                    message_ids, exchanges, routing_keys, message_types, bodies, traces, owner)
SELECT o.created, now(), greatest(o.attempts, 1), sqlc.arg(last_error)::text,
       sqlc.arg(message_ids)::text[], sqlc.arg(exchanges)::text[], sqlc.arg(routing_keys)::text[],
       sqlc.arg(message_types)::text[], sqlc.arg(bodies)::bytea[], sqlc.arg(traces)::text[], NULL
FROM outbox o
WHERE o.id = sqlc.arg(id)
RETURNING id;

-- name: OutboxBacklog :one
-- The number of waiting messages, and the age of the oldest in seconds by the database's clock.
SELECT count(*) AS batches, coalesce(sum(cardinality(message_ids)), 0)::bigint AS messages,
       coalesce(extract(epoch FROM now() - min(created)), 0)::float8 AS oldest_seconds
FROM outbox;

-- name: NotifyOutbox :exec
-- Notifies the engines, at the commit, of a row that its writer cannot publish.
SELECT pg_notify('attune_outbox', current_schema() || ' ' || sqlc.arg(id)::bigint);

-- name: TakeOutbox :many
-- Claims a notified row, unless another relay has it.
UPDATE outbox o SET claimed_at = now(), attempts = o.attempts + 1, owner = sqlc.narg(owner)::uuid
WHERE o.id = sqlc.arg(id) AND o.claimed_at IS NULL AND o.owner IS NULL
RETURNING o.id, o.attempts, o.message_ids, o.exchanges, o.routing_keys, o.message_types, o.bodies, o.traces;
