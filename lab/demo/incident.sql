-- The dead letters of an incident, from $1 to $5: copied messages of the annex (in the queue of the worker
-- $2), events of the mirror ($3), and messages of the broken publisher ($4).
SELECT l.id, l.grp, coalesce(l.decision, ''), coalesce(l.execution, 0)
FROM (
    SELECT d.id, d.decision, d.execution, CASE
        WHEN d.worker = $2 AND e.action_ref = 'ops.print' THEN 'print'
        WHEN d.worker = $2 AND e.action_ref = 'ops.fax' THEN 'fax'
        WHEN d.queue = $3 THEN 'mirror'
        WHEN d.message_id = ANY ($4::text[]) THEN 'broken'
        ELSE ''
    END AS grp
    FROM dead_letter d
    LEFT JOIN execution e ON e.id = d.execution
    WHERE d.id > $1 AND d.id <= $5
) l
ORDER BY l.id
