-- The dead letters of an incident: those after $1, up to $5, that are about the copied messages of
-- the annex ($2: the worker in whose queue they died), events of the mirror ($3), or
-- messages that the sick publisher sent ($4).
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
