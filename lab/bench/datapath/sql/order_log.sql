-- Logs, in the transactions of the batches, the order of queued and of dispatched executions and counters
-- outside their bounds. Aborts a share of the batches, half of them after their first statements and half at
-- their commit.
CREATE TABLE bench_log (
    seq       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tx        xid8 NOT NULL DEFAULT pg_current_xact_id(),
    kind      text NOT NULL,
    state     bigint,
    execution bigint,
    place     bigint
);
CREATE INDEX bench_log_execution ON bench_log (execution, kind);
CREATE INDEX bench_log_state ON bench_log (state, kind, seq);

CREATE FUNCTION bench_note_wait() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO bench_log (kind, state, execution, place)
    SELECT 'wait', n.state_id, n.execution_id, n.queue_order FROM new_rows n ORDER BY n.queue_order;
    RETURN NULL;
END
$$;
CREATE TRIGGER bench_note_wait AFTER INSERT ON execution_admission_entry
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION bench_note_wait();

CREATE FUNCTION bench_note_go() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO bench_log (kind, state, execution)
    SELECT 'go', h.state_id, h.execution
    FROM unnest(NEW.routing_keys, NEW.bodies) WITH ORDINALITY m (key, body, n)
    JOIN execution_holder h ON h.execution = (convert_from(m.body, 'UTF8')::jsonb #>> '{payload,execution_id}')::bigint
    WHERE m.key LIKE 'execution.dispatch.worker.%'
    ORDER BY m.n;
    RETURN NULL;
END
$$;
CREATE TRIGGER bench_note_go AFTER INSERT ON outbox FOR EACH ROW EXECUTE FUNCTION bench_note_go();

CREATE FUNCTION bench_note_counters() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO bench_log (kind, state)
    SELECT 'above', n.id FROM new_rows n
    WHERE n.active_count > n.max_concurrent OR n.active_count < 0 OR n.queued_count < 0;
    IF random() < current_setting('bench.aborts')::float8 / 2 THEN
        RAISE EXCEPTION 'aborted for the measurement' USING ERRCODE = '58030';
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER bench_note_counters AFTER UPDATE ON execution_admission_state
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION bench_note_counters();

CREATE FUNCTION bench_abort() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('application_name') = 'datapath rounds' AND random() < current_setting('bench.aborts')::float8 / 2 THEN
        RAISE EXCEPTION 'aborted at the commit for the measurement' USING ERRCODE = '58030';
    END IF;
    RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER bench_abort AFTER INSERT ON outbox
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION bench_abort();
