-- Counters instead of counting: what admission decides by lives in one locked
-- row per queue, one per wider scope and one per worker. A row in
-- execution_admission_entry exists only while its execution waits.

-- +goose Up
-- No transaction holds two busy tables: each part is committed, and a repetition, Down too, passes over it.
ALTER TABLE execution_admission_state
    ADD COLUMN IF NOT EXISTS active_count integer NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS queued_count integer NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS head_order bigint NOT NULL DEFAULT 1,
    ADD COLUMN IF NOT EXISTS unlimited boolean NOT NULL DEFAULT false,
    ADD COLUMN IF NOT EXISTS paused boolean NOT NULL DEFAULT false,
    ADD COLUMN IF NOT EXISTS pause_reason text;
COMMIT AND CHAIN;
ALTER TABLE execution_admission_entry
    ADD COLUMN IF NOT EXISTS lane smallint NOT NULL DEFAULT 0;

-- A queue left behind by another engine may hold two entries at one place:
-- give each queue that does a fresh numbering in the same order.
-- +goose StatementBegin
DO $$
BEGIN
    WITH unclear AS (
        SELECT DISTINCT state_id FROM execution_admission_entry
        GROUP BY state_id, lane, queue_order HAVING count(*) > 1
    ), numbered AS (
        SELECT e.id, row_number() OVER (PARTITION BY e.state_id ORDER BY e.queue_order, e.enqueued_at, e.id) AS place
        FROM execution_admission_entry e JOIN unclear u USING (state_id)
    )
    UPDATE execution_admission_entry e SET queue_order = n.place
    FROM numbered n WHERE n.id = e.id;
    UPDATE execution_admission_state s
    SET next_queue_order = greatest(s.next_queue_order,
        (SELECT max(e.queue_order) + 1 FROM execution_admission_entry e WHERE e.state_id = s.id))
    WHERE EXISTS (SELECT FROM execution_admission_entry e
                  WHERE e.state_id = s.id AND e.queue_order >= s.next_queue_order);
END
$$;
-- +goose StatementEnd
CREATE UNIQUE INDEX IF NOT EXISTS uq_execution_admission_entry_place
    ON execution_admission_entry (state_id, lane, queue_order);

COMMIT AND CHAIN;
CREATE TABLE IF NOT EXISTS admission_blocked (
    state_id bigint PRIMARY KEY REFERENCES execution_admission_state (id) ON DELETE CASCADE,
    ticket   bigint NOT NULL,
    reason   text,
    since    timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);

COMMIT AND CHAIN;
CREATE TABLE IF NOT EXISTS worker_load (
    worker   bigint PRIMARY KEY REFERENCES worker (id) ON DELETE CASCADE,
    assigned integer NOT NULL DEFAULT 0
) WITH (fillfactor = 10);
INSERT INTO worker_load (worker) SELECT id FROM worker ON CONFLICT DO NOTHING;

-- Every worker has its load row from the start, whoever registers it, so that
-- hand-over can lock rows in order without having to make them first.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_worker_load() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO worker_load (worker) VALUES (NEW.id) ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE OR REPLACE TRIGGER attune_worker_load AFTER INSERT ON worker
    FOR EACH ROW EXECUTE FUNCTION attune_worker_load();

COMMIT AND CHAIN;
CREATE TABLE IF NOT EXISTS admission_scope (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind           text NOT NULL CHECK (kind IN ('pack', 'global')),
    scope_key      text NOT NULL DEFAULT '',
    max_concurrent integer NOT NULL,
    active_count   integer NOT NULL DEFAULT 0,
    policy         bigint REFERENCES policy (id) ON DELETE SET NULL,
    created        timestamptz NOT NULL DEFAULT now(),
    updated        timestamptz NOT NULL DEFAULT now(),
    UNIQUE (kind, scope_key)
) WITH (fillfactor = 10);
CREATE OR REPLACE TRIGGER zz_attune_updated BEFORE UPDATE ON admission_scope
    FOR EACH ROW EXECUTE FUNCTION attune_touch();

COMMIT AND CHAIN;
CREATE TABLE IF NOT EXISTS execution_slot (
    execution bigint NOT NULL REFERENCES execution (id) ON DELETE CASCADE,
    scope_id  bigint NOT NULL REFERENCES admission_scope (id) ON DELETE CASCADE,
    created   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (execution, scope_id)
);
CREATE INDEX IF NOT EXISTS idx_execution_slot_scope ON execution_slot (scope_id);

-- +goose Down
-- Foreign keys go first: dropping a table waits for the disk with its locks held.
ALTER TABLE IF EXISTS execution_slot DROP CONSTRAINT IF EXISTS execution_slot_execution_fkey;
COMMIT AND CHAIN;
DROP TABLE IF EXISTS execution_slot;
COMMIT AND CHAIN;
DROP TABLE IF EXISTS admission_scope;
COMMIT AND CHAIN;
DROP FUNCTION IF EXISTS attune_worker_load() CASCADE;
ALTER TABLE IF EXISTS worker_load DROP CONSTRAINT IF EXISTS worker_load_worker_fkey;
COMMIT AND CHAIN;
DROP TABLE IF EXISTS worker_load;
COMMIT AND CHAIN;
ALTER TABLE IF EXISTS admission_blocked DROP CONSTRAINT IF EXISTS admission_blocked_state_id_fkey;
COMMIT AND CHAIN;
DROP TABLE IF EXISTS admission_blocked;
COMMIT AND CHAIN;
DROP INDEX IF EXISTS uq_execution_admission_entry_place;
ALTER TABLE execution_admission_entry DROP COLUMN IF EXISTS lane;
COMMIT AND CHAIN;
ALTER TABLE execution_admission_state
    DROP COLUMN IF EXISTS pause_reason, DROP COLUMN IF EXISTS paused, DROP COLUMN IF EXISTS unlimited,
    DROP COLUMN IF EXISTS head_order, DROP COLUMN IF EXISTS queued_count, DROP COLUMN IF EXISTS active_count;
