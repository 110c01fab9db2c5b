-- The replicas of the engine as they report themselves.

-- name: ReportReplica :exec
INSERT INTO engine_replica (id, host, version, pid, state, loops, in_flight, details)
VALUES (sqlc.arg(id), sqlc.arg(host), sqlc.arg(version), sqlc.arg(pid), sqlc.arg(state),
        sqlc.arg(loops), sqlc.arg(in_flight), sqlc.arg(details))
ON CONFLICT (id) DO UPDATE SET
    last_seen = now(), state = excluded.state, loops = excluded.loops,
    in_flight = excluded.in_flight, details = excluded.details;

-- name: ForgetReplica :execrows
DELETE FROM engine_replica WHERE id = sqlc.arg(id);

-- name: ForgetSilentReplicas :execrows
DELETE FROM engine_replica
WHERE last_seen < now() - make_interval(secs => sqlc.arg(silent_seconds)::float8);
