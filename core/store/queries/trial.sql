-- Trials of messages that may have ended a process.

-- name: BeginTrial :one
-- Negative: the trial has begun. Otherwise it began so many seconds ago, in a process that has not ended it. Old rows
-- are of messages that left their queue otherwise.
WITH old AS (
    DELETE FROM message_trial WHERE begun < now() - interval '7 days' AND fingerprint <> sqlc.arg(fingerprint)::text
), begun AS (
    INSERT INTO message_trial (fingerprint, queue) VALUES (sqlc.arg(fingerprint)::text, sqlc.arg(queue)::text)
    ON CONFLICT DO NOTHING RETURNING true
)
SELECT CASE WHEN EXISTS (SELECT FROM begun) THEN -1
            ELSE coalesce((SELECT extract(epoch FROM now() - t.begun) FROM message_trial t WHERE t.fingerprint = sqlc.arg(fingerprint)::text), 0) END::float8 AS age;

-- name: EndTrial :exec
DELETE FROM message_trial WHERE fingerprint = $1;
