-- +goose NO TRANSACTION
-- What another engine has left in the queues: entries of who runs (status
-- active, which ours never writes) and of who waits, and none of our counters.
-- Who runs becomes a holder, who was promoted and not yet claimed stays at the
-- head of his line, slots of who has ended are given back by not being taken
-- over (upstream 19, 20). It runs at the migration, and again at the start of a
-- replica when the other engine has run since.

-- +goose Up
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_take_over() RETURNS bigint
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    taken bigint;
BEGIN
    -- The locks that rounds take: nobody decides meanwhile.
    PERFORM id FROM execution_admission_state ORDER BY id FOR UPDATE;
    PERFORM worker FROM worker_load ORDER BY worker FOR UPDATE;

    UPDATE execution e SET admission_state_id = q.state_id
    FROM execution_admission_entry q
    WHERE q.execution_id = e.id AND q.status = 'active' AND e.admission_state_id IS NULL
      AND e.status IN ('scheduled', 'running', 'canceling');
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
        SELECT admission_state_id, count(*) AS n FROM execution WHERE admission_state_id IS NOT NULL GROUP BY 1
    ) h ON h.admission_state_id = t.id
    WHERE s.id = t.id;
    INSERT INTO worker_load (worker) SELECT id FROM worker ON CONFLICT DO NOTHING;
    UPDATE worker_load l SET assigned = coalesce(h.n, 0)
    FROM worker w
    LEFT JOIN (
        SELECT worker, count(*) AS n FROM execution WHERE admission_state_id IS NOT NULL GROUP BY 1
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
-- Two transactions: the first keeps writers of executions away and is short, the
-- second counts and does not.
-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM execution_admission_entry WHERE status = 'active') THEN
        ALTER TABLE execution DISABLE TRIGGER USER; -- updated is the fence of dispatches on their way
        UPDATE execution e SET admission_state_id = q.state_id
        FROM execution_admission_entry q
        WHERE q.execution_id = e.id AND q.status = 'active' AND e.admission_state_id IS NULL
          AND e.status IN ('scheduled', 'running', 'canceling');
        ALTER TABLE execution ENABLE TRIGGER USER;
    END IF;
END
$$;
-- +goose StatementEnd
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
        FROM execution e JOIN execution_admission_state s ON s.id = e.admission_state_id
        WHERE e.finished_status IS NULL AND NOT s.unlimited
        ON CONFLICT (execution_id) DO NOTHING;
        UPDATE execution_admission_state s SET next_queue_order = q.last + 1
        FROM (SELECT state_id, max(queue_order) AS last FROM execution_admission_entry GROUP BY state_id) q
        WHERE q.state_id = s.id AND s.next_queue_order <= q.last;
    END IF;
END
$$;
-- +goose StatementEnd
DROP FUNCTION attune_take_over();
