-- A deleted holder counts until its note in lost_holder is worked off: whoever
-- works it off takes it out of the counters.

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
        SELECT state_id, count(*) AS n FROM (
            SELECT admission_state_id AS state_id FROM execution WHERE admission_state_id IS NOT NULL
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
            SELECT worker FROM execution WHERE admission_state_id IS NOT NULL
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

-- +goose Down
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
    DELETE FROM execution_admission_entry q USING execution e
    WHERE e.id = q.execution_id AND (q.status = 'active' OR e.status <> 'requested');

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
