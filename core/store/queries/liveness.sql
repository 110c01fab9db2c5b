-- Workers that are suspected.

-- name: FindSuspects :many
-- Those that beat. One that is gone is given nothing anyway, and beats before it
-- is back.
SELECT id, name, suspect_since::timestamptz AS suspect_since FROM worker
WHERE suspect_since IS NOT NULL AND heartbeat_seen > now() - interval '10 minutes'
ORDER BY id;

-- name: AcquitWorker :execrows
-- Only of the suspicion that was looked into; a newer one stays.
UPDATE worker SET suspect_since = NULL, suspect_reason = NULL
WHERE id = sqlc.arg(id) AND suspect_since = sqlc.arg(since)::timestamptz;
