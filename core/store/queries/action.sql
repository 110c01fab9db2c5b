-- name: AdoptedActionsWithRetries :many
-- Actions of an existing installation with max_retries, which its engine ignored. A schema of our
-- own has none.
SELECT a.ref, a.max_retries FROM action a
WHERE a.max_retries > 0 AND EXISTS (SELECT FROM attune_schema_origin o WHERE o.origin = 'adopted')
ORDER BY a.ref LIMIT sqlc.arg(page)::int;
