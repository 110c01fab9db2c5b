-- Questions to people: who answered, and what has been drawn from an answer.
--
-- settled says that what follows from the end of an inquiry was written: its
-- execution has ended, or the workflow that waits for it was told. Inquiries from
-- before are settled, unless they are open or their execution is.
--
-- An inquiry leaves pending once: services that answer without looking whether it
-- has ended meanwhile change nothing (invariant S16).
--
-- inquiry_fault has why a question that an execution asked in its result was not
-- put to anybody.

-- +goose Up
-- No transaction holds two busy tables: each part is committed, and a repetition, Down too, passes over it.
ALTER TABLE inquiry
    ADD COLUMN IF NOT EXISTS settled      boolean NOT NULL DEFAULT true,
    ADD COLUMN IF NOT EXISTS responded_by bigint,
    ADD COLUMN IF NOT EXISTS responder    text;
ALTER TABLE inquiry ALTER COLUMN settled SET DEFAULT false;
COMMIT AND CHAIN;
UPDATE inquiry i SET settled = false WHERE i.status = 'pending';
UPDATE inquiry i SET settled = false FROM execution e
WHERE e.id = i.execution AND e.finished_status IS NULL AND i.settled;

COMMIT AND CHAIN;
CREATE INDEX IF NOT EXISTS attune_inquiry_pending ON inquiry (id) WHERE status = 'pending';
CREATE INDEX IF NOT EXISTS attune_inquiry_unsettled ON inquiry (id) WHERE status <> 'pending' AND NOT settled;

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_keep_ended_inquiry() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    NEW.status       := OLD.status;
    NEW.response     := OLD.response;
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
CREATE TABLE IF NOT EXISTS inquiry_fault (
    execution bigint PRIMARY KEY REFERENCES execution (id) ON DELETE CASCADE,
    at        timestamptz NOT NULL DEFAULT now(),
    reason    text NOT NULL
);

-- attune_inquiry_of is the question that a result asks, NULL if it asks none.
CREATE OR REPLACE FUNCTION attune_inquiry_of(result jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce(nullif(result -> '__inquiry', 'null'::jsonb), nullif(result -> 'data' -> '__inquiry', 'null'::jsonb));

-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM attune_schema_origin WHERE origin = 'own') THEN
        INSERT INTO action (ref, pack, pack_ref, label, description, entrypoint, output_format, param_schema)
        SELECT 'core.ask', p.id, p.ref, 'Ask', 'Asks a person; a task of a workflow', 'native', 'json',
               '{"prompt": {"type": "string", "description": "What to ask", "default": "A response is required to go on"},
                 "response_schema": {"type": "object", "description": "What the response must look like"},
                 "assigned_to": {"type": "integer", "description": "The identity that is to answer; anybody if absent"}}'::jsonb
        FROM pack p WHERE p.ref = 'core'
        ON CONFLICT DO NOTHING;
    END IF;
END
$$;
-- +goose StatementEnd

-- +goose Down
-- Foreign keys go first: dropping a table waits for the disk with its locks held.
DELETE FROM action WHERE ref = 'core.ask' AND entrypoint = 'native' AND EXISTS (SELECT FROM attune_schema_origin WHERE origin = 'own');
COMMIT AND CHAIN;
ALTER TABLE IF EXISTS inquiry_fault DROP CONSTRAINT IF EXISTS inquiry_fault_execution_fkey;
COMMIT AND CHAIN;
DROP TABLE IF EXISTS inquiry_fault;
COMMIT AND CHAIN;
DROP FUNCTION IF EXISTS attune_inquiry_of(jsonb);
DROP FUNCTION IF EXISTS attune_keep_ended_inquiry() CASCADE;
DROP INDEX IF EXISTS attune_inquiry_unsettled;
DROP INDEX IF EXISTS attune_inquiry_pending;
ALTER TABLE inquiry DROP COLUMN IF EXISTS responder, DROP COLUMN IF EXISTS responded_by, DROP COLUMN IF EXISTS settled;
