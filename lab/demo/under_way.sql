-- The actions of executions that have not ended, the most frequent first.
SELECT coalesce(array_agg(a.n || ' of ' || a.action_ref ORDER BY a.n DESC, a.action_ref), '{}')
FROM (
    SELECT e.action_ref, count(*) AS n
    FROM execution e
    WHERE e.status IN ('requested', 'scheduling', 'scheduled', 'running', 'canceling')
    GROUP BY e.action_ref ORDER BY count(*) DESC, e.action_ref LIMIT 3
) a
