SELECT 1000 * extract(epoch FROM percentile_cont(0.5) WITHIN GROUP (ORDER BY finished_at - created))::float8 FROM attune.execution
