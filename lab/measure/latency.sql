SELECT count(*) FILTER (WHERE status = 'completed'),
       coalesce(percentile_cont(0.50) WITHIN GROUP (ORDER BY extract(epoch FROM started_at - created)), 0),
       coalesce(percentile_cont(0.95) WITHIN GROUP (ORDER BY extract(epoch FROM started_at - created)), 0),
       coalesce(percentile_cont(0.99) WITHIN GROUP (ORDER BY extract(epoch FROM started_at - created)), 0)
FROM execution
WHERE id > $1
