SELECT id, coalesce(action, 0), action_ref, status::text
FROM execution
WHERE finished_status IS NOT NULL AND finished_at > now() - interval '5 seconds'
ORDER BY id DESC
LIMIT 200
