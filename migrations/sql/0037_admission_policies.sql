-- What admission by several limits at once needs: kinds of policies besides
-- concurrency, lanes, an operator's word on a queue, counters that are shared by
-- queues, and the certainty that a deleted execution gives its slots back.

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
-- priority: 1 high, 0 or NULL normal, -1 low. admitted_at: when it took its
-- slot, so that the wait of an execution can be told from its run.
ALTER TABLE execution
    ADD COLUMN IF NOT EXISTS priority smallint,
    ADD COLUMN IF NOT EXISTS admitted_at timestamptz;

COMMIT AND CHAIN;
-- queued_count and head_order stay the total and the normal lane's head. The
-- limit in force is max_concurrent; where it comes from stands beside it.
ALTER TABLE execution_admission_state
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
    ADD COLUMN IF NOT EXISTS resumed_at timestamptz;

COMMIT AND CHAIN;
-- kind pack and global count slots; rate remembers when the next start is due,
-- quota how many started in its period.
ALTER TABLE admission_scope DROP CONSTRAINT IF EXISTS admission_scope_kind_check;
ALTER TABLE admission_scope ADD CONSTRAINT admission_scope_kind_check
    CHECK (kind IN ('pack', 'global', 'rate', 'quota'));
ALTER TABLE admission_scope
    ADD COLUMN IF NOT EXISTS policy_ref text NOT NULL DEFAULT '',
    ADD COLUMN IF NOT EXISTS window_seconds integer,
    ADD COLUMN IF NOT EXISTS burst integer,
    ADD COLUMN IF NOT EXISTS next_at timestamptz,
    ADD COLUMN IF NOT EXISTS period_start timestamptz,
    ADD COLUMN IF NOT EXISTS used integer NOT NULL DEFAULT 0;

-- What keeps the head: the scope, or NULL for the workers; until: when trying
-- again is worth it, where a time is known.
ALTER TABLE admission_blocked
    ADD COLUMN IF NOT EXISTS scope_id bigint REFERENCES admission_scope (id) ON DELETE SET NULL,
    ADD COLUMN IF NOT EXISTS until timestamptz;
CREATE INDEX IF NOT EXISTS attune_admission_blocked_scope ON admission_blocked (scope_id, ticket);
CREATE INDEX IF NOT EXISTS attune_admission_blocked_until ON admission_blocked (until) WHERE until IS NOT NULL;

-- attune_blocked is the queues worth trying in a round besides those it is
-- about: those that wait for a worker, oldest first; of each shared limit with
-- room those that wait for it, as many as there is room for and a few more, in
-- case some of them wait for something else as well; and those whose time has
-- come. maxima is what the policies say of each scope now (-1: what its row
-- says), releases how many of its slots the round gives back.
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
    found := ARRAY(SELECT b.state_id FROM admission_blocked b WHERE b.scope_id IS NULL ORDER BY b.ticket LIMIT most);
    found := found || ARRAY(
        SELECT b.state_id FROM admission_blocked b WHERE b.until <= moment ORDER BY b.until LIMIT most);
    IF cardinality(scopes) > 0 THEN
        found := found || ARRAY(
            SELECT b.state_id
            FROM unnest(scopes, maxima, releases) AS r (scope_id, allowed, back)
            CROSS JOIN LATERAL (
                SELECT t.id, CASE WHEN r.allowed < 0 THEN t.max_concurrent ELSE r.allowed END + r.back - t.active_count AS room
                FROM admission_scope t WHERE t.id = r.scope_id OFFSET 0) s
            CROSS JOIN LATERAL (
                SELECT q.state_id FROM admission_blocked q WHERE q.scope_id = s.id ORDER BY q.ticket
                LIMIT CASE WHEN s.room > 0 THEN least(s.room + 8, most) ELSE 0 END) b);
    END IF;
    RETURN found;
END
$$;
-- +goose StatementEnd

-- The number of changes to what the limits of an action depend on. A round
-- reads it under its locks and decides by newer rules if it has moved.
CREATE TABLE IF NOT EXISTS admission_epoch (
    one   boolean PRIMARY KEY DEFAULT true CHECK (one),
    epoch bigint NOT NULL DEFAULT 1
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
-- +goose StatementEnd
CREATE OR REPLACE TRIGGER attune_rules_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON policy
    FOR EACH STATEMENT EXECUTE FUNCTION attune_rules_changed();
COMMIT AND CHAIN;
CREATE OR REPLACE TRIGGER attune_rules_changed AFTER UPDATE OR DELETE OR TRUNCATE ON action
    FOR EACH STATEMENT EXECUTE FUNCTION attune_rules_changed();
COMMIT AND CHAIN;
CREATE OR REPLACE TRIGGER attune_rules_changed AFTER UPDATE ON runtime
    FOR EACH STATEMENT EXECUTE FUNCTION attune_rules_changed();

COMMIT AND CHAIN;
-- Whoever deletes an execution that holds slots or waits leaves a note, from
-- which the engine gives back what it held (upstream 19, 20).
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
    FOR EACH ROW WHEN (OLD.admission_state_id IS NOT NULL OR OLD.status = 'requested')
    EXECUTE FUNCTION attune_note_lost_holder();

-- +goose Down
DROP FUNCTION IF EXISTS attune_note_lost_holder() CASCADE;
DROP TABLE IF EXISTS lost_holder;
COMMIT AND CHAIN;
DROP TRIGGER IF EXISTS attune_rules_changed ON action;
COMMIT AND CHAIN;
DROP TRIGGER IF EXISTS attune_rules_changed ON runtime;
COMMIT AND CHAIN;
DROP TRIGGER IF EXISTS attune_rules_changed ON policy;
DROP FUNCTION IF EXISTS attune_rules_changed();
DROP TABLE IF EXISTS admission_epoch;
DROP FUNCTION IF EXISTS attune_blocked(integer, bigint[], bigint[], bigint[]);
DROP INDEX IF EXISTS attune_admission_blocked_until;
DROP INDEX IF EXISTS attune_admission_blocked_scope;
ALTER TABLE admission_blocked DROP COLUMN IF EXISTS until, DROP COLUMN IF EXISTS scope_id;
ALTER TABLE admission_scope
    DROP COLUMN IF EXISTS used, DROP COLUMN IF EXISTS period_start, DROP COLUMN IF EXISTS next_at, DROP COLUMN IF EXISTS burst,
    DROP COLUMN IF EXISTS window_seconds, DROP COLUMN IF EXISTS policy_ref;
DELETE FROM admission_scope WHERE kind NOT IN ('pack', 'global');
ALTER TABLE admission_scope DROP CONSTRAINT IF EXISTS admission_scope_kind_check;
ALTER TABLE admission_scope ADD CONSTRAINT admission_scope_kind_check CHECK (kind IN ('pack', 'global'));
COMMIT AND CHAIN;
ALTER TABLE execution_admission_state
    DROP COLUMN IF EXISTS resumed_at, DROP COLUMN IF EXISTS paused_at, DROP COLUMN IF EXISTS paused_by,
    DROP COLUMN IF EXISTS adaptive_at, DROP COLUMN IF EXISTS adaptive_limit, DROP COLUMN IF EXISTS queue_timeout_seconds,
    DROP COLUMN IF EXISTS max_queued, DROP COLUMN IF EXISTS limit_override, DROP COLUMN IF EXISTS lane_streak,
    DROP COLUMN IF EXISTS front_order, DROP COLUMN IF EXISTS head_low, DROP COLUMN IF EXISTS head_high,
    DROP COLUMN IF EXISTS queued_low, DROP COLUMN IF EXISTS queued_high;
COMMIT AND CHAIN;
ALTER TABLE execution DROP COLUMN IF EXISTS admitted_at, DROP COLUMN IF EXISTS priority;
COMMIT AND CHAIN;
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
ALTER TABLE policy DROP CONSTRAINT IF EXISTS attune_policy_window;
ALTER TABLE policy
    DROP COLUMN IF EXISTS adaptive_latency_ms, DROP COLUMN IF EXISTS adaptive_min, DROP COLUMN IF EXISTS retry_place,
    DROP COLUMN IF EXISTS queue_timeout_seconds, DROP COLUMN IF EXISTS max_queue_length, DROP COLUMN IF EXISTS burst,
    DROP COLUMN IF EXISTS window_seconds, DROP COLUMN IF EXISTS kind;
