-- The replicas of the engine as they report themselves, and what people did.

-- +goose Up
CREATE TABLE IF NOT EXISTS engine_replica (
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

CREATE TABLE IF NOT EXISTS operator_audit (
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
CREATE INDEX IF NOT EXISTS idx_operator_audit_target ON operator_audit (target_type, target_id);

-- +goose Down
DROP TABLE operator_audit;
DROP TABLE engine_replica;
