-- Under load: brief lock. Takes over the queues, workflows, inquiries and cancels of another engine.
--
-- Down hands the schema back before it removes this file, and refuses if newer ones are missing.

-- +goose Up
-- attune_take_over takes over the queues of another engine, at the migration and at the start of a replica if the other
-- engine has run since. Its entries have running executions (status active, which this engine never writes) and waiting
-- ones, and not our counters. Running executions become holders; promoted ones that were not dispatched stay at the
-- head of their queue; slots of ended ones are released. A deleted holder counts until its row of lost_holder is
-- processed.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_take_over() RETURNS bigint
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    taken bigint;
BEGIN
    -- The locks that batches take: no replica decides meanwhile.
    PERFORM id FROM execution_admission_state ORDER BY id FOR UPDATE;
    PERFORM worker FROM worker_load ORDER BY worker FOR UPDATE;

    INSERT INTO execution_holder (execution, state_id, worker, attempt, granted_at)
    SELECT e.id, q.state_id, e.worker, e.attempt, coalesce(e.admitted_at, q.activated_at, now())
    FROM execution_admission_entry q JOIN execution e ON e.id = q.execution_id
    WHERE q.status = 'active' AND e.status IN ('scheduled', 'running', 'canceling')
    ON CONFLICT (execution) DO NOTHING;
    GET DIAGNOSTICS taken = ROW_COUNT;
    UPDATE execution_admission_entry q SET status = 'queued', activated_at = NULL
    FROM execution e WHERE e.id = q.execution_id AND q.status = 'active' AND e.status = 'requested';
    -- An execution that has ended since its executor stopped counts as completed, as its message would have counted it.
    WITH gone AS (
        DELETE FROM execution_admission_entry q USING execution e
        WHERE e.id = q.execution_id AND (q.status = 'active' OR e.status <> 'requested')
        RETURNING q.state_id, q.status = 'active' AND e.status IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned') AS ended
    ), counted AS (
        UPDATE execution_admission_state s SET total_completed = s.total_completed + g.n
        FROM (SELECT state_id, count(*) AS n FROM gone WHERE ended GROUP BY state_id) g
        WHERE s.id = g.state_id
        RETURNING s.action_id, g.n
    )
    UPDATE queue_stats t SET total_completed = t.total_completed + a.n
    FROM (SELECT action_id, sum(n) AS n FROM counted GROUP BY action_id) a
    WHERE t.action_id = a.action_id;

    UPDATE execution_admission_state s
    SET active_count = coalesce(h.n, 0),
        queued_count = coalesce(q.n, 0), queued_high = coalesce(q.high, 0), queued_low = coalesce(q.low, 0),
        head_order = coalesce(q.head, s.next_queue_order), head_high = coalesce(q.head_high, s.next_queue_order),
        head_low = coalesce(q.head_low, s.next_queue_order), next_queue_order = greatest(s.next_queue_order, q.last + 1)
    FROM execution_admission_state t
    LEFT JOIN (
        SELECT state_id, count(*) AS n, count(*) FILTER (WHERE lane = 1) AS high, count(*) FILTER (WHERE lane = -1) AS low,
               min(queue_order) FILTER (WHERE lane = 0) AS head, min(queue_order) FILTER (WHERE lane = 1) AS head_high,
               min(queue_order) FILTER (WHERE lane = -1) AS head_low, max(queue_order) AS last
        FROM execution_admission_entry GROUP BY state_id
    ) q ON q.state_id = t.id
    LEFT JOIN (
        SELECT state_id, count(*) AS n FROM (
            SELECT state_id FROM execution_holder
            UNION ALL
            SELECT state_id FROM lost_holder WHERE state_id IS NOT NULL) x
        GROUP BY 1
    ) h ON h.state_id = t.id
    WHERE s.id = t.id;
    INSERT INTO worker_load (worker) SELECT id FROM worker ON CONFLICT DO NOTHING;
    UPDATE worker_load l SET assigned = coalesce(h.n, 0)
    FROM worker w
    LEFT JOIN (
        SELECT worker, count(*) AS n FROM (
            SELECT worker FROM execution_holder
            UNION ALL
            SELECT worker FROM lost_holder WHERE state_id IS NOT NULL) x
        GROUP BY 1
    ) h ON h.worker = w.id
    WHERE w.id = l.worker AND l.assigned <> coalesce(h.n, 0);
    INSERT INTO queue_stats AS t (action_id, queue_length, active_count, max_concurrent, total_enqueued, total_completed)
    SELECT action_id, sum(queued_count), sum(active_count), max(max_concurrent), sum(total_enqueued), sum(total_completed)
    FROM execution_admission_state GROUP BY action_id ORDER BY action_id
    ON CONFLICT (action_id) DO UPDATE
    SET queue_length = excluded.queue_length, active_count = excluded.active_count, last_updated = now();
    RETURN taken;
END
$$;
-- +goose StatementEnd

-- Our own schema has none of these rows. The parts are short, and each passes over what is done.
UPDATE execution_secret_value v SET entity_type = 'execution_config' -- where retries are looked up
WHERE v.entity_type = 'execution' AND NOT EXISTS (
    SELECT FROM execution_secret_value o
    WHERE o.entity_type = 'execution_config' AND o.entity_id = v.entity_id AND o.json_path = v.json_path);
COMMIT AND CHAIN;
INSERT INTO worker_load (worker) SELECT id FROM worker ON CONFLICT DO NOTHING;
UPDATE worker SET heartbeat_seen = least(last_heartbeat, now()) WHERE last_heartbeat IS NOT NULL AND heartbeat_seen IS NULL;
COMMIT AND CHAIN;
INSERT INTO execution_cancel (execution) SELECT id FROM execution WHERE status = 'canceling' ON CONFLICT DO NOTHING;
COMMIT AND CHAIN;
-- Another engine ends the row of a cancelled workflow at once, and its execution with the last child.
UPDATE workflow_execution w SET open = true
WHERE NOT w.open AND w.state IS NULL AND (NOT attune_terminal(w.status) OR w.status = 'cancelled' AND EXISTS (
    SELECT FROM execution e WHERE e.id = w.execution AND e.status = 'canceling'));
COMMIT AND CHAIN;
UPDATE workflow_task_dispatch d SET settled = false
FROM workflow_execution w
WHERE w.id = d.workflow_execution AND w.open AND w.state IS NULL AND d.settled;
COMMIT AND CHAIN;
UPDATE inquiry i SET settled = false
WHERE i.settled AND (i.status = 'pending' OR EXISTS (
    SELECT FROM execution e WHERE e.id = i.execution AND NOT attune_terminal(e.status)));
COMMIT AND CHAIN;
-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM execution_admission_entry WHERE status = 'active')
       OR EXISTS (SELECT FROM execution_admission_entry q JOIN execution_admission_state s ON s.id = q.state_id
                  WHERE s.queued_count = 0) THEN
        PERFORM attune_take_over();
    END IF;
END
$$;
-- +goose StatementEnd

-- +goose Down
-- Executions that run get their entries back, unless a hand-back has written them.
-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM attune_schema_origin WHERE origin = 'adopted') THEN
        INSERT INTO execution_admission_entry (state_id, execution_id, status, queue_order, activated_at)
        SELECT s.id, e.id, 'active', s.next_queue_order + row_number() OVER (PARTITION BY s.id ORDER BY e.id) - 1, now()
        FROM execution_holder h JOIN execution e ON e.id = h.execution JOIN execution_admission_state s ON s.id = h.state_id
        WHERE NOT attune_terminal(e.status) AND NOT s.unlimited
        ON CONFLICT (execution_id) DO NOTHING;
        UPDATE execution_admission_state s SET next_queue_order = q.last + 1
        FROM (SELECT state_id, max(queue_order) AS last FROM execution_admission_entry GROUP BY state_id) q
        WHERE q.state_id = s.id AND s.next_queue_order <= q.last;
    END IF;
END
$$;
-- +goose StatementEnd
DROP FUNCTION IF EXISTS attune_take_over();
