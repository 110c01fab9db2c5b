-- Under load: brief lock. Adds columns without rewriting to policy and the admission tables, a unique index to the queue
-- of waiting executions, and triggers to policy, action, runtime and execution.
--
-- Admission by several limits at once. What it decides by is in one locked row for each queue and each shared
-- limit. A row of execution_admission_entry exists only while its execution waits.

-- +goose Up
-- No transaction holds two busy tables: each part is committed, and a repetition, Down too, passes over it.
ALTER TABLE policy
    ADD COLUMN IF NOT EXISTS kind text NOT NULL DEFAULT 'concurrency'
        CHECK (kind IN ('concurrency', 'rate', 'quota')),
    ADD COLUMN IF NOT EXISTS window_seconds integer CHECK (window_seconds > 0),
    ADD COLUMN IF NOT EXISTS burst integer CHECK (burst > 0),
    ADD COLUMN IF NOT EXISTS max_queue_length integer CHECK (max_queue_length > 0),
    ADD COLUMN IF NOT EXISTS queue_timeout_seconds integer CHECK (queue_timeout_seconds > 0),
    ADD COLUMN IF NOT EXISTS retry_place text CHECK (retry_place IN ('back', 'front')),
    ADD COLUMN IF NOT EXISTS adaptive_min integer CHECK (adaptive_min > 0),
    ADD COLUMN IF NOT EXISTS adaptive_latency_ms integer CHECK (adaptive_latency_ms > 0);
ALTER TABLE policy DROP CONSTRAINT IF EXISTS attune_policy_window;
ALTER TABLE policy ADD CONSTRAINT attune_policy_window
    CHECK ((kind = 'concurrency') = (window_seconds IS NULL)) NOT VALID;
CREATE INDEX IF NOT EXISTS attune_policy_pack ON policy (pack) WHERE action IS NULL;

COMMIT AND CHAIN;
-- queued_count is the total, and head_order the head of the normal lane. The limit in force is max_concurrent;
-- its sources stand beside it.
ALTER TABLE execution_admission_state
    ADD COLUMN IF NOT EXISTS active_count integer NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS queued_count integer NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS head_order bigint NOT NULL DEFAULT 1,
    ADD COLUMN IF NOT EXISTS unlimited boolean NOT NULL DEFAULT false,
    ADD COLUMN IF NOT EXISTS paused boolean NOT NULL DEFAULT false,
    ADD COLUMN IF NOT EXISTS pause_reason text,
    ADD COLUMN IF NOT EXISTS queued_high integer NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS queued_low integer NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS head_high bigint NOT NULL DEFAULT 1,
    ADD COLUMN IF NOT EXISTS head_low bigint NOT NULL DEFAULT 1,
    ADD COLUMN IF NOT EXISTS front_order bigint NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS lane_streak smallint NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS limit_override integer CHECK (limit_override > 0),
    ADD COLUMN IF NOT EXISTS max_queued integer,
    ADD COLUMN IF NOT EXISTS queue_timeout_seconds integer,
    ADD COLUMN IF NOT EXISTS adaptive_limit double precision,
    ADD COLUMN IF NOT EXISTS adaptive_at timestamptz,
    ADD COLUMN IF NOT EXISTS paused_by text,
    ADD COLUMN IF NOT EXISTS paused_at timestamptz,
    ADD COLUMN IF NOT EXISTS resumed_at timestamptz,
    SET (fillfactor = 10, autovacuum_vacuum_threshold = 50,
         autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);
COMMIT AND CHAIN;
ALTER TABLE queue_stats SET (fillfactor = 10, autovacuum_vacuum_threshold = 50,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);

COMMIT AND CHAIN;
ALTER TABLE execution_admission_entry
    ADD COLUMN IF NOT EXISTS lane smallint NOT NULL DEFAULT 0,
    SET (autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0,
         autovacuum_vacuum_insert_threshold = 5000, autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);
-- A queue of another engine may have two entries at one place: it gets new numbers in the same order.
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
-- admission_scope is a limit that queues share. Kinds pack and global count slots, rate has the time of the next
-- start, quota the number of starts in its period. A limit that was out of force for a while counts its running
-- executions again: counted_at is the number of changes of policies at its last count.
CREATE TABLE IF NOT EXISTS admission_scope (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind           text NOT NULL CHECK (kind IN ('pack', 'global', 'rate', 'quota')),
    scope_key      text NOT NULL DEFAULT '',
    max_concurrent integer NOT NULL,
    active_count   integer NOT NULL DEFAULT 0,
    policy         bigint REFERENCES policy (id) ON DELETE SET NULL,
    created        timestamptz NOT NULL DEFAULT now(),
    updated        timestamptz NOT NULL DEFAULT now(),
    policy_ref     text NOT NULL DEFAULT '',
    window_seconds integer,
    burst          integer,
    next_at        timestamptz,
    period_start   timestamptz,
    used           integer NOT NULL DEFAULT 0,
    counted_at     bigint NOT NULL DEFAULT 0,
    UNIQUE (kind, scope_key)
) WITH (fillfactor = 10);
CREATE OR REPLACE TRIGGER zz_attune_updated BEFORE UPDATE ON admission_scope
    FOR EACH ROW EXECUTE FUNCTION attune_touch();

COMMIT AND CHAIN;
-- admission_blocked has the queues whose head waits for a shared limit or a worker. scope_id is the limit, or NULL
-- for workers; need the kind of worker; until the time from which a try can succeed, where one is known. Of the
-- queues that wait for the same time one has wake, and starts a batch then.
CREATE TABLE IF NOT EXISTS admission_blocked (
    state_id bigint PRIMARY KEY REFERENCES execution_admission_state (id) ON DELETE CASCADE,
    ticket   bigint NOT NULL,
    reason   text,
    since    timestamptz NOT NULL DEFAULT now(),
    scope_id bigint REFERENCES admission_scope (id) ON DELETE SET NULL,
    until    timestamptz,
    need     text NOT NULL DEFAULT '',
    wake     timestamptz
) WITH (fillfactor = 50);
CREATE INDEX IF NOT EXISTS attune_admission_blocked_ticket ON admission_blocked (ticket);
CREATE INDEX IF NOT EXISTS attune_admission_blocked_scope ON admission_blocked (scope_id, ticket);
CREATE INDEX IF NOT EXISTS attune_admission_blocked_need ON admission_blocked (need, ticket) WHERE scope_id IS NULL;
CREATE INDEX IF NOT EXISTS attune_admission_blocked_wake ON admission_blocked (wake) WHERE wake IS NOT NULL;

COMMIT AND CHAIN;
CREATE TABLE IF NOT EXISTS execution_slot (
    execution bigint NOT NULL REFERENCES execution (id) ON DELETE CASCADE,
    scope_id  bigint NOT NULL REFERENCES admission_scope (id) ON DELETE CASCADE,
    created   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (execution, scope_id)
);
CREATE INDEX IF NOT EXISTS idx_execution_slot_scope ON execution_slot (scope_id);

-- execution_holder has a row for each slot of a queue. It has no foreign keys: each grant would pay for looking them
-- up. Triggers keep the rows right when another program deletes an execution or a worker.
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

-- lost_holder has the deleted executions that held slots or waited, from which the engine releases them.
CREATE TABLE IF NOT EXISTS lost_holder (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    execution bigint NOT NULL,
    state_id  bigint, -- whose slot it held
    waited_in bigint, -- where it waited
    worker    bigint,
    scopes    bigint[] NOT NULL DEFAULT '{}',
    at        timestamptz NOT NULL DEFAULT now()
);
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
COMMIT AND CHAIN;
-- admission_epoch counts the changes to actions, their runtimes and their limits, and among them those of policies. A
-- batch reads it under its locks and decides by newer rules if it has changed; what else caches actions compares it.
CREATE TABLE IF NOT EXISTS admission_epoch (
    one      boolean PRIMARY KEY DEFAULT true CHECK (one),
    epoch    bigint NOT NULL DEFAULT 1,
    policies bigint NOT NULL DEFAULT 1
) WITH (fillfactor = 10);
INSERT INTO admission_epoch DEFAULT VALUES ON CONFLICT DO NOTHING;
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_rules_changed() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE admission_epoch SET epoch = epoch + 1;
    RETURN NULL;
END
$$;
CREATE OR REPLACE FUNCTION attune_policies_changed() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE admission_epoch SET epoch = epoch + 1, policies = policies + 1;
    RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE OR REPLACE TRIGGER attune_rules_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON policy
    FOR EACH STATEMENT EXECUTE FUNCTION attune_policies_changed();
COMMIT AND CHAIN;
CREATE OR REPLACE TRIGGER attune_rules_changed AFTER UPDATE OR DELETE OR TRUNCATE ON action
    FOR EACH STATEMENT EXECUTE FUNCTION attune_rules_changed();
CREATE OR REPLACE TRIGGER attune_pack_changed AFTER UPDATE OF pack ON action
    FOR EACH ROW WHEN (OLD.pack IS DISTINCT FROM NEW.pack) EXECUTE FUNCTION attune_policies_changed();
COMMIT AND CHAIN;
CREATE OR REPLACE TRIGGER attune_rules_changed AFTER UPDATE ON runtime
    FOR EACH STATEMENT EXECUTE FUNCTION attune_rules_changed();
CREATE OR REPLACE TRIGGER attune_rules_changed AFTER INSERT OR UPDATE OR DELETE ON runtime_version
    FOR EACH STATEMENT EXECUTE FUNCTION attune_rules_changed();
COMMIT AND CHAIN;
-- attune_blocked returns the queues to try in a batch besides its own: of each kind of worker the oldest; of each
-- shared limit with room the oldest, as many as there is room for and a few more, in case some of them wait for
-- something else as well; and those whose time has come. maxima is the limit of each scope by the policies (-1: by
-- its row), releases the number of its slots that the batch releases.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_blocked(most integer, scopes bigint[], maxima bigint[], releases bigint[]) RETURNS bigint[]
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
DECLARE
    moment timestamptz := clock_timestamp(); -- a value, so that it can be looked up by index
    found  bigint[];
BEGIN
    IF NOT EXISTS (SELECT FROM admission_blocked) THEN
        RETURN '{}';
    END IF;
    found := ARRAY(
        WITH RECURSIVE kinds (need) AS (
            (SELECT b.need FROM admission_blocked b WHERE b.scope_id IS NULL ORDER BY b.need LIMIT 1)
            UNION ALL
            SELECT (SELECT b.need FROM admission_blocked b WHERE b.scope_id IS NULL AND b.need > k.need ORDER BY b.need LIMIT 1)
            FROM kinds k WHERE k.need IS NOT NULL
        )
        SELECT b.state_id
        FROM (SELECT need, count(*) OVER () AS n FROM kinds WHERE need IS NOT NULL) k
        CROSS JOIN LATERAL (
            SELECT q.state_id FROM admission_blocked q WHERE q.scope_id IS NULL AND q.need = k.need ORDER BY q.ticket
            LIMIT greatest(most / k.n, 8)) b);
    found := found || ARRAY(
        SELECT b.state_id FROM admission_blocked b WHERE b.wake <= moment ORDER BY b.wake LIMIT most);
    IF cardinality(scopes) > 0 THEN
        found := found || ARRAY(
            SELECT b.state_id
            FROM unnest(scopes, maxima, releases) AS r (scope_id, allowed, back)
            CROSS JOIN LATERAL (
                SELECT t.*, CASE WHEN r.allowed < 0 THEN t.max_concurrent ELSE r.allowed END AS allowed
                FROM admission_scope t WHERE t.id = r.scope_id OFFSET 0) t
            CROSS JOIN LATERAL (
                SELECT CASE t.kind
                    WHEN 'rate' THEN CASE WHEN t.next_at IS NULL OR t.next_at - make_interval(
                        secs => least((coalesce(t.burst, 1) - 1) * (t.window_seconds::float8 / greatest(t.max_concurrent, 1)), 1e9)) <= moment
                        THEN coalesce(t.burst, 1) ELSE 0 END
                    WHEN 'quota' THEN t.allowed
                        - CASE WHEN t.period_start + make_interval(secs => t.window_seconds) > moment THEN t.used ELSE 0 END
                    ELSE t.allowed + r.back - t.active_count END AS room) s
            CROSS JOIN LATERAL (
                SELECT q.state_id FROM admission_blocked q WHERE q.scope_id = t.id ORDER BY q.ticket
                LIMIT CASE WHEN s.room > 0 THEN least(s.room + 8, most) ELSE 0 END) b);
    END IF;
    RETURN found;
END
$$;

-- attune_queue_shape returns the parameters by which the executions of an action have separate queues: those of its
-- own concurrency policy; without one, those of all limits it shares, so that a group that waits delays no other.
-- The engine composes the same in code.
CREATE OR REPLACE FUNCTION attune_queue_shape(action_id bigint) RETURNS text[]
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
DECLARE
    own policy;
BEGIN
    SELECT p.* INTO own FROM policy p WHERE p.action = action_id AND p.kind = 'concurrency'
    ORDER BY p.created DESC, p.id DESC LIMIT 1;
    RETURN ARRAY(
        SELECT DISTINCT k COLLATE "C"
        FROM (
            SELECT unnest(own.parameters) AS k
            UNION ALL
            SELECT unnest(p.parameters) FROM policy p
            WHERE own.id IS NULL AND p.action = action_id AND p.kind <> 'concurrency'
            UNION ALL
            SELECT unnest(p.parameters) FROM policy p JOIN action a ON a.id = action_id
            WHERE own.id IS NULL AND p.action IS NULL AND (p.pack = a.pack OR p.pack IS NULL)
              AND (p.kind <> 'concurrency' OR p.id = (
                  SELECT n.id FROM policy n
                  WHERE n.action IS NULL AND n.pack IS NOT DISTINCT FROM p.pack AND n.kind = 'concurrency'
                  ORDER BY n.created DESC, n.id DESC LIMIT 1))
        ) u
        ORDER BY 1);
END
$$;

-- attune_handed_to returns the executions that were handed to a worker and may not have ended. The published
-- executor hands over without a slot what no policy limits.
CREATE OR REPLACE FUNCTION attune_handed_to(handed_to bigint) RETURNS SETOF bigint
LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
    SELECT h.execution FROM execution_holder h WHERE h.worker = handed_to
    UNION
    SELECT e.id FROM execution e
    WHERE EXISTS (SELECT FROM attune_schema_origin o WHERE o.origin = 'adopted')
      AND e.worker = handed_to AND e.status IN ('scheduled', 'running', 'canceling')
$$;
-- +goose StatementEnd

-- +goose Down
-- Foreign keys go first: dropping a table waits for the disk with its locks held.
DROP TRIGGER IF EXISTS attune_rules_changed ON runtime_version;
DROP TRIGGER IF EXISTS attune_rules_changed ON runtime;
COMMIT AND CHAIN;
DROP TRIGGER IF EXISTS attune_pack_changed ON action;
DROP TRIGGER IF EXISTS attune_rules_changed ON action;
COMMIT AND CHAIN;
DROP FUNCTION IF EXISTS attune_note_lost_holder() CASCADE;
ALTER TABLE IF EXISTS execution_slot DROP CONSTRAINT IF EXISTS execution_slot_execution_fkey;
COMMIT AND CHAIN;
ALTER TABLE IF EXISTS admission_blocked DROP CONSTRAINT IF EXISTS admission_blocked_state_id_fkey;
ALTER TABLE execution_admission_state
    DROP COLUMN IF EXISTS resumed_at, DROP COLUMN IF EXISTS paused_at, DROP COLUMN IF EXISTS paused_by,
    DROP COLUMN IF EXISTS adaptive_at, DROP COLUMN IF EXISTS adaptive_limit, DROP COLUMN IF EXISTS queue_timeout_seconds,
    DROP COLUMN IF EXISTS max_queued, DROP COLUMN IF EXISTS limit_override, DROP COLUMN IF EXISTS lane_streak,
    DROP COLUMN IF EXISTS front_order, DROP COLUMN IF EXISTS head_low, DROP COLUMN IF EXISTS head_high,
    DROP COLUMN IF EXISTS queued_low, DROP COLUMN IF EXISTS queued_high, DROP COLUMN IF EXISTS pause_reason,
    DROP COLUMN IF EXISTS paused, DROP COLUMN IF EXISTS unlimited, DROP COLUMN IF EXISTS head_order,
    DROP COLUMN IF EXISTS queued_count, DROP COLUMN IF EXISTS active_count,
    RESET (fillfactor, autovacuum_vacuum_threshold, autovacuum_vacuum_scale_factor, autovacuum_vacuum_cost_delay);
COMMIT AND CHAIN;
ALTER TABLE queue_stats
    RESET (fillfactor, autovacuum_vacuum_threshold, autovacuum_vacuum_scale_factor, autovacuum_vacuum_cost_delay);
COMMIT AND CHAIN;
DROP INDEX IF EXISTS uq_execution_admission_entry_place;
ALTER TABLE execution_admission_entry DROP COLUMN IF EXISTS lane,
    RESET (autovacuum_vacuum_threshold, autovacuum_vacuum_scale_factor, autovacuum_vacuum_insert_threshold,
           autovacuum_vacuum_insert_scale_factor, autovacuum_vacuum_cost_delay);
COMMIT AND CHAIN;
DROP TRIGGER IF EXISTS attune_rules_changed ON policy;
-- The rows go with the column that tells them apart: without it they would limit concurrency.
-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'policy'::regclass AND attname = 'kind' AND NOT attisdropped) THEN
        DELETE FROM policy WHERE kind <> 'concurrency';
    END IF;
END
$$;
-- +goose StatementEnd
DROP INDEX IF EXISTS attune_policy_pack;
ALTER TABLE policy DROP CONSTRAINT IF EXISTS attune_policy_window,
    DROP COLUMN IF EXISTS adaptive_latency_ms, DROP COLUMN IF EXISTS adaptive_min, DROP COLUMN IF EXISTS retry_place,
    DROP COLUMN IF EXISTS queue_timeout_seconds, DROP COLUMN IF EXISTS max_queue_length, DROP COLUMN IF EXISTS burst,
    DROP COLUMN IF EXISTS window_seconds, DROP COLUMN IF EXISTS kind;
ALTER TABLE IF EXISTS admission_scope DROP CONSTRAINT IF EXISTS admission_scope_policy_fkey;
COMMIT AND CHAIN;
DROP FUNCTION IF EXISTS attune_handed_to(bigint), attune_queue_shape(bigint),
    attune_blocked(integer, bigint[], bigint[], bigint[]), attune_policies_changed(), attune_rules_changed();
DROP TABLE IF EXISTS admission_epoch, lost_holder, execution_holder, execution_slot, admission_blocked, admission_scope;
