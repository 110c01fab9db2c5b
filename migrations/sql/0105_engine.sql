-- Under load: online. Creates tables.
--
-- The tables that only this engine has: messages, dead letters, and what operators see and do.

-- +goose Up
-- outbox has a row for each batch, its messages side by side in arrays of equal length. A row belongs to the relay of
-- the replica that committed it, which the setting of its connection names; only that relay publishes it while its
-- lease is renewed. Rows of writers without a relay have no owner.
CREATE TABLE outbox (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    created       timestamptz NOT NULL DEFAULT now(),
    claimed_at    timestamptz,
    attempts      integer NOT NULL DEFAULT 0,
    last_error    text,
    message_ids   text[] NOT NULL,
    exchanges     text[] NOT NULL,
    routing_keys  text[] NOT NULL,
    message_types text[] NOT NULL,
    bodies        bytea[] NOT NULL,
    traces        text[] NOT NULL,
    owner         uuid DEFAULT nullif(current_setting('attune.relay', true), '')::uuid
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0,
        autovacuum_vacuum_insert_threshold = 5000, autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);
-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_settings WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)) THEN
        ALTER TABLE outbox ALTER COLUMN bodies SET COMPRESSION lz4;
    END IF;
END
$$;
-- +goose StatementEnd
CREATE TABLE outbox_owner (
    id      uuid PRIMARY KEY,
    renewed timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 10);

-- dead_letter has the message as it came, what was known about its execution, and the decision; NULL while it waits
-- for an operator. fingerprint names one dead-lettering of one message: a second delivery is not recorded again.
CREATE TABLE dead_letter (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, fingerprint text UNIQUE, message_id text, message_type text,
    exchange text, routing_key text, queue text, reason text, x_death jsonb, headers jsonb, body bytea,
    execution bigint, worker bigint, execution_status execution_status_enum, decision text, decided_at timestamptz,
    decided_by text, evidence jsonb, created timestamptz NOT NULL DEFAULT now(),
    updated timestamptz NOT NULL DEFAULT now(), correlation_id text, action_ref text, attempt integer,
    died timestamptz, detail text
);
CREATE INDEX idx_dead_letter_open ON dead_letter (id) WHERE decision IS NULL;
CREATE INDEX idx_dead_letter_execution ON dead_letter (execution) WHERE execution IS NOT NULL;
CREATE INDEX attune_dead_letter_created ON dead_letter (created);
CREATE TRIGGER zz_attune_updated BEFORE UPDATE ON dead_letter
    FOR EACH ROW EXECUTE FUNCTION attune_touch();

-- message_trial names a large message that a process tries alone, because the process before did not settle it. A row
-- that is left belongs to a process that died while it tried the message: the message is not tried again.
CREATE TABLE message_trial (
    fingerprint text PRIMARY KEY, -- of the queue and the content
    queue       text NOT NULL,
    begun       timestamptz NOT NULL DEFAULT now()
);

-- request_key names what a request over HTTP with an Idempotency-Key has created, so that a repeated one creates
-- nothing. It belongs to one client, and counts for 24 hours.
CREATE TABLE request_key (
    client  text NOT NULL,
    key     text NOT NULL,
    digest  bytea NOT NULL, -- of the path and the body
    created timestamptz NOT NULL DEFAULT now(),
    subject bigint NOT NULL, -- the execution or event
    PRIMARY KEY (client, key)
);
CREATE INDEX request_key_created ON request_key (created);

-- engine_replica has the replicas as they report themselves.
CREATE TABLE engine_replica (
    id        uuid PRIMARY KEY,
    host      text NOT NULL,
    version   text NOT NULL,
    pid       integer NOT NULL,
    started   timestamptz NOT NULL DEFAULT now(),
    last_seen timestamptz NOT NULL DEFAULT now(),
    loops     jsonb NOT NULL DEFAULT '{}',
    in_flight integer NOT NULL DEFAULT 0,
    state     text NOT NULL DEFAULT 'starting',
    details   jsonb NOT NULL DEFAULT '{}'
) WITH (fillfactor = 50);

CREATE TABLE operator_audit (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at          timestamptz NOT NULL DEFAULT now(),
    actor       text NOT NULL,
    source      text NOT NULL DEFAULT '',
    action      text NOT NULL,
    target_type text NOT NULL DEFAULT '',
    target_id   bigint,
    target      text NOT NULL DEFAULT '',
    reason      text,
    request     jsonb NOT NULL DEFAULT '{}',
    outcome     text NOT NULL DEFAULT 'done',
    error       text
);
CREATE INDEX idx_operator_audit_target ON operator_audit (target_type, target_id);

CREATE TABLE alert (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    rule     text NOT NULL,
    target   text NOT NULL DEFAULT '',
    severity text NOT NULL,
    summary  text NOT NULL,
    hint     text NOT NULL DEFAULT '',
    value    double precision NOT NULL,
    since    timestamptz NOT NULL DEFAULT now(),
    fired    timestamptz,
    cleared  timestamptz,
    seen     timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX attune_alert_open ON alert (rule, target) WHERE cleared IS NULL;
CREATE INDEX attune_alert_since ON alert (since);

-- activity_minute has what happened in each minute, by action. An engine counts ends again and again until 30 seconds
-- after the end of the minute, so that a transaction that commits late is counted. What waits and runs is read from the
-- counters at the end of the minute, and cannot be read again later.
--
-- The row of the action '' exists for every counted minute. Its numbers are 0; it has what an engine saw of queues and
-- workers at the end of the minute. If no engine saw it, queues is NULL.
CREATE TABLE activity_minute (
    minute     timestamptz NOT NULL, -- its start
    action_ref text NOT NULL,
    completed  bigint NOT NULL DEFAULT 0,
    failed     bigint NOT NULL DEFAULT 0,
    timeout    bigint NOT NULL DEFAULT 0,
    cancelled  bigint NOT NULL DEFAULT 0,
    abandoned  bigint NOT NULL DEFAULT 0,
    queued     bigint NOT NULL DEFAULT 0, -- at the end of the minute
    running    bigint NOT NULL DEFAULT 0, -- hold a slot at the end of the minute
    -- {id: [waiting, seconds that the first has waited]} of the longest queues; more: true if others wait
    queues     jsonb,
    slots      jsonb, -- {worker: taken slots}
    ended      jsonb, -- {worker: executions that ended in the minute}
    counted    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (minute, action_ref)
);

-- Nothing is written to the tables of traces while tracing is off. trace_pending has the rows whose spans have not been
-- sent: written by the transaction that ends the row, deleted when the collector has the spans. trace_origin holds the
-- traceparent with which a client requested an execution or emitted an event. trace_seed makes trace ids those of this
-- installation.
CREATE TABLE trace_pending (
    id      bigserial PRIMARY KEY,
    kind    text NOT NULL,
    subject bigint NOT NULL,
    at      timestamptz NOT NULL DEFAULT now(),
    claimed timestamptz
) WITH (fillfactor = 70, autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0,
        autovacuum_vacuum_insert_threshold = 5000, autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);
CREATE TABLE trace_origin (
    kind        text NOT NULL,
    subject     bigint NOT NULL,
    traceparent text NOT NULL,
    created     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (kind, subject)
);
CREATE TABLE trace_seed (
    one  boolean PRIMARY KEY DEFAULT true CHECK (one),
    seed uuid NOT NULL DEFAULT gen_random_uuid()
);
INSERT INTO trace_seed DEFAULT VALUES;

-- attune_put writes an item by its ref, and returns its id. The members of doc are columns; a new item has all of them.
-- Without its schema, trigger would be another type.
-- +goose StatementBegin
CREATE FUNCTION attune_put(item text, item_ref text, doc jsonb) RETURNS bigint LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    row_of text := format('%I.%I', current_schema(), item);
    names text := (SELECT string_agg(quote_ident(k), ', ') FROM jsonb_object_keys(doc) k);
    given text := format('SELECT %s FROM jsonb_populate_record(NULL::%s, $2)', names, row_of);
    written bigint;
BEGIN
    EXECUTE format('UPDATE %s SET (%s) = (%s) WHERE ref = $1 RETURNING id', row_of, names, given) INTO written USING item_ref, doc;
    IF written IS NULL THEN
        EXECUTE format('INSERT INTO %s (ref, %s) SELECT $1, d.* FROM (%s) d RETURNING id', row_of, names, given) INTO written USING item_ref, doc;
    END IF;
    RETURN written;
END
$$;
-- +goose StatementEnd
-- attune_schema_needs says which programs may run on the schema. A migration after which older programs
-- fail adds a row in the same transaction, and its Down deletes the row. All other migrations keep older
-- programs running, and add none.
CREATE TABLE attune_schema_needs (
    version bigint PRIMARY KEY,                              -- the migration that adds the row
    least   bigint NOT NULL CHECK (least BETWEEN 1 AND version), -- the migration that a program must know
    program text   NOT NULL                                  -- the first release that knows it
);

-- +goose Down
DROP FUNCTION attune_put(text, text, jsonb);
DROP TABLE attune_schema_needs, trace_seed, trace_origin, trace_pending, activity_minute, alert, operator_audit,
    engine_replica, request_key, message_trial, dead_letter, outbox_owner, outbox;
