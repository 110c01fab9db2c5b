-- What nobody has used for long.

-- name: PruneGroupStates :execrows
-- Rows that a round holds are left to the next look. The row is looked at again
-- under its lock.
DELETE FROM execution_admission_state s
WHERE s.id = ANY (ARRAY(
        SELECT t.id FROM execution_admission_state t
        WHERE t.group_key IS NOT NULL AND t.active_count = 0 AND t.queued_count = 0 AND NOT t.paused
          AND t.limit_override IS NULL AND t.updated < now() - make_interval(secs => sqlc.arg(idle)::float8)
        ORDER BY t.id LIMIT sqlc.arg(page)::int FOR UPDATE SKIP LOCKED))
  AND s.active_count = 0 AND s.queued_count = 0 AND NOT s.paused AND s.limit_override IS NULL;

-- name: PruneScopes :execrows
DELETE FROM admission_scope s
WHERE s.id = ANY (ARRAY(
        SELECT t.id FROM admission_scope t
        WHERE t.active_count = 0
          AND t.updated < now() - greatest(make_interval(secs => sqlc.arg(idle)::float8), make_interval(secs => 2 * coalesce(t.window_seconds, 0)))
          AND NOT EXISTS (SELECT 1 FROM admission_blocked b WHERE b.scope_id = t.id)
        ORDER BY t.id LIMIT sqlc.arg(page)::int FOR UPDATE SKIP LOCKED))
  AND s.active_count = 0;
