-- The replicas of the engine, as they report themselves.

-- name: ReportReplica :exec
-- The start is passed as an age, so that it becomes a time of the database's clock.
INSERT INTO engine_replica (id, host, version, pid, state, loops, in_flight, details, started)
VALUES (sqlc.arg(id), sqlc.arg(host), sqlc.arg(version), sqlc.arg(pid), sqlc.arg(state),
        sqlc.arg(loops), sqlc.arg(in_flight), sqlc.arg(details),
        now() - make_interval(secs => sqlc.arg(up_seconds)::float8))
ON CONFLICT (id) DO UPDATE SET
    last_seen = now(), state = excluded.state, loops = excluded.loops,
    in_flight = excluded.in_flight, details = excluded.details;

-- name: ForgetReplica :execrows
DELETE FROM engine_replica WHERE id = sqlc.arg(id);

-- name: MarkVanishedReplicas :many
-- Replicas that fell silent without stopping; each is returned to one caller only.
UPDATE engine_replica r SET state = 'vanished'
WHERE r.state <> 'vanished' AND r.last_seen < now() - make_interval(secs => sqlc.arg(silent_seconds)::float8)
RETURNING r.id, r.host, r.pid, r.last_seen;

-- name: ForgetVanishedReplicas :execrows
DELETE FROM engine_replica
WHERE state = 'vanished' AND last_seen < now() - make_interval(secs => sqlc.arg(silent_seconds)::float8);

-- name: ListReplicas :many
-- The replicas that have reported lately, the longest running first. A silent one is listed for a
-- while.
SELECT r.id, r.host, r.version, r.pid, r.state, r.started, r.last_seen, r.loops, r.in_flight, r.details,
       extract(epoch FROM now() - r.last_seen)::float8 AS age
FROM engine_replica r
WHERE r.last_seen > now() - make_interval(secs => sqlc.arg(listed_seconds)::float8)
ORDER BY r.started, r.id
LIMIT sqlc.arg(bound)::bigint;
