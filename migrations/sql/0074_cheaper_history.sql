-- The history of changed executions costs less. A full join cannot be a nested loop, so
-- that the function needs no settings of the planner for the sessions of the engine, which
-- forbid hash joins; a new result becomes text once for its digest.
--
-- Bodies of messages in the outbox are compressed with lz4 where the server has it.

-- +goose Up
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_execution_history_update() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO execution_history (time, operation, entity_id, entity_ref, changed_fields, old_values, new_values)
    SELECT clock_timestamp(), 'UPDATE', n.id, n.action_ref,
           array_remove(ARRAY[
               CASE WHEN c.status THEN 'status' END, CASE WHEN c.worker THEN 'worker' END,
               CASE WHEN c.started_at THEN 'started_at' END, CASE WHEN c.executor THEN 'executor' END,
               CASE WHEN c.result THEN 'result' END], NULL),
           CASE WHEN c.status THEN jsonb_build_object('status', o.status) ELSE '{}' END
           || CASE WHEN c.worker THEN jsonb_build_object('worker', o.worker) ELSE '{}' END
           || CASE WHEN c.started_at THEN jsonb_build_object('started_at', o.started_at) ELSE '{}' END
           || CASE WHEN c.executor THEN jsonb_build_object('executor', o.executor) ELSE '{}' END
           || CASE WHEN c.result THEN jsonb_build_object('result', attune_result_digest(o.result)) ELSE '{}' END,
           CASE WHEN c.status THEN jsonb_build_object('status', n.status) ELSE '{}' END
           || CASE WHEN c.worker THEN jsonb_build_object('worker', n.worker) ELSE '{}' END
           || CASE WHEN c.started_at THEN jsonb_build_object('started_at', n.started_at) ELSE '{}' END
           || CASE WHEN c.executor THEN jsonb_build_object('executor', n.executor) ELSE '{}' END
           || CASE WHEN c.result THEN jsonb_build_object('result', CASE WHEN n.result IS NOT NULL THEN
                  -- As attune_result_digest has it.
                  (SELECT jsonb_build_object('digest', 'md5:' || md5(t.result), 'size', octet_length(t.result),
                                             'type', jsonb_typeof(n.result))
                   FROM (SELECT n.result::text AS result OFFSET 0) t) END) ELSE '{}' END
    FROM new_rows n
    FULL JOIN old_rows o ON o.id = n.id
    CROSS JOIN LATERAL (SELECT
        n.status IS DISTINCT FROM o.status AS status,
        n.worker IS DISTINCT FROM o.worker AS worker,
        n.started_at IS DISTINCT FROM o.started_at AS started_at,
        n.executor IS DISTINCT FROM o.executor AS executor,
        n.result IS DISTINCT FROM o.result AS result) c
    WHERE c.status OR c.worker OR c.started_at OR c.executor OR c.result;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_settings WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)) THEN
        ALTER TABLE outbox ALTER COLUMN bodies SET COMPRESSION lz4;
    END IF;
END
$$;
-- +goose StatementEnd

-- +goose Down
ALTER TABLE outbox ALTER COLUMN bodies SET COMPRESSION default;
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_execution_history_update() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT SET enable_hashjoin = on SET enable_nestloop = off AS $$
BEGIN
    INSERT INTO execution_history (time, operation, entity_id, entity_ref, changed_fields, old_values, new_values)
    SELECT clock_timestamp(), 'UPDATE', n.id, n.action_ref,
           array_remove(ARRAY[
               CASE WHEN c.status THEN 'status' END, CASE WHEN c.worker THEN 'worker' END,
               CASE WHEN c.started_at THEN 'started_at' END, CASE WHEN c.executor THEN 'executor' END,
               CASE WHEN c.result THEN 'result' END], NULL),
           CASE WHEN c.status THEN jsonb_build_object('status', o.status) ELSE '{}' END
           || CASE WHEN c.worker THEN jsonb_build_object('worker', o.worker) ELSE '{}' END
           || CASE WHEN c.started_at THEN jsonb_build_object('started_at', o.started_at) ELSE '{}' END
           || CASE WHEN c.executor THEN jsonb_build_object('executor', o.executor) ELSE '{}' END
           || CASE WHEN c.result THEN jsonb_build_object('result', attune_result_digest(o.result)) ELSE '{}' END,
           CASE WHEN c.status THEN jsonb_build_object('status', n.status) ELSE '{}' END
           || CASE WHEN c.worker THEN jsonb_build_object('worker', n.worker) ELSE '{}' END
           || CASE WHEN c.started_at THEN jsonb_build_object('started_at', n.started_at) ELSE '{}' END
           || CASE WHEN c.executor THEN jsonb_build_object('executor', n.executor) ELSE '{}' END
           || CASE WHEN c.result THEN jsonb_build_object('result', attune_result_digest(n.result)) ELSE '{}' END
    FROM new_rows n
    JOIN old_rows o ON o.id = n.id
    CROSS JOIN LATERAL (SELECT
        n.status IS DISTINCT FROM o.status AS status,
        n.worker IS DISTINCT FROM o.worker AS worker,
        n.started_at IS DISTINCT FROM o.started_at AS started_at,
        n.executor IS DISTINCT FROM o.executor AS executor,
        n.result IS DISTINCT FROM o.result AS result) c
    WHERE c.status OR c.worker OR c.started_at OR c.executor OR c.result;
    RETURN NULL;
END
$$;
-- +goose StatementEnd
