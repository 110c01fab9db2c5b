-- Trials of messages that may have ended a process.

-- name: BeginTrial :execrows
-- Zero rows: a process began to try this message and did not live to end that. Old rows are of messages that
-- left their queue otherwise.
WITH old AS (
    DELETE FROM message_trial WHERE begun < now() - interval '7 days' AND fingerprint <> sqlc.arg(fingerprint)::text
)
INSERT INTO message_trial (fingerprint, queue) VALUES (sqlc.arg(fingerprint)::text, sqlc.arg(queue)::text)
ON CONFLICT DO NOTHING;

-- name: EndTrial :exec
DELETE FROM message_trial WHERE fingerprint = $1;
