-- A slot of a queue is a row of its own in place of a column of the execution: the table
-- has as many rows as executions hold slots, however many have ended.

-- +goose Up
-- No transaction holds two busy tables: each part is committed, and a repetition, Down too, passes over it.
-- There are no foreign keys: each grant would pay for looking them up. The triggers below keep
-- the rows right when another program deletes an execution or a worker.
CREATE TABLE IF NOT EXISTS execution_holder (
    execution  bigint PRIMARY KEY,
    state_id   bigint NOT NULL,
    worker     bigint,
    attempt    integer NOT NULL,
    granted_at timestamptz NOT NULL
) WITH (autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0,
        autovacuum_vacuum_insert_threshold = 5000, autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX IF NOT EXISTS attune_execution_holder_state ON execution_holder (state_id, granted_at);
CREATE INDEX IF NOT EXISTS attune_execution_holder_worker ON execution_holder (worker);

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_holder_without_worker() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE execution_holder SET worker = NULL WHERE worker = OLD.id;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

COMMIT AND CHAIN;
CREATE OR REPLACE TRIGGER attune_holder_without_worker AFTER DELETE ON worker
    FOR EACH ROW EXECUTE FUNCTION attune_holder_without_worker();

COMMIT AND CHAIN;
-- While the column is copied, replicas of the release before may go on: what they write
-- to the column is written to the table too.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_copy_holder() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF TG_OP <> 'DELETE' AND NEW.admission_state_id IS NOT NULL THEN
        INSERT INTO execution_holder AS h (execution, state_id, worker, attempt, granted_at)
        VALUES (NEW.id, NEW.admission_state_id, NEW.worker, NEW.attempt, coalesce(NEW.admitted_at, NEW.updated))
        ON CONFLICT (execution) DO UPDATE
        SET state_id = excluded.state_id, worker = excluded.worker, attempt = excluded.attempt, granted_at = excluded.granted_at;
    ELSIF TG_OP <> 'INSERT' AND OLD.admission_state_id IS NOT NULL THEN
        DELETE FROM execution_holder WHERE execution = OLD.id;
    END IF;
    RETURN NULL;
END
$$;
-- +goose StatementEnd
-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'execution'::regclass AND attname = 'admission_state_id' AND NOT attisdropped) THEN
        CREATE OR REPLACE TRIGGER attune_copy_holder
            AFTER INSERT OR DELETE OR UPDATE OF admission_state_id, worker, attempt ON execution
            FOR EACH ROW EXECUTE FUNCTION attune_copy_holder();
    END IF;
END
$$;
-- +goose StatementEnd

COMMIT AND CHAIN;
-- The table is read without locks; then the rows that were found are locked and read again.
-- A repetition finds the mark and does not read a large table anew.
-- +goose StatementBegin
DO $$
DECLARE
    found bigint[];
BEGIN
    IF obj_description('execution_holder'::regclass, 'pg_class') IS DISTINCT FROM 'copied'
       AND EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'execution'::regclass AND attname = 'admission_state_id' AND NOT attisdropped) THEN
        found := ARRAY(SELECT e.id FROM execution e WHERE e.admission_state_id IS NOT NULL);
        INSERT INTO execution_holder (execution, state_id, worker, attempt, granted_at)
        SELECT l.id, l.admission_state_id, l.worker, l.attempt, coalesce(l.admitted_at, l.updated)
        FROM (SELECT e.id, e.admission_state_id, e.worker, e.attempt, e.admitted_at, e.updated FROM execution e
              WHERE e.id = ANY (found) AND e.admission_state_id IS NOT NULL ORDER BY e.id FOR SHARE) l
        ON CONFLICT (execution) DO NOTHING;
        COMMENT ON TABLE execution_holder IS 'copied';
    END IF;
END
$$;
-- +goose StatementEnd

COMMIT AND CHAIN;
-- The column goes together with what reads it. A replica of the release before fails from
-- here on, and decides nothing.
DROP TRIGGER IF EXISTS attune_copy_holder ON execution;
DROP FUNCTION IF EXISTS attune_copy_holder();
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_note_lost_holder() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    waited bigint := (SELECT q.state_id FROM execution_admission_entry q WHERE q.execution_id = OLD.id);
    held   execution_holder;
BEGIN
    DELETE FROM execution_holder h WHERE h.execution = OLD.id RETURNING h.* INTO held;
    IF held.execution IS NOT NULL OR waited IS NOT NULL THEN
        INSERT INTO lost_holder (execution, state_id, waited_in, worker, scopes)
        VALUES (OLD.id, held.state_id, waited, held.worker,
                ARRAY(SELECT s.scope_id FROM execution_slot s WHERE s.execution = OLD.id ORDER BY 1));
    END IF;
    RETURN OLD;
END
$$;
-- +goose StatementEnd
CREATE OR REPLACE TRIGGER attune_note_lost_holder BEFORE DELETE ON execution
    FOR EACH ROW EXECUTE FUNCTION attune_note_lost_holder();
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
ALTER TABLE execution DROP COLUMN IF EXISTS admission_state_id;
COMMENT ON TABLE execution_holder IS NULL;

-- +goose Down
DROP TRIGGER IF EXISTS attune_holder_without_worker ON worker;
DROP FUNCTION IF EXISTS attune_holder_without_worker();
COMMIT AND CHAIN;
DROP TRIGGER IF EXISTS attune_copy_holder ON execution;
DROP FUNCTION IF EXISTS attune_copy_holder();
COMMIT AND CHAIN;
-- +goose StatementBegin
DO $$
DECLARE
    one     name;
    enabled name[] := ARRAY(SELECT t.tgname FROM pg_trigger t
                            WHERE t.tgrelid = 'execution'::regclass AND NOT t.tgisinternal AND t.tgenabled = 'O');
BEGIN
    IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'execution'::regclass AND attname = 'admission_state_id' AND NOT attisdropped) THEN
        RETURN;
    END IF;
    LOCK TABLE execution, execution_holder IN ACCESS EXCLUSIVE MODE; -- in the order of batches
    ALTER TABLE execution ADD COLUMN admission_state_id bigint;
    FOREACH one IN ARRAY enabled LOOP -- updated is the fence of dispatches on their way
        EXECUTE format('ALTER TABLE execution DISABLE TRIGGER %I', one);
    END LOOP;
    UPDATE execution e SET admission_state_id = h.state_id FROM execution_holder h WHERE e.id = ANY (ARRAY[h.execution]);
    FOREACH one IN ARRAY enabled LOOP
        EXECUTE format('ALTER TABLE execution ENABLE TRIGGER %I', one);
    END LOOP;
    -- Dropping a table waits for the disk with its locks held. Under this name nothing writes to it.
    ALTER TABLE execution_holder RENAME TO execution_holder_before;
END
$$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_note_lost_holder() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    waited bigint := (SELECT q.state_id FROM execution_admission_entry q WHERE q.execution_id = OLD.id);
BEGIN
    IF OLD.admission_state_id IS NOT NULL OR waited IS NOT NULL THEN
        INSERT INTO lost_holder (execution, state_id, waited_in, worker, scopes)
        VALUES (OLD.id, OLD.admission_state_id, waited, OLD.worker,
                ARRAY(SELECT s.scope_id FROM execution_slot s WHERE s.execution = OLD.id ORDER BY 1));
    END IF;
    RETURN OLD;
END
$$;
-- +goose StatementEnd
CREATE OR REPLACE TRIGGER attune_note_lost_holder BEFORE DELETE ON execution
    FOR EACH ROW WHEN (OLD.admission_state_id IS NOT NULL OR OLD.status = 'requested' OR OLD.admitted_at IS NULL)
    EXECUTE FUNCTION attune_note_lost_holder();
COMMIT AND CHAIN;
DROP TABLE IF EXISTS execution_holder, execution_holder_before;
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
