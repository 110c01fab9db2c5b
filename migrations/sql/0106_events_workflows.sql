-- Under load: brief lock. Adds columns without rewriting to enforcement, inquiry and the workflow tables, and a trigger
-- to inquiry.
--
-- Matched events, the progress of workflows, and the answers to inquiries.

-- +goose Up
-- No transaction holds two busy tables: each part is committed, and a repetition, Down too, passes over it.
-- error is why a matching rule has no execution; note lists paths of its parameters that led to nothing.
ALTER TABLE enforcement
    ADD COLUMN IF NOT EXISTS error text,
    ADD COLUMN IF NOT EXISTS note text;

COMMIT AND CHAIN;
-- event_matched has a row for each event that was compared with the rules, written in the transaction that creates its
-- enforcements: the number of compared rules, of matching ones, and the errors of conditions.
CREATE TABLE IF NOT EXISTS event_matched (
    event    bigint PRIMARY KEY,
    rules    integer NOT NULL DEFAULT 0,
    matched  integer NOT NULL DEFAULT 0,
    failures text[] NOT NULL DEFAULT '{}',
    at       timestamptz NOT NULL DEFAULT now()
);
-- since is when this schema began: older events without such a row do not fire.
CREATE TABLE IF NOT EXISTS event_matching (
    one   boolean PRIMARY KEY DEFAULT true CHECK (one),
    since timestamptz NOT NULL DEFAULT now()
);
INSERT INTO event_matching DEFAULT VALUES ON CONFLICT DO NOTHING;
-- event_origin has the execution that emitted an event, and the number of rules that led to it: event, rule, execution,
-- event, and so on. An event without a row has a depth of 0.
CREATE TABLE IF NOT EXISTS event_origin (
    event     bigint PRIMARY KEY,
    execution bigint NOT NULL,
    depth     integer NOT NULL
);

COMMIT AND CHAIN;
-- workflow_source is the definition with which workflows were started, also if workflow_definition changes. Equal ones
-- are kept once. used is the time of the last start.
CREATE TABLE IF NOT EXISTS workflow_source (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    digest       text NOT NULL UNIQUE,
    definition   jsonb NOT NULL,
    param_schema jsonb,
    used         timestamptz NOT NULL DEFAULT now()
);
-- state is the input of the next decision, and the published columns are written along with it. version counts the
-- decisions, and each write repeats it, so that none is lost. open is true until the end was processed. deadline is
-- when the workflow has run too long. Existing rows are closed: those of running workflows are opened when their
-- queues are taken over.
ALTER TABLE workflow_execution
    ADD COLUMN IF NOT EXISTS version  bigint NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS state    jsonb,
    ADD COLUMN IF NOT EXISTS source   bigint REFERENCES workflow_source (id),
    ADD COLUMN IF NOT EXISTS deadline timestamptz,
    ADD COLUMN IF NOT EXISTS open     boolean NOT NULL DEFAULT false;
ALTER TABLE workflow_execution ALTER COLUMN open SET DEFAULT true;
-- workflow_item has the items of lists that are still to be started.
CREATE TABLE IF NOT EXISTS workflow_item (
    workflow_execution bigint NOT NULL REFERENCES workflow_execution (id) ON DELETE CASCADE,
    task_name          text NOT NULL,
    index              integer NOT NULL,
    item               jsonb NOT NULL,
    PRIMARY KEY (workflow_execution, task_name, index)
);
-- workflow_log has a row for each decision.
CREATE TABLE IF NOT EXISTS workflow_log (
    workflow_execution bigint NOT NULL REFERENCES workflow_execution (id) ON DELETE CASCADE,
    version            bigint NOT NULL,
    at                 timestamptz NOT NULL DEFAULT now(),
    lines              text[] NOT NULL DEFAULT '{}',
    PRIMARY KEY (workflow_execution, version)
);

COMMIT AND CHAIN;
-- settled says that the end of the child, or of its last retry, was processed.
ALTER TABLE workflow_task_dispatch
    ADD COLUMN IF NOT EXISTS settled boolean NOT NULL DEFAULT true;
ALTER TABLE workflow_task_dispatch ALTER COLUMN settled SET DEFAULT false;

COMMIT AND CHAIN;
-- settled says that the end of the inquiry was processed: its execution has ended, or its workflow goes on.
ALTER TABLE inquiry
    ADD COLUMN IF NOT EXISTS settled      boolean NOT NULL DEFAULT true,
    ADD COLUMN IF NOT EXISTS responded_by bigint,
    ADD COLUMN IF NOT EXISTS responder    text;
ALTER TABLE inquiry ALTER COLUMN settled SET DEFAULT false;
-- An inquiry leaves pending once: a service that answers without looking changes nothing of an ended one (invariant
-- S16). Only the statement that settles an inquiry may replace the secrets of its response by markers.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_keep_ended_inquiry() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF OLD.settled OR NOT NEW.settled THEN
        NEW.response := OLD.response;
    END IF;
    NEW.status       := OLD.status;
    NEW.responded_at := OLD.responded_at;
    RETURN NEW;
END
$$;
-- +goose StatementEnd
CREATE OR REPLACE TRIGGER attune_10_ended_inquiry
    BEFORE UPDATE OF status, response, responded_at ON inquiry
    FOR EACH ROW WHEN (
        OLD.status <> 'pending'
        AND (NEW.status IS DISTINCT FROM OLD.status
             OR NEW.response IS DISTINCT FROM OLD.response
             OR NEW.responded_at IS DISTINCT FROM OLD.responded_at))
    EXECUTE FUNCTION attune_keep_ended_inquiry();

COMMIT AND CHAIN;
-- inquiry_fault says why the question in the result of an execution could not be asked.
CREATE TABLE IF NOT EXISTS inquiry_fault (
    execution bigint PRIMARY KEY REFERENCES execution (id) ON DELETE CASCADE,
    at        timestamptz NOT NULL DEFAULT now(),
    reason    text NOT NULL
);

COMMIT AND CHAIN;
-- attune_inquiry_of returns the question in a result, or NULL.
CREATE OR REPLACE FUNCTION attune_inquiry_of(result jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce(nullif(result -> '__inquiry', 'null'::jsonb), nullif(result -> 'data' -> '__inquiry', 'null'::jsonb));

-- attune_task_timeout returns the timeout of a task in seconds, at most ten years; NULL without one above zero.
CREATE OR REPLACE FUNCTION attune_task_timeout(task jsonb) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN jsonb_typeof(task -> 'timeout_seconds') = 'number' AND (task ->> 'timeout_seconds')::numeric > 0
            THEN least((task ->> 'timeout_seconds')::numeric, 315360000)::double precision END;

-- attune_paused_above returns the nearest paused workflow above an execution, or NULL. What is nested in it starts
-- nothing either.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_paused_above(id bigint) RETURNS bigint
LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
    WITH RECURSIVE up AS (
        SELECT e.parent, 1 AS n FROM execution e
        WHERE e.id = $1 AND e.parent IS NOT NULL AND jsonb_typeof(e.workflow_task) = 'object'
        UNION ALL
        SELECT x.parent, u.n + 1
        FROM up u CROSS JOIN LATERAL (
            SELECT y.parent FROM execution y
            WHERE y.id = u.parent AND y.parent IS NOT NULL AND jsonb_typeof(y.workflow_task) = 'object' OFFSET 0) x
        WHERE u.n < 32
    )
    SELECT u.parent FROM up u
    WHERE EXISTS (SELECT FROM workflow_execution w WHERE w.execution = u.parent AND w.paused AND w.open)
    ORDER BY u.n LIMIT 1
$$;
-- +goose StatementEnd

-- +goose Down
-- Foreign keys go first: dropping a table waits for the disk with its locks held.
DROP FUNCTION IF EXISTS attune_paused_above(bigint), attune_task_timeout(jsonb), attune_inquiry_of(jsonb);
ALTER TABLE IF EXISTS inquiry_fault DROP CONSTRAINT IF EXISTS inquiry_fault_execution_fkey;
COMMIT AND CHAIN;
DROP FUNCTION IF EXISTS attune_keep_ended_inquiry() CASCADE;
ALTER TABLE inquiry DROP COLUMN IF EXISTS responder, DROP COLUMN IF EXISTS responded_by, DROP COLUMN IF EXISTS settled;
COMMIT AND CHAIN;
ALTER TABLE workflow_task_dispatch DROP COLUMN IF EXISTS settled;
COMMIT AND CHAIN;
ALTER TABLE IF EXISTS workflow_log DROP CONSTRAINT IF EXISTS workflow_log_workflow_execution_fkey;
ALTER TABLE IF EXISTS workflow_item DROP CONSTRAINT IF EXISTS workflow_item_workflow_execution_fkey;
ALTER TABLE workflow_execution
    DROP COLUMN IF EXISTS open, DROP COLUMN IF EXISTS deadline, DROP COLUMN IF EXISTS source, DROP COLUMN IF EXISTS state,
    DROP COLUMN IF EXISTS version;
COMMIT AND CHAIN;
ALTER TABLE enforcement DROP COLUMN IF EXISTS note, DROP COLUMN IF EXISTS error;
COMMIT AND CHAIN;
DROP TABLE IF EXISTS inquiry_fault, workflow_log, workflow_item, workflow_source, event_origin, event_matching, event_matched;
