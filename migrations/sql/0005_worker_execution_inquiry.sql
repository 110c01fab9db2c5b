-- Workers, the work itself, and the questions it asks people. The execution
-- row is updated several times in its short life: half of each page is left
-- free so that those updates stay within the page and touch no index, and no
-- index here mentions status, updated or worker.

-- +goose Up
CREATE TABLE worker (
    id             bigserial PRIMARY KEY,
    name           text NOT NULL UNIQUE,
    worker_type    worker_type_enum NOT NULL,
    worker_role    worker_role_enum NOT NULL,
    runtime        bigint REFERENCES runtime (id) ON DELETE SET NULL,
    host           text,
    port           integer,
    status         worker_status_enum NOT NULL DEFAULT 'active',
    capabilities   jsonb,
    meta           jsonb,
    last_heartbeat timestamptz,
    cordoned       boolean NOT NULL DEFAULT false,
    cordon_reason  text,
    cordoned_by    bigint REFERENCES identity (id) ON DELETE SET NULL,
    cordoned_at    timestamptz,
    created        timestamptz NOT NULL DEFAULT now(),
    updated        timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);

CREATE VIEW healthy_workers AS
SELECT id, name, worker_type, worker_role, runtime, host, port, status,
       capabilities, meta, last_heartbeat
FROM worker
WHERE status = 'active'
  AND last_heartbeat > now() - interval '30 seconds'
  AND (capabilities -> 'health' IS NULL
       OR capabilities -> 'health' ->> 'status' IN ('healthy', 'degraded'));

CREATE TABLE execution (
    id                        bigserial PRIMARY KEY,
    action                    bigint REFERENCES action (id) ON DELETE SET NULL,
    action_ref                text NOT NULL,
    config                    jsonb,
    env_vars                  jsonb,
    parent                    bigint REFERENCES execution (id) ON DELETE SET NULL,
    enforcement               bigint REFERENCES enforcement (id) ON DELETE SET NULL,
    executor                  bigint REFERENCES identity (id) ON DELETE SET NULL,
    permission_set_refs       text[] NOT NULL DEFAULT '{}',
    artifact_retention_policy artifact_retention_enum,
    artifact_retention_limit  integer CHECK (artifact_retention_limit > 0),
    worker_selector           jsonb,
    worker_tolerations        jsonb,
    worker_affinity           jsonb,
    worker                    bigint REFERENCES worker (id) ON DELETE SET NULL,
    status                    execution_status_enum NOT NULL DEFAULT 'requested',
    result                    jsonb,
    started_at                timestamptz,
    workflow_def              bigint REFERENCES workflow_definition (id) ON DELETE SET NULL,
    workflow_task             jsonb,
    retry_count               integer NOT NULL DEFAULT 0,
    max_retries               integer,
    retry_reason              text,
    original_execution        bigint REFERENCES execution (id) ON DELETE SET NULL,
    created                   timestamptz NOT NULL DEFAULT now(),
    updated                   timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);

-- One top-level execution per enforcement; a deliberate retry names the
-- execution it repeats in its parameters and is therefore not counted.
CREATE UNIQUE INDEX uq_execution_top_level_enforcement ON execution (enforcement)
    WHERE enforcement IS NOT NULL AND parent IS NULL
      AND (config IS NULL OR NOT (config ? 'retry_of'));

CREATE TABLE execution_secret_value (
    id                  bigserial PRIMARY KEY,
    entity_type         text NOT NULL,
    entity_id           bigint NOT NULL,
    json_path           text NOT NULL,
    source_kind         text NOT NULL,
    source_ref          text,
    encrypted_value     jsonb NOT NULL,
    encryption_key_hash text,
    created             timestamptz NOT NULL DEFAULT now(),
    updated             timestamptz NOT NULL DEFAULT now(),
    UNIQUE (entity_type, entity_id, json_path)
);

CREATE TABLE inquiry (
    id              bigserial PRIMARY KEY,
    execution       bigint NOT NULL REFERENCES execution (id) ON DELETE CASCADE,
    prompt          text NOT NULL,
    response_schema jsonb,
    assigned_to     bigint REFERENCES identity (id) ON DELETE SET NULL,
    status          inquiry_status_enum NOT NULL DEFAULT 'pending',
    response        jsonb,
    timeout_at      timestamptz,
    responded_at    timestamptz,
    created         timestamptz NOT NULL DEFAULT now(),
    updated         timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX uq_inquiry_execution ON inquiry (execution);
CREATE INDEX idx_inquiry_pending_timeout ON inquiry (timeout_at) WHERE status = 'pending';

CREATE TABLE notification (
    id          bigserial PRIMARY KEY,
    channel     text NOT NULL,
    entity_type text NOT NULL,
    entity      text NOT NULL,
    activity    text NOT NULL,
    state       notification_status_enum NOT NULL DEFAULT 'created',
    content     jsonb,
    created     timestamptz NOT NULL DEFAULT now(),
    updated     timestamptz NOT NULL DEFAULT now()
);

-- +goose Down
DROP TABLE notification;
DROP TABLE inquiry;
DROP TABLE execution_secret_value;
DROP TABLE execution;
DROP VIEW healthy_workers;
DROP TABLE worker;
