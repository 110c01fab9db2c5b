-- The executions of this run ($1 is the newest before it) that ended otherwise than expected of a good
-- run, by kind: their number, how many have another attempt that completed, some ids, and one error.
WITH RECURSIVE bad AS (
    SELECT e.id, coalesce(e.original_execution, e.id) AS first_attempt, e.parent, e.action_ref, e.status::text AS status,
        coalesce(e.result->>'error', '') AS error,
        e.started_at IS NULL AND e.result->>'failed_by' IN ('execution_timeout_monitor', 'dead_letter_handler') AS unbegun
    FROM execution e
    WHERE e.id > $1 AND (e.status IN ('failed', 'cancelled', 'timeout', 'abandoned')
        OR e.status = 'completed' AND e.action_ref IN ('core.fail', 'demo.unlucky'))
), lost AS (
    SELECT l.execution AS id FROM lost_work l WHERE l.execution > $1 AND l.cause = 'worker_gone' AND l.outcome <> 'moved'
    UNION -- the worker restarted before its timeout, and ended the executions of its earlier process
    SELECT b.id FROM bad b WHERE b.status = 'abandoned' AND b.error LIKE 'the worker''s process ended while%'
), asked AS (
    SELECT jsonb_array_elements_text(a.request->'ids')::bigint AS id
    FROM operator_audit a WHERE a.action = 'execution.cancel'
), line AS ( -- these and the lost executions with all their ancestors
    SELECT b.id, b.id AS at, b.parent FROM (SELECT id, parent FROM bad UNION SELECT e.id, e.parent FROM execution e JOIN lost USING (id)) b
    UNION ALL
    SELECT l.id, p.id, p.parent FROM line l JOIN execution p ON p.id = l.parent
), kinds AS (
    SELECT b.id, b.action_ref, b.status, b.error, EXISTS (
        SELECT FROM execution r WHERE (r.id = b.first_attempt OR r.original_execution = b.first_attempt)
            AND r.id <> b.id AND r.status = 'completed') AS repaired, CASE
        WHEN b.status = 'failed' AND b.action_ref IN ('core.fail', 'demo.unlucky') AND b.error LIKE 'failing on purpose%' THEN 'on purpose'
        WHEN b.status = 'failed' AND b.action_ref = 'shop.charge' AND b.error ~ '^the (card was refused|bank is away)' THEN 'refused by the bank'
        WHEN b.status = 'failed' AND b.action_ref IN ('ops.print', 'ops.fax') AND b.unbegun THEN 'not begun by the annex'
        WHEN b.status = 'failed' AND b.action_ref = 'ops.invoice' AND b.error LIKE '%is not part of release%' THEN 'failed by a bad release'
        WHEN b.status = 'failed' AND b.action_ref = 'ops.fax' AND b.error ILIKE 'action not found%' THEN 'requested of a deleted action'
        WHEN b.status = 'cancelled' AND EXISTS (SELECT FROM line l JOIN asked a ON a.id = l.at WHERE l.id = b.id) THEN 'cancelled by the operator'
        WHEN b.id IN (SELECT id FROM lost) THEN 'lost with a killed worker'
        WHEN b.status IN ('failed', 'cancelled') AND EXISTS (
            SELECT FROM line mine
            JOIN line theirs ON theirs.at = mine.at AND theirs.parent IS NULL
            JOIN lost ON lost.id = theirs.id
            WHERE mine.id = b.id AND mine.parent IS NULL) THEN 'with a lost task of its workflow'
        ELSE 'unexpected'
    END AS kind
    FROM bad b
)
SELECT kind, count(*), count(*) FILTER (WHERE repaired), (array_agg(id ORDER BY id))[1:5],
       (array_agg(action_ref || ' ' || status || ': ' || btrim(error, E' \n') ORDER BY id))[1]
FROM kinds GROUP BY kind ORDER BY kind
