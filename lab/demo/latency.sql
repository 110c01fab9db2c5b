SELECT coalesce(percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM started_at - created)), 0),
       coalesce(percentile_cont(0.99) WITHIN GROUP (ORDER BY extract(epoch FROM started_at - created)), 0)
FROM execution
WHERE id > $1 AND started_at IS NOT NULL AND action_ref IN ('core.echo', 'core.noop', 'core.fail')
