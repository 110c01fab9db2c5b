-- Under load: new schema. Creates the published tables.
--
-- The tables of the Attune platform as its other services know them. An adopted schema has them.

-- +goose Up
-- The order of the labels is part of the protocol: ORDER BY on such a column follows it.
CREATE TYPE execution_status_enum AS ENUM (
    'requested', 'scheduling', 'scheduled', 'running', 'completed', 'failed',
    'canceling', 'cancelled', 'timeout', 'abandoned');
CREATE TYPE enforcement_status_enum AS ENUM ('created', 'processed', 'disabled');
CREATE TYPE enforcement_condition_enum AS ENUM ('any', 'all');
CREATE TYPE inquiry_status_enum AS ENUM ('pending', 'responded', 'timeout', 'cancelled');
CREATE TYPE policy_method_enum AS ENUM ('cancel', 'enqueue');
CREATE TYPE worker_type_enum AS ENUM ('local', 'remote', 'container');
CREATE TYPE worker_role_enum AS ENUM ('action', 'sensor');
CREATE TYPE worker_status_enum AS ENUM ('active', 'inactive', 'busy', 'error');
CREATE TYPE owner_type_enum AS ENUM ('system', 'identity', 'pack', 'action', 'sensor');
CREATE TYPE notification_status_enum AS ENUM ('created', 'queued', 'processing', 'error');
CREATE TYPE artifact_type_enum AS ENUM (
    'file_binary', 'file_datatable', 'file_image', 'file_text', 'other', 'progress', 'url');
CREATE TYPE artifact_retention_enum AS ENUM ('versions', 'days', 'hours', 'minutes');
CREATE TYPE artifact_visibility_enum AS ENUM ('public', 'private');
CREATE TYPE sensor_process_status_enum AS ENUM ('starting', 'running', 'stopped', 'failed', 'backoff');
CREATE TYPE pack_environment_status_enum AS ENUM ('pending', 'installing', 'ready', 'failed', 'outdated');
CREATE TYPE work_queue_update_strategy_enum AS ENUM ('immutable', 'replace', 'merge_patch');
CREATE TYPE work_queue_batch_mode_enum AS ENUM ('single', 'batch');
CREATE TYPE work_queue_item_status_enum AS ENUM (
    'queued', 'leased', 'retry', 'completed', 'failed', 'skipped', 'cancelled');
CREATE TYPE work_queue_dispatch_status_enum AS ENUM (
    'leased', 'dispatched', 'completed', 'failed', 'released', 'cancelled');
CREATE TYPE audit_category_enum AS ENUM ('api', 'auth', 'rbac', 'secret', 'admin', 'execution', 'pack');
CREATE TYPE audit_outcome_enum AS ENUM ('success', 'failure', 'denied');

-- The creator of the published tables: adopted ones keep their indexes and triggers.
CREATE TABLE attune_schema_origin (
    origin text PRIMARY KEY CHECK (origin IN ('own', 'adopted')), created timestamptz NOT NULL DEFAULT now()
);
INSERT INTO attune_schema_origin (origin) VALUES ('own');

CREATE TABLE identity (
    id bigserial PRIMARY KEY, login text NOT NULL UNIQUE, display_name text, password_hash text,
    attributes jsonb NOT NULL DEFAULT '{}', frozen boolean NOT NULL DEFAULT false,
    created timestamptz NOT NULL DEFAULT now(), updated timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE pack (
    id bigserial PRIMARY KEY, ref text NOT NULL UNIQUE CHECK (ref ~ '^[a-z][a-z0-9_-]+$'), label text NOT NULL,
    description text, version text NOT NULL CHECK (version ~ '^\d+\.\d+\.\d+'),
    conf_schema jsonb NOT NULL DEFAULT '{}', config jsonb NOT NULL DEFAULT '{}', meta jsonb NOT NULL DEFAULT '{}',
    tags text[] NOT NULL DEFAULT '{}', runtime_deps text[] NOT NULL DEFAULT '{}',
    dependencies text[] NOT NULL DEFAULT '{}', is_standard boolean NOT NULL DEFAULT false,
    installers jsonb DEFAULT '[]', source_type text, source_url text, source_ref text, checksum text,
    checksum_verified boolean DEFAULT false, installed_at timestamptz,
    installed_by bigint REFERENCES identity (id) ON DELETE SET NULL, installation_method text, storage_path text,
    created timestamptz NOT NULL DEFAULT now(), updated timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE runtime (
    id bigserial PRIMARY KEY, ref text NOT NULL UNIQUE CHECK (ref = lower(ref)),
    pack bigint REFERENCES pack (id) ON DELETE CASCADE, pack_ref text, description text, name text NOT NULL,
    aliases text[] NOT NULL DEFAULT '{}', distributions jsonb NOT NULL, installation jsonb,
    installers jsonb DEFAULT '[]', execution_config jsonb NOT NULL DEFAULT '{}',
    auto_detected boolean NOT NULL DEFAULT false, detection_config jsonb NOT NULL DEFAULT '{}',
    created timestamptz NOT NULL DEFAULT now(), updated timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE runtime_version (
    id bigserial PRIMARY KEY, runtime bigint NOT NULL REFERENCES runtime (id) ON DELETE CASCADE,
    runtime_ref text NOT NULL, version text NOT NULL, version_major integer, version_minor integer,
    version_patch integer, execution_config jsonb NOT NULL DEFAULT '{}', distributions jsonb NOT NULL DEFAULT '{}',
    is_default boolean NOT NULL DEFAULT false, available boolean NOT NULL DEFAULT true, verified_at timestamptz,
    meta jsonb NOT NULL DEFAULT '{}', created timestamptz NOT NULL DEFAULT now(),
    updated timestamptz NOT NULL DEFAULT now(), UNIQUE (runtime, version)
);

CREATE TABLE workflow_definition (
    id bigserial PRIMARY KEY, ref varchar(255) NOT NULL UNIQUE,
    pack bigint NOT NULL REFERENCES pack (id) ON DELETE CASCADE, pack_ref text NOT NULL, label text NOT NULL,
    description text, version varchar(50) NOT NULL, param_schema jsonb, out_schema jsonb, definition jsonb NOT NULL,
    tags text[] DEFAULT '{}', created timestamptz NOT NULL DEFAULT now(), updated timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE action (
    id bigserial PRIMARY KEY, ref text NOT NULL UNIQUE CHECK (ref ~ '^[^.]+\.[^.]+$' AND ref = lower(ref)),
    pack bigint NOT NULL REFERENCES pack (id) ON DELETE CASCADE, pack_ref text NOT NULL, label text NOT NULL,
    description text, entrypoint text NOT NULL, runtime bigint REFERENCES runtime (id), param_schema jsonb,
    out_schema jsonb,
    parameter_delivery text NOT NULL DEFAULT 'stdin' CHECK (parameter_delivery IN ('stdin', 'file')),
    parameter_format text NOT NULL DEFAULT 'json' CHECK (parameter_format IN ('dotenv', 'json', 'yaml')),
    output_format text NOT NULL DEFAULT 'text' CHECK (output_format IN ('text', 'json', 'yaml', 'jsonl')),
    is_adhoc boolean NOT NULL DEFAULT false, timeout_seconds integer, max_retries integer DEFAULT 0,
    runtime_version_constraint text, accesses_mcp boolean NOT NULL DEFAULT false,
    default_execution_permission_set_refs text[] NOT NULL DEFAULT '{}',
    log_retention_policy artifact_retention_enum, log_retention_limit integer CHECK (log_retention_limit > 0),
    artifact_retention_policy artifact_retention_enum,
    artifact_retention_limit integer CHECK (artifact_retention_limit > 0),
    workflow_def bigint REFERENCES workflow_definition (id) ON DELETE CASCADE,
    required_worker_runtimes jsonb NOT NULL DEFAULT '{}', worker_selector jsonb NOT NULL DEFAULT '{}',
    worker_tolerations jsonb NOT NULL DEFAULT '[]', worker_affinity jsonb NOT NULL DEFAULT '{}',
    created timestamptz NOT NULL DEFAULT now(), updated timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX idx_action_workflow_def ON action (workflow_def) WHERE workflow_def IS NOT NULL;

CREATE TABLE sensor (
    id bigserial PRIMARY KEY, ref text NOT NULL UNIQUE CHECK (ref ~ '^[^.]+\.[^.]+$' AND ref = lower(ref)),
    pack bigint REFERENCES pack (id) ON DELETE CASCADE, pack_ref text, label text NOT NULL, description text,
    entrypoint text NOT NULL, runtime bigint NOT NULL REFERENCES runtime (id), runtime_ref text NOT NULL,
    enabled boolean NOT NULL, is_adhoc boolean NOT NULL DEFAULT false, param_schema jsonb, config jsonb,
    runtime_version_constraint text, required_worker_runtimes jsonb NOT NULL DEFAULT '{}',
    worker_selector jsonb NOT NULL DEFAULT '{}', worker_tolerations jsonb NOT NULL DEFAULT '[]',
    worker_affinity jsonb NOT NULL DEFAULT '{}', created timestamptz NOT NULL DEFAULT now(),
    updated timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE trigger (
    id bigserial PRIMARY KEY, ref text NOT NULL UNIQUE CHECK (ref ~ '^[^.]+\.[^.]+$' AND ref = lower(ref)),
    pack bigint REFERENCES pack (id) ON DELETE CASCADE, pack_ref text, label text NOT NULL, description text,
    enabled boolean NOT NULL DEFAULT true, is_adhoc boolean NOT NULL DEFAULT false, param_schema jsonb,
    out_schema jsonb, webhook_enabled boolean NOT NULL DEFAULT false, webhook_key varchar(64) UNIQUE,
    webhook_config jsonb DEFAULT '{}', sensor bigint REFERENCES sensor (id) ON DELETE SET NULL, sensor_ref text,
    created timestamptz NOT NULL DEFAULT now(), updated timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE rule (
    id bigserial PRIMARY KEY, ref text NOT NULL UNIQUE CHECK (ref ~ '^[^.]+\.[^.]+$' AND ref = lower(ref)),
    pack bigint NOT NULL REFERENCES pack (id) ON DELETE CASCADE, pack_ref text NOT NULL, label text NOT NULL,
    description text, action bigint REFERENCES action (id) ON DELETE SET NULL, action_ref text NOT NULL,
    trigger bigint REFERENCES trigger (id) ON DELETE SET NULL, trigger_ref text NOT NULL,
    conditions jsonb NOT NULL DEFAULT '[]', action_params jsonb DEFAULT '{}', trigger_params jsonb DEFAULT '{}',
    permission_set_refs text[], enabled boolean NOT NULL, is_adhoc boolean NOT NULL DEFAULT false,
    owner_identity bigint REFERENCES identity (id) ON DELETE SET NULL, created timestamptz NOT NULL DEFAULT now(),
    updated timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX idx_rule_trigger ON rule (trigger);
CREATE INDEX idx_rule_trigger_ref ON rule (trigger_ref);

CREATE TABLE policy (
    id bigserial PRIMARY KEY, ref text NOT NULL UNIQUE CHECK (ref ~ '^[^.]+\.[^.]+$'),
    pack bigint REFERENCES pack (id) ON DELETE CASCADE, pack_ref text,
    action bigint REFERENCES action (id) ON DELETE CASCADE, action_ref text,
    parameters text[] NOT NULL DEFAULT '{}', method policy_method_enum NOT NULL,
    threshold integer NOT NULL CHECK (threshold > 0), name text NOT NULL, description text,
    tags text[] NOT NULL DEFAULT '{}', created timestamptz NOT NULL DEFAULT now(),
    updated timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX idx_policy_action ON policy (action);

-- Events are partitioned by time and never updated. The default partition takes the rows of missing ones, so that no
-- insert fails.
CREATE TABLE event (
    id bigserial NOT NULL, trigger bigint REFERENCES trigger (id) ON DELETE SET NULL, trigger_ref text NOT NULL,
    config jsonb, payload jsonb, source bigint REFERENCES sensor (id) ON DELETE SET NULL, source_ref text,
    rule bigint REFERENCES rule (id) ON DELETE SET NULL, rule_ref text, created timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (id, created)
) PARTITION BY RANGE (created);
CREATE TABLE event_default PARTITION OF event DEFAULT;
CREATE INDEX idx_event_trigger_ref ON event (trigger_ref, created DESC);

CREATE TABLE enforcement (
    id bigserial PRIMARY KEY, rule bigint REFERENCES rule (id) ON DELETE SET NULL, rule_ref text NOT NULL,
    trigger_ref text NOT NULL, config jsonb, event bigint,
    status enforcement_status_enum NOT NULL DEFAULT 'created', payload jsonb NOT NULL,
    condition enforcement_condition_enum NOT NULL DEFAULT 'all', conditions jsonb NOT NULL DEFAULT '[]',
    created timestamptz NOT NULL DEFAULT now(), resolved_at timestamptz
);
CREATE UNIQUE INDEX uq_enforcement_rule_event ON enforcement (rule, event)
    WHERE rule IS NOT NULL AND event IS NOT NULL;
CREATE INDEX idx_enforcement_event ON enforcement (event);

CREATE TABLE worker (
    id bigserial PRIMARY KEY, name text NOT NULL UNIQUE, worker_type worker_type_enum NOT NULL,
    worker_role worker_role_enum NOT NULL, runtime bigint REFERENCES runtime (id) ON DELETE SET NULL, host text,
    port integer, status worker_status_enum NOT NULL DEFAULT 'active', capabilities jsonb, meta jsonb,
    last_heartbeat timestamptz, cordoned boolean NOT NULL DEFAULT false, cordon_reason text,
    cordoned_by bigint REFERENCES identity (id) ON DELETE SET NULL, cordoned_at timestamptz,
    created timestamptz NOT NULL DEFAULT now(), updated timestamptz NOT NULL DEFAULT now()
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
    id bigserial PRIMARY KEY, action bigint REFERENCES action (id) ON DELETE SET NULL, action_ref text NOT NULL,
    config jsonb, env_vars jsonb, parent bigint REFERENCES execution (id) ON DELETE SET NULL,
    enforcement bigint REFERENCES enforcement (id) ON DELETE SET NULL,
    executor bigint REFERENCES identity (id) ON DELETE SET NULL, permission_set_refs text[] NOT NULL DEFAULT '{}',
    artifact_retention_policy artifact_retention_enum,
    artifact_retention_limit integer CHECK (artifact_retention_limit > 0), worker_selector jsonb,
    worker_tolerations jsonb, worker_affinity jsonb, worker bigint REFERENCES worker (id) ON DELETE SET NULL,
    status execution_status_enum NOT NULL DEFAULT 'requested', result jsonb, started_at timestamptz,
    workflow_def bigint REFERENCES workflow_definition (id) ON DELETE SET NULL, workflow_task jsonb,
    retry_count integer NOT NULL DEFAULT 0, max_retries integer, retry_reason text,
    original_execution bigint REFERENCES execution (id) ON DELETE SET NULL,
    created timestamptz NOT NULL DEFAULT now(), updated timestamptz NOT NULL DEFAULT now(),
    finished_status execution_status_enum GENERATED ALWAYS AS (
        CASE WHEN status IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned') THEN status END) STORED
);
CREATE INDEX attune_execution_live ON execution (id) WHERE finished_status IS NULL;
CREATE INDEX attune_execution_finished ON execution (finished_status, id DESC) WHERE finished_status IS NOT NULL;
CREATE INDEX attune_execution_enforcement ON execution (enforcement) WHERE enforcement IS NOT NULL;

-- One top-level execution per enforcement. A retry on request names the execution it repeats, and does not count.
CREATE UNIQUE INDEX uq_execution_top_level_enforcement ON execution (enforcement)
    WHERE enforcement IS NOT NULL AND parent IS NULL
      AND (config IS NULL OR NOT (config ? 'retry_of'));

CREATE TABLE execution_secret_value (
    id bigserial PRIMARY KEY, entity_type text NOT NULL, entity_id bigint NOT NULL, json_path text NOT NULL,
    source_kind text NOT NULL, source_ref text, encrypted_value jsonb NOT NULL, encryption_key_hash text,
    created timestamptz NOT NULL DEFAULT now(), updated timestamptz NOT NULL DEFAULT now(),
    UNIQUE (entity_type, entity_id, json_path)
);

CREATE TABLE inquiry (
    id bigserial PRIMARY KEY, execution bigint NOT NULL REFERENCES execution (id) ON DELETE CASCADE,
    prompt text NOT NULL, response_schema jsonb, assigned_to bigint REFERENCES identity (id) ON DELETE SET NULL,
    status inquiry_status_enum NOT NULL DEFAULT 'pending', response jsonb, timeout_at timestamptz,
    responded_at timestamptz, created timestamptz NOT NULL DEFAULT now(), updated timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX uq_inquiry_execution ON inquiry (execution);
CREATE INDEX idx_inquiry_pending_timeout ON inquiry (timeout_at) WHERE status = 'pending';

CREATE TABLE notification (
    id bigserial PRIMARY KEY, channel text NOT NULL, entity_type text NOT NULL, entity text NOT NULL,
    activity text NOT NULL, state notification_status_enum NOT NULL DEFAULT 'created', content jsonb,
    created timestamptz NOT NULL DEFAULT now(), updated timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE workflow_execution (
    id bigserial PRIMARY KEY, execution bigint NOT NULL REFERENCES execution (id) ON DELETE CASCADE,
    workflow_def bigint NOT NULL REFERENCES workflow_definition (id) ON DELETE CASCADE,
    current_tasks text[] DEFAULT '{}', completed_tasks text[] DEFAULT '{}', failed_tasks text[] DEFAULT '{}',
    skipped_tasks text[] DEFAULT '{}', variables jsonb DEFAULT '{}', task_graph jsonb NOT NULL,
    status execution_status_enum NOT NULL DEFAULT 'requested', error_message text,
    paused boolean NOT NULL DEFAULT false, pause_reason text, created timestamptz NOT NULL DEFAULT now(),
    updated timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX uq_workflow_execution_execution ON workflow_execution (execution);

CREATE TABLE workflow_task_dispatch (
    id bigserial PRIMARY KEY,
    workflow_execution bigint NOT NULL REFERENCES workflow_execution (id) ON DELETE CASCADE,
    task_name text NOT NULL, task_index integer, execution_id bigint REFERENCES execution (id) ON DELETE CASCADE,
    created timestamptz NOT NULL DEFAULT now(), updated timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX uq_workflow_task_dispatch_identity
    ON workflow_task_dispatch (workflow_execution, task_name, (COALESCE(task_index, -1)));
CREATE INDEX idx_workflow_task_dispatch_execution ON workflow_task_dispatch (execution_id);

CREATE TABLE execution_admission_state (
    id bigserial PRIMARY KEY, action_id bigint NOT NULL REFERENCES action (id) ON DELETE CASCADE, group_key text,
    group_key_normalized text GENERATED ALWAYS AS (COALESCE(group_key, '')) STORED, max_concurrent integer NOT NULL,
    next_queue_order bigint NOT NULL DEFAULT 1, total_enqueued bigint NOT NULL DEFAULT 0,
    total_completed bigint NOT NULL DEFAULT 0, created timestamptz NOT NULL DEFAULT now(),
    updated timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT uq_execution_admission_state_identity UNIQUE (action_id, group_key_normalized)
);

CREATE TABLE execution_admission_entry (
    id bigserial PRIMARY KEY, state_id bigint NOT NULL REFERENCES execution_admission_state (id) ON DELETE CASCADE,
    execution_id bigint NOT NULL UNIQUE REFERENCES execution (id) ON DELETE CASCADE,
    status text NOT NULL CHECK (status IN ('active', 'queued')), queue_order bigint NOT NULL,
    enqueued_at timestamptz NOT NULL DEFAULT now(), activated_at timestamptz,
    created timestamptz NOT NULL DEFAULT now(), updated timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE queue_stats (
    action_id bigint PRIMARY KEY REFERENCES action (id) ON DELETE CASCADE, queue_length integer NOT NULL DEFAULT 0,
    active_count integer NOT NULL DEFAULT 0, max_concurrent integer NOT NULL DEFAULT 1,
    oldest_enqueued_at timestamptz, total_enqueued bigint NOT NULL DEFAULT 0,
    total_completed bigint NOT NULL DEFAULT 0, last_updated timestamptz NOT NULL DEFAULT now()
);

-- Nothing of this engine writes items of work queues.
CREATE TABLE work_queue (
    id bigserial PRIMARY KEY, ref text NOT NULL UNIQUE, pack bigint REFERENCES pack (id) ON DELETE SET NULL,
    pack_ref text, is_adhoc boolean DEFAULT false NOT NULL, label text NOT NULL, description text,
    enabled boolean DEFAULT true NOT NULL, accepting_new_items boolean DEFAULT true NOT NULL,
    dispatch_action bigint REFERENCES action (id) ON DELETE SET NULL, dispatch_action_ref text NOT NULL,
    default_priority integer DEFAULT 0 NOT NULL, allow_pending_update boolean DEFAULT false NOT NULL,
    update_strategy work_queue_update_strategy_enum DEFAULT 'replace' NOT NULL,
    batch_mode work_queue_batch_mode_enum DEFAULT 'single' NOT NULL, item_schema jsonb DEFAULT '{}' NOT NULL,
    action_params jsonb DEFAULT '{}' NOT NULL, permission_set_refs text[], config jsonb DEFAULT '{}' NOT NULL,
    created timestamptz DEFAULT now() NOT NULL, updated timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT work_queue_ref_format CHECK ((ref ~ '^[a-z][a-z0-9_-]*(\.[a-z0-9_-]+)*$')),
    CONSTRAINT work_queue_ref_lowercase CHECK ((ref = lower(ref)))
);
CREATE TABLE work_queue_item (
    id bigserial PRIMARY KEY, queue bigint NOT NULL REFERENCES work_queue (id) ON DELETE CASCADE,
    queue_ref text NOT NULL, item_key text, priority integer DEFAULT 0 NOT NULL,
    status work_queue_item_status_enum DEFAULT 'queued' NOT NULL, payload jsonb NOT NULL,
    metadata jsonb DEFAULT '{}' NOT NULL, enqueue_source text NOT NULL,
    requested_by_identity bigint REFERENCES identity (id) ON DELETE SET NULL, requested_by_execution bigint,
    requested_by_enforcement bigint, leased_execution bigint, lease_token uuid, lease_expires_at timestamptz,
    attempt_count integer DEFAULT 0 NOT NULL, last_error jsonb, ack_summary jsonb,
    created timestamptz DEFAULT now() NOT NULL, updated timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT work_queue_item_attempt_count_nonnegative CHECK ((attempt_count >= 0))
);
CREATE TABLE work_queue_dispatch (
    id bigserial PRIMARY KEY, queue bigint NOT NULL REFERENCES work_queue (id) ON DELETE CASCADE,
    queue_ref text NOT NULL, execution bigint NOT NULL UNIQUE,
    status work_queue_dispatch_status_enum DEFAULT 'leased' NOT NULL, leased_item_count integer NOT NULL,
    created timestamptz DEFAULT now() NOT NULL, updated timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT work_queue_dispatch_leased_item_count_nonnegative CHECK ((leased_item_count >= 0))
);
CREATE INDEX idx_work_queue_dispatch_queue_status ON work_queue_dispatch (queue, status, created DESC);
CREATE INDEX idx_work_queue_item_leased_execution ON work_queue_item (leased_execution)
    WHERE leased_execution IS NOT NULL;
CREATE INDEX idx_work_queue_item_queue_ready_order ON work_queue_item (queue, priority DESC, created, id)
    WHERE status IN ('queued', 'retry');

CREATE TABLE audit_event (
    id bigserial NOT NULL, created timestamptz DEFAULT now() NOT NULL, category audit_category_enum NOT NULL,
    event_type text NOT NULL, outcome audit_outcome_enum NOT NULL, actor_identity bigint, actor_login text,
    actor_token_type text, actor_ip inet, actor_user_agent text, request_id uuid, resource_type text,
    resource_id bigint, resource_ref text, http_method text, http_path text, http_status integer,
    duration_ms integer, details jsonb, correlation_chain jsonb, PRIMARY KEY (id, created)
) PARTITION BY RANGE (created);
CREATE TABLE audit_event_default PARTITION OF audit_event DEFAULT;
CREATE INDEX idx_audit_event_resource ON audit_event (resource_type, resource_id, created DESC)
    WHERE resource_type IS NOT NULL;

-- The system identity, and actions that every worker of this engine runs.
INSERT INTO identity (id, login, display_name) VALUES (1, 'system', 'System');
SELECT setval(pg_get_serial_sequence('identity', 'id'), 1);
INSERT INTO pack (ref, label, description, version, is_standard)
VALUES ('core', 'Core', 'Actions that every worker can run', '1.0.0', true);
INSERT INTO action (ref, pack, pack_ref, label, description, entrypoint, output_format, param_schema)
SELECT v.ref, p.id, p.ref, v.label, v.description, 'native', 'json', v.param_schema::jsonb
FROM pack p, (VALUES
    ('core.echo', 'Echo', 'Returns its message',
     '{"message": {"type": "string", "description": "What to return", "default": ""}}'),
    ('core.noop', 'Nothing', 'Does nothing and succeeds', '{}'),
    ('core.sleep', 'Sleep', 'Waits and succeeds',
     '{"seconds": {"type": "number", "description": "How long to wait", "default": 1}}'),
    ('core.fail', 'Fail', 'Fails with its message',
     '{"message": {"type": "string", "description": "Why it fails", "default": "failed on request"}}'),
    ('core.ask', 'Ask', 'Asks a person; a task of a workflow',
     '{"prompt": {"type": "string", "description": "What to ask", "default": "A response is required to go on"},
       "response_schema": {"type": "object", "description": "What the response must look like"},
       "assigned_to": {"type": "integer", "description": "The identity that is to answer; anybody if absent"}}')
) AS v (ref, label, description, param_schema);

-- +goose Down
DROP VIEW IF EXISTS healthy_workers;
DROP TABLE IF EXISTS
    audit_event, work_queue_dispatch, work_queue_item, work_queue, queue_stats, execution_admission_entry,
    execution_admission_state, workflow_task_dispatch, workflow_execution, notification, inquiry,
    execution_secret_value, execution, worker, enforcement, event, policy, rule, trigger, sensor, action,
    workflow_definition, runtime_version, runtime, pack, identity, attune_schema_origin;
DROP TYPE IF EXISTS
    audit_outcome_enum, audit_category_enum, work_queue_dispatch_status_enum, work_queue_item_status_enum,
    work_queue_batch_mode_enum, work_queue_update_strategy_enum, pack_environment_status_enum,
    sensor_process_status_enum, artifact_visibility_enum, artifact_retention_enum, artifact_type_enum,
    notification_status_enum, owner_type_enum, worker_status_enum, worker_role_enum, worker_type_enum,
    policy_method_enum, inquiry_status_enum, enforcement_condition_enum, enforcement_status_enum,
    execution_status_enum;
