-- The tables of an existing Attune installation, newest shape, as its catalogue shows them: enum types,
-- tables with their checks and keys, then indexes and triggers. Column order is the table's.

CREATE TYPE artifact_retention_enum AS ENUM ('versions', 'days', 'hours', 'minutes');
CREATE TYPE artifact_type_enum AS ENUM ('file_binary', 'file_datatable', 'file_image', 'file_text', 'other', 'progress', 'url');
CREATE TYPE artifact_visibility_enum AS ENUM ('public', 'private');
CREATE TYPE audit_category_enum AS ENUM ('api', 'auth', 'rbac', 'secret', 'admin', 'execution', 'pack');
CREATE TYPE audit_outcome_enum AS ENUM ('success', 'failure', 'denied');
CREATE TYPE enforcement_condition_enum AS ENUM ('any', 'all');
CREATE TYPE enforcement_status_enum AS ENUM ('created', 'processed', 'disabled');
CREATE TYPE execution_status_enum AS ENUM ('requested', 'scheduling', 'scheduled', 'running', 'completed', 'failed', 'canceling', 'cancelled', 'timeout', 'abandoned');
CREATE TYPE inquiry_status_enum AS ENUM ('pending', 'responded', 'timeout', 'cancelled');
CREATE TYPE notification_status_enum AS ENUM ('created', 'queued', 'processing', 'error');
CREATE TYPE owner_type_enum AS ENUM ('system', 'identity', 'pack', 'action', 'sensor');
CREATE TYPE pack_environment_status_enum AS ENUM ('pending', 'installing', 'ready', 'failed', 'outdated');
CREATE TYPE policy_method_enum AS ENUM ('cancel', 'enqueue');
CREATE TYPE sensor_process_status_enum AS ENUM ('starting', 'running', 'stopped', 'failed', 'backoff');
CREATE TYPE work_queue_batch_mode_enum AS ENUM ('single', 'batch');
CREATE TYPE work_queue_dispatch_status_enum AS ENUM ('leased', 'dispatched', 'completed', 'failed', 'released', 'cancelled');
CREATE TYPE work_queue_item_status_enum AS ENUM ('queued', 'leased', 'retry', 'completed', 'failed', 'skipped', 'cancelled');
CREATE TYPE work_queue_update_strategy_enum AS ENUM ('immutable', 'replace', 'merge_patch');
CREATE TYPE worker_role_enum AS ENUM ('action', 'sensor');
CREATE TYPE worker_status_enum AS ENUM ('active', 'inactive', 'busy', 'error');
CREATE TYPE worker_type_enum AS ENUM ('local', 'remote', 'container');

CREATE TABLE action (
    id bigserial NOT NULL,
    ref text NOT NULL,
    pack bigint NOT NULL,
    pack_ref text NOT NULL,
    label text NOT NULL,
    description text,
    entrypoint text NOT NULL,
    runtime bigint,
    param_schema jsonb,
    out_schema jsonb,
    parameter_delivery text DEFAULT 'stdin'::text NOT NULL,
    parameter_format text DEFAULT 'json'::text NOT NULL,
    output_format text DEFAULT 'text'::text NOT NULL,
    is_adhoc boolean DEFAULT false NOT NULL,
    timeout_seconds integer,
    max_retries integer DEFAULT 0,
    runtime_version_constraint text,
    accesses_mcp boolean DEFAULT false NOT NULL,
    default_execution_permission_set_refs text[] DEFAULT ARRAY[]::text[] NOT NULL,
    log_retention_policy artifact_retention_enum,
    log_retention_limit integer,
    artifact_retention_policy artifact_retention_enum,
    artifact_retention_limit integer,
    created timestamptz DEFAULT now() NOT NULL,
    updated timestamptz DEFAULT now() NOT NULL,
    workflow_def bigint,
    required_worker_runtimes jsonb DEFAULT '{}'::jsonb NOT NULL,
    worker_selector jsonb DEFAULT '{}'::jsonb NOT NULL,
    worker_tolerations jsonb DEFAULT '[]'::jsonb NOT NULL,
    worker_affinity jsonb DEFAULT '{}'::jsonb NOT NULL,
    CONSTRAINT action_artifact_retention_limit_positive CHECK (((artifact_retention_limit IS NULL) OR (artifact_retention_limit > 0))),
    CONSTRAINT action_log_retention_limit_positive CHECK (((log_retention_limit IS NULL) OR (log_retention_limit > 0))),
    CONSTRAINT action_output_format_check CHECK ((output_format = ANY (ARRAY['text'::text, 'json'::text, 'yaml'::text, 'jsonl'::text]))),
    CONSTRAINT action_parameter_delivery_check CHECK ((parameter_delivery = ANY (ARRAY['stdin'::text, 'file'::text]))),
    CONSTRAINT action_parameter_format_check CHECK ((parameter_format = ANY (ARRAY['dotenv'::text, 'json'::text, 'yaml'::text]))),
    CONSTRAINT action_ref_format CHECK ((ref ~ '^[^.]+\.[^.]+$'::text)),
    CONSTRAINT action_ref_lowercase CHECK ((ref = lower(ref))),
    CONSTRAINT action_pkey PRIMARY KEY (id),
    CONSTRAINT action_ref_key UNIQUE (ref)
);
CREATE TABLE artifact (
    id bigserial NOT NULL,
    ref text NOT NULL,
    scope owner_type_enum DEFAULT 'system'::owner_type_enum NOT NULL,
    owner text DEFAULT ''::text NOT NULL,
    type artifact_type_enum NOT NULL,
    visibility artifact_visibility_enum DEFAULT 'private'::artifact_visibility_enum NOT NULL,
    name text,
    description text,
    content_type text,
    size_bytes bigint,
    data jsonb,
    retention_policy artifact_retention_enum DEFAULT 'versions'::artifact_retention_enum NOT NULL,
    retention_limit integer DEFAULT 1 NOT NULL,
    created timestamptz DEFAULT now() NOT NULL,
    updated timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT artifact_pkey PRIMARY KEY (id)
);
CREATE TABLE artifact_version (
    id bigserial NOT NULL,
    artifact bigint NOT NULL,
    version integer NOT NULL,
    execution bigint,
    content_type text,
    size_bytes bigint,
    content bytea,
    content_json jsonb,
    file_path text,
    meta jsonb,
    created_by text,
    created timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT artifact_version_pkey PRIMARY KEY (id),
    CONSTRAINT uq_artifact_version_artifact_version UNIQUE (artifact, version)
);
CREATE TABLE audit_event (
    id bigserial NOT NULL,
    created timestamptz DEFAULT now() NOT NULL,
    category audit_category_enum NOT NULL,
    event_type text NOT NULL,
    outcome audit_outcome_enum NOT NULL,
    actor_identity bigint,
    actor_login text,
    actor_token_type text,
    actor_ip inet,
    actor_user_agent text,
    request_id uuid,
    resource_type text,
    resource_id bigint,
    resource_ref text,
    http_method text,
    http_path text,
    http_status integer,
    duration_ms integer,
    details jsonb,
    correlation_chain jsonb,
    CONSTRAINT audit_event_pkey PRIMARY KEY (id, created)
);
CREATE TABLE enforcement (
    id bigserial NOT NULL,
    rule bigint,
    rule_ref text NOT NULL,
    trigger_ref text NOT NULL,
    config jsonb,
    event bigint,
    status enforcement_status_enum DEFAULT 'created'::enforcement_status_enum NOT NULL,
    payload jsonb NOT NULL,
    condition enforcement_condition_enum DEFAULT 'all'::enforcement_condition_enum NOT NULL,
    conditions jsonb DEFAULT '[]'::jsonb NOT NULL,
    created timestamptz DEFAULT now() NOT NULL,
    resolved_at timestamptz,
    CONSTRAINT enforcement_condition_check CHECK ((condition = ANY (ARRAY['any'::enforcement_condition_enum, 'all'::enforcement_condition_enum]))),
    CONSTRAINT enforcement_pkey PRIMARY KEY (id)
);
CREATE TABLE event (
    id bigserial NOT NULL,
    trigger bigint,
    trigger_ref text NOT NULL,
    config jsonb,
    payload jsonb,
    source bigint,
    source_ref text,
    created timestamptz DEFAULT now() NOT NULL,
    rule bigint,
    rule_ref text,
    CONSTRAINT event_pkey PRIMARY KEY (id, created)
);
CREATE TABLE execution (
    id bigserial NOT NULL,
    action bigint,
    action_ref text NOT NULL,
    config jsonb,
    env_vars jsonb,
    parent bigint,
    enforcement bigint,
    executor bigint,
    permission_set_refs text[] DEFAULT ARRAY[]::text[] NOT NULL,
    artifact_retention_policy artifact_retention_enum,
    artifact_retention_limit integer,
    worker_selector jsonb,
    worker_tolerations jsonb,
    worker_affinity jsonb,
    worker bigint,
    status execution_status_enum DEFAULT 'requested'::execution_status_enum NOT NULL,
    result jsonb,
    started_at timestamptz,
    created timestamptz DEFAULT now() NOT NULL,
    workflow_def bigint,
    workflow_task jsonb,
    retry_count integer DEFAULT 0 NOT NULL,
    max_retries integer,
    retry_reason text,
    original_execution bigint,
    updated timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT execution_artifact_retention_limit_positive CHECK (((artifact_retention_limit IS NULL) OR (artifact_retention_limit > 0))),
    CONSTRAINT execution_pkey PRIMARY KEY (id)
);
CREATE TABLE execution_admission_entry (
    id bigserial NOT NULL,
    state_id bigint NOT NULL,
    execution_id bigint NOT NULL,
    status text NOT NULL,
    queue_order bigint NOT NULL,
    enqueued_at timestamptz DEFAULT now() NOT NULL,
    activated_at timestamptz,
    created timestamptz DEFAULT now() NOT NULL,
    updated timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT execution_admission_entry_status_check CHECK ((status = ANY (ARRAY['active'::text, 'queued'::text]))),
    CONSTRAINT execution_admission_entry_pkey PRIMARY KEY (id),
    CONSTRAINT execution_admission_entry_execution_id_key UNIQUE (execution_id)
);
CREATE TABLE execution_admission_state (
    id bigserial NOT NULL,
    action_id bigint NOT NULL,
    group_key text,
    group_key_normalized text GENERATED ALWAYS AS (COALESCE(group_key, ''::text)) STORED,
    max_concurrent integer NOT NULL,
    next_queue_order bigint DEFAULT 1 NOT NULL,
    total_enqueued bigint DEFAULT 0 NOT NULL,
    total_completed bigint DEFAULT 0 NOT NULL,
    created timestamptz DEFAULT now() NOT NULL,
    updated timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT execution_admission_state_pkey PRIMARY KEY (id),
    CONSTRAINT uq_execution_admission_state_identity UNIQUE (action_id, group_key_normalized)
);
CREATE TABLE execution_history (
    time timestamptz DEFAULT now() NOT NULL,
    operation text NOT NULL,
    entity_id bigint NOT NULL,
    entity_ref text,
    changed_fields text[] DEFAULT '{}'::text[] NOT NULL,
    old_values jsonb,
    new_values jsonb
);
CREATE TABLE execution_secret_value (
    id bigserial NOT NULL,
    entity_type text NOT NULL,
    entity_id bigint NOT NULL,
    json_path text NOT NULL,
    source_kind text NOT NULL,
    source_ref text,
    encrypted_value jsonb NOT NULL,
    encryption_key_hash text,
    created timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT execution_secret_value_pkey PRIMARY KEY (id),
    CONSTRAINT execution_secret_value_entity_type_entity_id_json_path_key UNIQUE (entity_type, entity_id, json_path)
);
CREATE TABLE identity (
    id bigserial NOT NULL,
    login text NOT NULL,
    display_name text,
    password_hash text,
    attributes jsonb DEFAULT '{}'::jsonb NOT NULL,
    created timestamptz DEFAULT now() NOT NULL,
    updated timestamptz DEFAULT now() NOT NULL,
    frozen boolean DEFAULT false NOT NULL,
    CONSTRAINT identity_pkey PRIMARY KEY (id),
    CONSTRAINT identity_login_key UNIQUE (login)
);
CREATE TABLE identity_role_assignment (
    id bigserial NOT NULL,
    identity bigint NOT NULL,
    role text NOT NULL,
    source text DEFAULT 'manual'::text NOT NULL,
    managed boolean DEFAULT false NOT NULL,
    created timestamptz DEFAULT now() NOT NULL,
    updated timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT identity_role_assignment_pkey PRIMARY KEY (id),
    CONSTRAINT unique_identity_role_assignment UNIQUE (identity, role)
);
CREATE TABLE inquiry (
    id bigserial NOT NULL,
    execution bigint NOT NULL,
    prompt text NOT NULL,
    response_schema jsonb,
    assigned_to bigint,
    status inquiry_status_enum DEFAULT 'pending'::inquiry_status_enum NOT NULL,
    response jsonb,
    timeout_at timestamptz,
    responded_at timestamptz,
    created timestamptz DEFAULT now() NOT NULL,
    updated timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT inquiry_pkey PRIMARY KEY (id)
);
CREATE TABLE integration_token (
    id bigserial NOT NULL,
    identity bigint NOT NULL,
    label text NOT NULL,
    description text,
    token_hash text NOT NULL,
    token_prefix text NOT NULL,
    token_suffix text NOT NULL,
    created_by bigint,
    expires_at timestamptz,
    last_used_at timestamptz,
    last_used_ip text,
    revoked_at timestamptz,
    revoked_by bigint,
    revocation_reason text,
    created timestamptz DEFAULT now() NOT NULL,
    updated timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT integration_token_label_non_empty CHECK ((length(TRIM(BOTH FROM label)) > 0)),
    CONSTRAINT integration_token_revocation_consistent CHECK ((((revoked_at IS NULL) AND (revoked_by IS NULL) AND (revocation_reason IS NULL)) OR (revoked_at IS NOT NULL))),
    CONSTRAINT integration_token_pkey PRIMARY KEY (id),
    CONSTRAINT integration_token_token_hash_key UNIQUE (token_hash)
);
CREATE TABLE key (
    id bigserial NOT NULL,
    ref text NOT NULL,
    owner_type owner_type_enum NOT NULL,
    owner text,
    owner_identity bigint,
    owner_pack bigint,
    owner_pack_ref text,
    owner_action bigint,
    owner_action_ref text,
    owner_sensor bigint,
    owner_sensor_ref text,
    name text NOT NULL,
    encrypted boolean NOT NULL,
    encryption_key_hash text,
    value jsonb NOT NULL,
    created timestamptz DEFAULT now() NOT NULL,
    updated timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT key_ref_format CHECK ((ref ~ '^[^.]+(\.[^.]+)*$'::text)),
    CONSTRAINT key_ref_lowercase CHECK ((ref = lower(ref))),
    CONSTRAINT key_pkey PRIMARY KEY (id),
    CONSTRAINT key_ref_key UNIQUE (ref)
);
CREATE TABLE notification (
    id bigserial NOT NULL,
    channel text NOT NULL,
    entity_type text NOT NULL,
    entity text NOT NULL,
    activity text NOT NULL,
    state notification_status_enum DEFAULT 'created'::notification_status_enum NOT NULL,
    content jsonb,
    created timestamptz DEFAULT now() NOT NULL,
    updated timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT notification_pkey PRIMARY KEY (id)
);
CREATE TABLE pack (
    id bigserial NOT NULL,
    ref text NOT NULL,
    label text NOT NULL,
    description text,
    version text NOT NULL,
    conf_schema jsonb DEFAULT '{}'::jsonb NOT NULL,
    config jsonb DEFAULT '{}'::jsonb NOT NULL,
    meta jsonb DEFAULT '{}'::jsonb NOT NULL,
    tags text[] DEFAULT ARRAY[]::text[] NOT NULL,
    runtime_deps text[] DEFAULT ARRAY[]::text[] NOT NULL,
    dependencies text[] DEFAULT ARRAY[]::text[] NOT NULL,
    is_standard boolean DEFAULT false NOT NULL,
    installers jsonb DEFAULT '[]'::jsonb,
    source_type text,
    source_url text,
    source_ref text,
    checksum text,
    checksum_verified boolean DEFAULT false,
    installed_at timestamptz,
    installed_by bigint,
    installation_method text,
    storage_path text,
    created timestamptz DEFAULT now() NOT NULL,
    updated timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pack_ref_format CHECK ((ref ~ '^[a-z][a-z0-9_-]+$'::text)),
    CONSTRAINT pack_ref_lowercase CHECK ((ref = lower(ref))),
    CONSTRAINT pack_version_semver CHECK ((version ~ '^\d+\.\d+\.\d+(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$'::text)),
    CONSTRAINT pack_pkey PRIMARY KEY (id),
    CONSTRAINT pack_ref_key UNIQUE (ref)
);
CREATE TABLE pack_environment (
    id bigserial NOT NULL,
    pack bigint NOT NULL,
    pack_ref text NOT NULL,
    runtime bigint NOT NULL,
    runtime_ref text NOT NULL,
    runtime_version bigint,
    runtime_version_text text,
    env_key text GENERATED ALWAYS AS (
CASE
    WHEN (runtime_version IS NULL) THEN ((('base:'::text || (pack)::text) || ':'::text) || (runtime)::text)
    ELSE ((((('version:'::text || (pack)::text) || ':'::text) || (runtime)::text) || ':'::text) || (runtime_version)::text)
END) STORED,
    env_path text NOT NULL,
    status pack_environment_status_enum DEFAULT 'pending'::pack_environment_status_enum NOT NULL,
    manifest_checksum text,
    claimed_by_worker bigint,
    claim_expires_at timestamptz,
    installed_at timestamptz,
    last_verified timestamptz,
    install_log text,
    install_error text,
    metadata jsonb DEFAULT '{}'::jsonb,
    created timestamptz DEFAULT now() NOT NULL,
    updated timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pack_environment_pkey PRIMARY KEY (id),
    CONSTRAINT pack_environment_env_key_key UNIQUE (env_key)
);
CREATE TABLE pack_registry_index (
    id bigserial NOT NULL,
    name text,
    url text NOT NULL,
    position integer NOT NULL,
    enabled boolean DEFAULT true NOT NULL,
    headers jsonb DEFAULT '{}'::jsonb NOT NULL,
    created timestamptz DEFAULT now() NOT NULL,
    updated timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pack_registry_index_position_non_negative CHECK (("position" >= 0)),
    CONSTRAINT pack_registry_index_url_not_empty CHECK ((btrim(url) <> ''::text)),
    CONSTRAINT pack_registry_index_pkey PRIMARY KEY (id),
    CONSTRAINT pack_registry_index_url_key UNIQUE (url)
);
CREATE TABLE pack_test_execution (
    id bigserial NOT NULL,
    pack_id bigint NOT NULL,
    pack_version varchar(50) NOT NULL,
    execution_time timestamptz DEFAULT now() NOT NULL,
    trigger_reason varchar(50) NOT NULL,
    total_tests integer NOT NULL,
    passed integer NOT NULL,
    failed integer NOT NULL,
    skipped integer NOT NULL,
    pass_rate numeric(5,4) NOT NULL,
    duration_ms bigint NOT NULL,
    result jsonb NOT NULL,
    created timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT valid_pass_rate CHECK (((pass_rate >= 0.0) AND (pass_rate <= 1.0))),
    CONSTRAINT valid_test_counts CHECK (((total_tests >= 0) AND (passed >= 0) AND (failed >= 0) AND (skipped >= 0))),
    CONSTRAINT valid_trigger_reason CHECK (((trigger_reason)::text = ANY ((ARRAY['install'::character varying, 'update'::character varying, 'manual'::character varying, 'validation'::character varying])::text[]))),
    CONSTRAINT pack_test_execution_pkey PRIMARY KEY (id)
);
CREATE TABLE permission_assignment (
    id bigserial NOT NULL,
    identity bigint NOT NULL,
    permset bigint NOT NULL,
    created timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT permission_assignment_pkey PRIMARY KEY (id),
    CONSTRAINT unique_identity_permset UNIQUE (identity, permset)
);
CREATE TABLE permission_set (
    id bigserial NOT NULL,
    ref text NOT NULL,
    pack bigint,
    pack_ref text,
    label text,
    description text,
    grants jsonb DEFAULT '[]'::jsonb NOT NULL,
    created timestamptz DEFAULT now() NOT NULL,
    updated timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT permission_set_ref_format CHECK ((ref ~ '^[^.]+\.[^.]+$'::text)),
    CONSTRAINT permission_set_ref_lowercase CHECK ((ref = lower(ref))),
    CONSTRAINT permission_set_pkey PRIMARY KEY (id),
    CONSTRAINT permission_set_ref_key UNIQUE (ref)
);
CREATE TABLE permission_set_role_assignment (
    id bigserial NOT NULL,
    permset bigint NOT NULL,
    role text NOT NULL,
    created timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT permission_set_role_assignment_pkey PRIMARY KEY (id),
    CONSTRAINT unique_permission_set_role_assignment UNIQUE (permset, role)
);
CREATE TABLE policy (
    id bigserial NOT NULL,
    ref text NOT NULL,
    pack bigint,
    pack_ref text,
    action bigint,
    action_ref text,
    parameters text[] DEFAULT ARRAY[]::text[] NOT NULL,
    method policy_method_enum NOT NULL,
    threshold integer NOT NULL,
    name text NOT NULL,
    description text,
    tags text[] DEFAULT ARRAY[]::text[] NOT NULL,
    created timestamptz DEFAULT now() NOT NULL,
    updated timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT policy_ref_format CHECK ((ref ~ '^[^.]+\.[^.]+$'::text)),
    CONSTRAINT policy_ref_lowercase CHECK ((ref = lower(ref))),
    CONSTRAINT policy_threshold_positive CHECK ((threshold > 0)),
    CONSTRAINT policy_pkey PRIMARY KEY (id),
    CONSTRAINT policy_ref_key UNIQUE (ref)
);
CREATE TABLE queue_stats (
    action_id bigint NOT NULL,
    queue_length integer DEFAULT 0 NOT NULL,
    active_count integer DEFAULT 0 NOT NULL,
    max_concurrent integer DEFAULT 1 NOT NULL,
    oldest_enqueued_at timestamptz,
    total_enqueued bigint DEFAULT 0 NOT NULL,
    total_completed bigint DEFAULT 0 NOT NULL,
    last_updated timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT queue_stats_pkey PRIMARY KEY (action_id)
);
CREATE TABLE rule (
    id bigserial NOT NULL,
    ref text NOT NULL,
    pack bigint NOT NULL,
    pack_ref text NOT NULL,
    label text NOT NULL,
    description text,
    action bigint,
    action_ref text NOT NULL,
    trigger bigint,
    trigger_ref text NOT NULL,
    conditions jsonb DEFAULT '[]'::jsonb NOT NULL,
    action_params jsonb DEFAULT '{}'::jsonb,
    trigger_params jsonb DEFAULT '{}'::jsonb,
    permission_set_refs text[],
    enabled boolean NOT NULL,
    is_adhoc boolean DEFAULT false NOT NULL,
    owner_identity bigint,
    created timestamptz DEFAULT now() NOT NULL,
    updated timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT rule_ref_format CHECK ((ref ~ '^[^.]+\.[^.]+$'::text)),
    CONSTRAINT rule_ref_lowercase CHECK ((ref = lower(ref))),
    CONSTRAINT rule_pkey PRIMARY KEY (id),
    CONSTRAINT rule_ref_key UNIQUE (ref)
);
CREATE TABLE runtime (
    id bigserial NOT NULL,
    ref text NOT NULL,
    pack bigint,
    pack_ref text,
    description text,
    name text NOT NULL,
    aliases text[] DEFAULT '{}'::text[] NOT NULL,
    distributions jsonb NOT NULL,
    installation jsonb,
    installers jsonb DEFAULT '[]'::jsonb,
    execution_config jsonb DEFAULT '{}'::jsonb NOT NULL,
    auto_detected boolean DEFAULT false NOT NULL,
    detection_config jsonb DEFAULT '{}'::jsonb NOT NULL,
    created timestamptz DEFAULT now() NOT NULL,
    updated timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT runtime_ref_lowercase CHECK ((ref = lower(ref))),
    CONSTRAINT runtime_pkey PRIMARY KEY (id),
    CONSTRAINT runtime_ref_key UNIQUE (ref)
);
CREATE TABLE runtime_retention_config (
    id boolean DEFAULT true NOT NULL,
    enabled boolean DEFAULT true NOT NULL,
    check_interval_seconds bigint DEFAULT 3600 NOT NULL,
    batch_size bigint DEFAULT 1000 NOT NULL,
    dry_run boolean DEFAULT false NOT NULL,
    advisory_lock_key bigint DEFAULT 7821001 NOT NULL,
    created timestamptz DEFAULT now() NOT NULL,
    updated timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT runtime_retention_batch_size_positive CHECK ((batch_size > 0)),
    CONSTRAINT runtime_retention_check_interval_positive CHECK ((check_interval_seconds > 0)),
    CONSTRAINT runtime_retention_config_singleton CHECK ((id = true)),
    CONSTRAINT runtime_retention_config_pkey PRIMARY KEY (id)
);
CREATE TABLE runtime_retention_target_config (
    target text NOT NULL,
    max_age_seconds bigint,
    created timestamptz DEFAULT now() NOT NULL,
    updated timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT runtime_retention_target_max_age_positive CHECK (((max_age_seconds IS NULL) OR (max_age_seconds > 0))),
    CONSTRAINT runtime_retention_target_config_pkey PRIMARY KEY (target)
);
CREATE TABLE runtime_version (
    id bigserial NOT NULL,
    runtime bigint NOT NULL,
    runtime_ref text NOT NULL,
    version text NOT NULL,
    version_major integer,
    version_minor integer,
    version_patch integer,
    execution_config jsonb DEFAULT '{}'::jsonb NOT NULL,
    distributions jsonb DEFAULT '{}'::jsonb NOT NULL,
    is_default boolean DEFAULT false NOT NULL,
    available boolean DEFAULT true NOT NULL,
    verified_at timestamptz,
    meta jsonb DEFAULT '{}'::jsonb NOT NULL,
    created timestamptz DEFAULT now() NOT NULL,
    updated timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT runtime_version_pkey PRIMARY KEY (id),
    CONSTRAINT runtime_version_unique UNIQUE (runtime, version)
);
CREATE TABLE sensor (
    id bigserial NOT NULL,
    ref text NOT NULL,
    pack bigint,
    pack_ref text,
    label text NOT NULL,
    description text,
    entrypoint text NOT NULL,
    runtime bigint NOT NULL,
    runtime_ref text NOT NULL,
    enabled boolean NOT NULL,
    is_adhoc boolean DEFAULT false NOT NULL,
    param_schema jsonb,
    config jsonb,
    runtime_version_constraint text,
    worker_selector jsonb DEFAULT '{}'::jsonb NOT NULL,
    worker_tolerations jsonb DEFAULT '[]'::jsonb NOT NULL,
    worker_affinity jsonb DEFAULT '{}'::jsonb NOT NULL,
    log_retention_policy artifact_retention_enum,
    log_retention_limit integer,
    artifact_retention_policy artifact_retention_enum,
    artifact_retention_limit integer,
    created timestamptz DEFAULT now() NOT NULL,
    updated timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT sensor_artifact_retention_limit_positive CHECK (((artifact_retention_limit IS NULL) OR (artifact_retention_limit > 0))),
    CONSTRAINT sensor_log_retention_limit_positive CHECK (((log_retention_limit IS NULL) OR (log_retention_limit > 0))),
    CONSTRAINT sensor_ref_format CHECK ((ref ~ '^[^.]+\.[^.]+$'::text)),
    CONSTRAINT sensor_ref_lowercase CHECK ((ref = lower(ref))),
    CONSTRAINT sensor_pkey PRIMARY KEY (id),
    CONSTRAINT sensor_ref_key UNIQUE (ref)
);
CREATE TABLE sensor_process (
    id bigserial NOT NULL,
    sensor bigint NOT NULL,
    sensor_ref text NOT NULL,
    worker bigint NOT NULL,
    worker_name text NOT NULL,
    status sensor_process_status_enum DEFAULT 'starting'::sensor_process_status_enum NOT NULL,
    pid integer,
    consecutive_failures integer DEFAULT 0 NOT NULL,
    last_exit_code integer,
    last_signal integer,
    last_started_at timestamptz,
    last_stopped_at timestamptz,
    next_restart_at timestamptz,
    stderr_excerpt text,
    log_artifact_ref text,
    active_rule_count integer DEFAULT 0 NOT NULL,
    last_alerted_failure_count integer DEFAULT 0 NOT NULL,
    last_alerted_at timestamptz,
    meta jsonb DEFAULT '{}'::jsonb NOT NULL,
    created timestamptz DEFAULT now() NOT NULL,
    updated timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT sensor_process_active_rules_nonnegative CHECK ((active_rule_count >= 0)),
    CONSTRAINT sensor_process_alerted_failures_nonnegative CHECK ((last_alerted_failure_count >= 0)),
    CONSTRAINT sensor_process_failures_nonnegative CHECK ((consecutive_failures >= 0)),
    CONSTRAINT sensor_process_pid_positive CHECK (((pid IS NULL) OR (pid > 0))),
    CONSTRAINT sensor_process_pkey PRIMARY KEY (id)
);
CREATE TABLE sensor_process_history (
    time timestamptz DEFAULT now() NOT NULL,
    operation text NOT NULL,
    entity_id bigint NOT NULL,
    entity_ref text NOT NULL,
    worker_id bigint,
    worker_name text,
    changed_fields text[] DEFAULT '{}'::text[] NOT NULL,
    old_values jsonb,
    new_values jsonb
);
CREATE TABLE supervisor_run (
    id text NOT NULL,
    service_name text NOT NULL,
    instance_id text NOT NULL,
    started_at timestamptz DEFAULT now() NOT NULL,
    heartbeat_at timestamptz DEFAULT now() NOT NULL,
    stopped_at timestamptz,
    clean_shutdown boolean DEFAULT false NOT NULL,
    stop_reason text,
    meta jsonb DEFAULT '{}'::jsonb NOT NULL,
    CONSTRAINT supervisor_run_pkey PRIMARY KEY (id)
);
CREATE TABLE trigger (
    id bigserial NOT NULL,
    ref text NOT NULL,
    pack bigint,
    pack_ref text,
    label text NOT NULL,
    description text,
    enabled boolean DEFAULT true NOT NULL,
    is_adhoc boolean DEFAULT false NOT NULL,
    param_schema jsonb,
    out_schema jsonb,
    webhook_enabled boolean DEFAULT false NOT NULL,
    webhook_key varchar(64),
    webhook_config jsonb DEFAULT '{}'::jsonb,
    sensor bigint,
    sensor_ref text,
    created timestamptz DEFAULT now() NOT NULL,
    updated timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT trigger_ref_format CHECK ((ref ~ '^[^.]+\.[^.]+$'::text)),
    CONSTRAINT trigger_ref_lowercase CHECK ((ref = lower(ref))),
    CONSTRAINT trigger_pkey PRIMARY KEY (id),
    CONSTRAINT trigger_ref_key UNIQUE (ref),
    CONSTRAINT trigger_webhook_key_key UNIQUE (webhook_key)
);
CREATE TABLE webhook_event_log (
    id bigserial NOT NULL,
    trigger_id bigint NOT NULL,
    trigger_ref text NOT NULL,
    webhook_key varchar(64) NOT NULL,
    event_id bigint,
    source_ip text,
    user_agent text,
    payload_size_bytes integer,
    headers jsonb,
    status_code integer NOT NULL,
    error_message text,
    processing_time_ms integer,
    hmac_verified boolean,
    rate_limited boolean DEFAULT false NOT NULL,
    ip_allowed boolean,
    created timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT webhook_event_log_pkey PRIMARY KEY (id)
);
CREATE TABLE work_queue (
    id bigserial NOT NULL,
    ref text NOT NULL,
    pack bigint,
    pack_ref text,
    is_adhoc boolean DEFAULT false NOT NULL,
    label text NOT NULL,
    description text,
    enabled boolean DEFAULT true NOT NULL,
    accepting_new_items boolean DEFAULT true NOT NULL,
    dispatch_action bigint,
    dispatch_action_ref text NOT NULL,
    default_priority integer DEFAULT 0 NOT NULL,
    allow_pending_update boolean DEFAULT false NOT NULL,
    update_strategy work_queue_update_strategy_enum DEFAULT 'replace'::work_queue_update_strategy_enum NOT NULL,
    batch_mode work_queue_batch_mode_enum DEFAULT 'single'::work_queue_batch_mode_enum NOT NULL,
    item_schema jsonb DEFAULT '{}'::jsonb NOT NULL,
    action_params jsonb DEFAULT '{}'::jsonb NOT NULL,
    permission_set_refs text[],
    config jsonb DEFAULT '{}'::jsonb NOT NULL,
    created timestamptz DEFAULT now() NOT NULL,
    updated timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT work_queue_ref_format CHECK ((ref ~ '^[a-z][a-z0-9_-]*(\.[a-z0-9_-]+)*$'::text)),
    CONSTRAINT work_queue_ref_lowercase CHECK ((ref = lower(ref))),
    CONSTRAINT work_queue_pkey PRIMARY KEY (id),
    CONSTRAINT work_queue_ref_key UNIQUE (ref)
);
CREATE TABLE work_queue_dispatch (
    id bigserial NOT NULL,
    queue bigint NOT NULL,
    queue_ref text NOT NULL,
    execution bigint NOT NULL,
    status work_queue_dispatch_status_enum DEFAULT 'leased'::work_queue_dispatch_status_enum NOT NULL,
    leased_item_count integer NOT NULL,
    created timestamptz DEFAULT now() NOT NULL,
    updated timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT work_queue_dispatch_leased_item_count_nonnegative CHECK ((leased_item_count >= 0)),
    CONSTRAINT work_queue_dispatch_pkey PRIMARY KEY (id),
    CONSTRAINT work_queue_dispatch_execution_key UNIQUE (execution)
);
CREATE TABLE work_queue_item (
    id bigserial NOT NULL,
    queue bigint NOT NULL,
    queue_ref text NOT NULL,
    item_key text,
    priority integer DEFAULT 0 NOT NULL,
    status work_queue_item_status_enum DEFAULT 'queued'::work_queue_item_status_enum NOT NULL,
    payload jsonb NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    enqueue_source text NOT NULL,
    requested_by_identity bigint,
    requested_by_execution bigint,
    requested_by_enforcement bigint,
    leased_execution bigint,
    lease_token uuid,
    lease_expires_at timestamptz,
    attempt_count integer DEFAULT 0 NOT NULL,
    last_error jsonb,
    ack_summary jsonb,
    created timestamptz DEFAULT now() NOT NULL,
    updated timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT work_queue_item_attempt_count_nonnegative CHECK ((attempt_count >= 0)),
    CONSTRAINT work_queue_item_pkey PRIMARY KEY (id)
);
CREATE TABLE worker (
    id bigserial NOT NULL,
    name text NOT NULL,
    worker_type worker_type_enum NOT NULL,
    worker_role worker_role_enum NOT NULL,
    runtime bigint,
    host text,
    port integer,
    status worker_status_enum DEFAULT 'active'::worker_status_enum NOT NULL,
    capabilities jsonb,
    meta jsonb,
    last_heartbeat timestamptz,
    cordoned boolean DEFAULT false NOT NULL,
    cordon_reason text,
    cordoned_by bigint,
    cordoned_at timestamptz,
    created timestamptz DEFAULT now() NOT NULL,
    updated timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT worker_pkey PRIMARY KEY (id),
    CONSTRAINT worker_name_key UNIQUE (name)
);
CREATE TABLE worker_history (
    time timestamptz DEFAULT now() NOT NULL,
    operation text NOT NULL,
    entity_id bigint NOT NULL,
    entity_ref text,
    changed_fields text[] DEFAULT '{}'::text[] NOT NULL,
    old_values jsonb,
    new_values jsonb
);
CREATE TABLE workflow_definition (
    id bigserial NOT NULL,
    ref varchar(255) NOT NULL,
    pack bigint NOT NULL,
    pack_ref varchar(255) NOT NULL,
    label varchar(255) NOT NULL,
    description text,
    version varchar(50) NOT NULL,
    param_schema jsonb,
    out_schema jsonb,
    definition jsonb NOT NULL,
    tags text[] DEFAULT '{}'::text[],
    created timestamptz DEFAULT now() NOT NULL,
    updated timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT workflow_definition_pkey PRIMARY KEY (id),
    CONSTRAINT workflow_definition_ref_key UNIQUE (ref)
);
CREATE TABLE workflow_execution (
    id bigserial NOT NULL,
    execution bigint NOT NULL,
    workflow_def bigint NOT NULL,
    current_tasks text[] DEFAULT '{}'::text[],
    completed_tasks text[] DEFAULT '{}'::text[],
    failed_tasks text[] DEFAULT '{}'::text[],
    skipped_tasks text[] DEFAULT '{}'::text[],
    variables jsonb DEFAULT '{}'::jsonb,
    task_graph jsonb NOT NULL,
    status execution_status_enum DEFAULT 'requested'::execution_status_enum NOT NULL,
    error_message text,
    paused boolean DEFAULT false NOT NULL,
    pause_reason text,
    created timestamptz DEFAULT now() NOT NULL,
    updated timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT workflow_execution_pkey PRIMARY KEY (id),
    CONSTRAINT uq_workflow_execution_execution UNIQUE (execution)
);
CREATE TABLE workflow_task_dispatch (
    id bigserial NOT NULL,
    workflow_execution bigint NOT NULL,
    task_name text NOT NULL,
    task_index integer,
    execution_id bigint,
    created timestamptz DEFAULT now() NOT NULL,
    updated timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT workflow_task_dispatch_pkey PRIMARY KEY (id)
);

ALTER TABLE action ADD CONSTRAINT action_pack_fkey FOREIGN KEY (pack) REFERENCES pack ON DELETE CASCADE;
ALTER TABLE action ADD CONSTRAINT action_runtime_fkey FOREIGN KEY (runtime) REFERENCES runtime;
ALTER TABLE action ADD CONSTRAINT action_workflow_def_fkey FOREIGN KEY (workflow_def) REFERENCES workflow_definition ON DELETE CASCADE;
ALTER TABLE artifact_version ADD CONSTRAINT artifact_version_artifact_fkey FOREIGN KEY (artifact) REFERENCES artifact ON DELETE CASCADE;
ALTER TABLE enforcement ADD CONSTRAINT enforcement_rule_fkey FOREIGN KEY (rule) REFERENCES rule ON DELETE SET NULL;
ALTER TABLE event ADD CONSTRAINT event_rule_fkey FOREIGN KEY (rule) REFERENCES rule ON DELETE SET NULL;
ALTER TABLE event ADD CONSTRAINT event_source_fkey FOREIGN KEY (source) REFERENCES sensor ON DELETE SET NULL;
ALTER TABLE event ADD CONSTRAINT event_trigger_fkey FOREIGN KEY (trigger) REFERENCES trigger ON DELETE SET NULL;
ALTER TABLE execution ADD CONSTRAINT execution_action_fkey FOREIGN KEY (action) REFERENCES action ON DELETE SET NULL;
ALTER TABLE execution ADD CONSTRAINT execution_enforcement_fkey FOREIGN KEY (enforcement) REFERENCES enforcement ON DELETE SET NULL;
ALTER TABLE execution ADD CONSTRAINT execution_executor_fkey FOREIGN KEY (executor) REFERENCES identity ON DELETE SET NULL;
ALTER TABLE execution ADD CONSTRAINT execution_original_execution_fkey FOREIGN KEY (original_execution) REFERENCES execution ON DELETE SET NULL;
ALTER TABLE execution ADD CONSTRAINT execution_parent_fkey FOREIGN KEY (parent) REFERENCES execution ON DELETE SET NULL;
ALTER TABLE execution ADD CONSTRAINT execution_worker_fkey FOREIGN KEY (worker) REFERENCES worker ON DELETE SET NULL;
ALTER TABLE execution ADD CONSTRAINT execution_workflow_def_fkey FOREIGN KEY (workflow_def) REFERENCES workflow_definition ON DELETE SET NULL;
ALTER TABLE execution_admission_entry ADD CONSTRAINT execution_admission_entry_execution_id_fkey FOREIGN KEY (execution_id) REFERENCES execution ON DELETE CASCADE;
ALTER TABLE execution_admission_entry ADD CONSTRAINT execution_admission_entry_state_id_fkey FOREIGN KEY (state_id) REFERENCES execution_admission_state ON DELETE CASCADE;
ALTER TABLE execution_admission_state ADD CONSTRAINT execution_admission_state_action_id_fkey FOREIGN KEY (action_id) REFERENCES action ON DELETE CASCADE;
ALTER TABLE identity_role_assignment ADD CONSTRAINT identity_role_assignment_identity_fkey FOREIGN KEY (identity) REFERENCES identity ON DELETE CASCADE;
ALTER TABLE inquiry ADD CONSTRAINT inquiry_assigned_to_fkey FOREIGN KEY (assigned_to) REFERENCES identity ON DELETE SET NULL;
ALTER TABLE inquiry ADD CONSTRAINT inquiry_execution_fkey FOREIGN KEY (execution) REFERENCES execution ON DELETE CASCADE;
ALTER TABLE integration_token ADD CONSTRAINT integration_token_created_by_fkey FOREIGN KEY (created_by) REFERENCES identity ON DELETE SET NULL;
ALTER TABLE integration_token ADD CONSTRAINT integration_token_identity_fkey FOREIGN KEY (identity) REFERENCES identity ON DELETE CASCADE;
ALTER TABLE integration_token ADD CONSTRAINT integration_token_revoked_by_fkey FOREIGN KEY (revoked_by) REFERENCES identity ON DELETE SET NULL;
ALTER TABLE key ADD CONSTRAINT key_owner_action_fkey FOREIGN KEY (owner_action) REFERENCES action ON DELETE CASCADE;
ALTER TABLE key ADD CONSTRAINT key_owner_identity_fkey FOREIGN KEY (owner_identity) REFERENCES identity;
ALTER TABLE key ADD CONSTRAINT key_owner_pack_fkey FOREIGN KEY (owner_pack) REFERENCES pack;
ALTER TABLE key ADD CONSTRAINT key_owner_sensor_fkey FOREIGN KEY (owner_sensor) REFERENCES sensor ON DELETE CASCADE;
ALTER TABLE pack ADD CONSTRAINT fk_pack_installed_by FOREIGN KEY (installed_by) REFERENCES identity ON DELETE SET NULL;
ALTER TABLE pack_environment ADD CONSTRAINT pack_environment_claimed_by_worker_fkey FOREIGN KEY (claimed_by_worker) REFERENCES worker ON DELETE SET NULL;
ALTER TABLE pack_environment ADD CONSTRAINT pack_environment_pack_fkey FOREIGN KEY (pack) REFERENCES pack ON DELETE CASCADE;
ALTER TABLE pack_environment ADD CONSTRAINT pack_environment_runtime_fkey FOREIGN KEY (runtime) REFERENCES runtime ON DELETE CASCADE;
ALTER TABLE pack_environment ADD CONSTRAINT pack_environment_runtime_version_fkey FOREIGN KEY (runtime_version) REFERENCES runtime_version ON DELETE CASCADE;
ALTER TABLE pack_test_execution ADD CONSTRAINT pack_test_execution_pack_id_fkey FOREIGN KEY (pack_id) REFERENCES pack ON DELETE CASCADE;
ALTER TABLE permission_assignment ADD CONSTRAINT permission_assignment_identity_fkey FOREIGN KEY (identity) REFERENCES identity ON DELETE CASCADE;
ALTER TABLE permission_assignment ADD CONSTRAINT permission_assignment_permset_fkey FOREIGN KEY (permset) REFERENCES permission_set ON DELETE CASCADE;
ALTER TABLE permission_set ADD CONSTRAINT permission_set_pack_fkey FOREIGN KEY (pack) REFERENCES pack ON DELETE CASCADE;
ALTER TABLE permission_set_role_assignment ADD CONSTRAINT permission_set_role_assignment_permset_fkey FOREIGN KEY (permset) REFERENCES permission_set ON DELETE CASCADE;
ALTER TABLE policy ADD CONSTRAINT policy_action_fkey FOREIGN KEY (action) REFERENCES action ON DELETE CASCADE;
ALTER TABLE policy ADD CONSTRAINT policy_pack_fkey FOREIGN KEY (pack) REFERENCES pack ON DELETE CASCADE;
ALTER TABLE queue_stats ADD CONSTRAINT queue_stats_action_id_fkey FOREIGN KEY (action_id) REFERENCES action ON DELETE CASCADE;
ALTER TABLE rule ADD CONSTRAINT rule_action_fkey FOREIGN KEY (action) REFERENCES action ON DELETE SET NULL;
ALTER TABLE rule ADD CONSTRAINT rule_owner_identity_fkey FOREIGN KEY (owner_identity) REFERENCES identity ON DELETE SET NULL;
ALTER TABLE rule ADD CONSTRAINT rule_pack_fkey FOREIGN KEY (pack) REFERENCES pack ON DELETE CASCADE;
ALTER TABLE rule ADD CONSTRAINT rule_trigger_fkey FOREIGN KEY (trigger) REFERENCES trigger ON DELETE SET NULL;
ALTER TABLE runtime ADD CONSTRAINT runtime_pack_fkey FOREIGN KEY (pack) REFERENCES pack ON DELETE CASCADE;
ALTER TABLE runtime_version ADD CONSTRAINT runtime_version_runtime_fkey FOREIGN KEY (runtime) REFERENCES runtime ON DELETE CASCADE;
ALTER TABLE sensor ADD CONSTRAINT sensor_pack_fkey FOREIGN KEY (pack) REFERENCES pack ON DELETE CASCADE;
ALTER TABLE sensor ADD CONSTRAINT sensor_runtime_fkey FOREIGN KEY (runtime) REFERENCES runtime ON DELETE CASCADE;
ALTER TABLE sensor_process ADD CONSTRAINT sensor_process_sensor_fkey FOREIGN KEY (sensor) REFERENCES sensor ON DELETE CASCADE;
ALTER TABLE sensor_process ADD CONSTRAINT sensor_process_worker_fkey FOREIGN KEY (worker) REFERENCES worker ON DELETE CASCADE;
ALTER TABLE trigger ADD CONSTRAINT trigger_pack_fkey FOREIGN KEY (pack) REFERENCES pack ON DELETE CASCADE;
ALTER TABLE trigger ADD CONSTRAINT trigger_sensor_fk FOREIGN KEY (sensor) REFERENCES sensor ON DELETE SET NULL;
ALTER TABLE webhook_event_log ADD CONSTRAINT webhook_event_log_trigger_id_fkey FOREIGN KEY (trigger_id) REFERENCES trigger ON DELETE CASCADE;
ALTER TABLE work_queue ADD CONSTRAINT work_queue_dispatch_action_fkey FOREIGN KEY (dispatch_action) REFERENCES action ON DELETE SET NULL;
ALTER TABLE work_queue ADD CONSTRAINT work_queue_pack_fkey FOREIGN KEY (pack) REFERENCES pack ON DELETE SET NULL;
ALTER TABLE work_queue_dispatch ADD CONSTRAINT work_queue_dispatch_queue_fkey FOREIGN KEY (queue) REFERENCES work_queue ON DELETE CASCADE;
ALTER TABLE work_queue_item ADD CONSTRAINT work_queue_item_queue_fkey FOREIGN KEY (queue) REFERENCES work_queue ON DELETE CASCADE;
ALTER TABLE work_queue_item ADD CONSTRAINT work_queue_item_requested_by_identity_fkey FOREIGN KEY (requested_by_identity) REFERENCES identity ON DELETE SET NULL;
ALTER TABLE worker ADD CONSTRAINT worker_cordoned_by_fkey FOREIGN KEY (cordoned_by) REFERENCES identity ON DELETE SET NULL;
ALTER TABLE worker ADD CONSTRAINT worker_runtime_fkey FOREIGN KEY (runtime) REFERENCES runtime ON DELETE SET NULL;
ALTER TABLE workflow_definition ADD CONSTRAINT workflow_definition_pack_fkey FOREIGN KEY (pack) REFERENCES pack ON DELETE CASCADE;
ALTER TABLE workflow_execution ADD CONSTRAINT workflow_execution_execution_fkey FOREIGN KEY (execution) REFERENCES execution ON DELETE CASCADE;
ALTER TABLE workflow_execution ADD CONSTRAINT workflow_execution_workflow_def_fkey FOREIGN KEY (workflow_def) REFERENCES workflow_definition ON DELETE CASCADE;
ALTER TABLE workflow_task_dispatch ADD CONSTRAINT workflow_task_dispatch_execution_id_fkey FOREIGN KEY (execution_id) REFERENCES execution ON DELETE CASCADE;
ALTER TABLE workflow_task_dispatch ADD CONSTRAINT workflow_task_dispatch_workflow_execution_fkey FOREIGN KEY (workflow_execution) REFERENCES workflow_execution ON DELETE CASCADE;

CREATE INDEX idx_action_accesses_mcp ON action (accesses_mcp) WHERE (accesses_mcp = true);
CREATE INDEX idx_action_created ON action (created DESC);
CREATE INDEX idx_action_default_execution_permission_set_refs ON action USING gin (default_execution_permission_set_refs);
CREATE INDEX idx_action_is_adhoc ON action (is_adhoc) WHERE (is_adhoc = true);
CREATE INDEX idx_action_output_format ON action (output_format);
CREATE INDEX idx_action_pack ON action (pack);
CREATE INDEX idx_action_parameter_delivery ON action (parameter_delivery);
CREATE INDEX idx_action_parameter_format ON action (parameter_format);
CREATE INDEX idx_action_ref ON action (ref);
CREATE INDEX idx_action_runtime ON action (runtime);
CREATE INDEX idx_action_workflow_def ON action (workflow_def);
CREATE INDEX idx_artifact_created ON artifact (created DESC);
CREATE INDEX idx_artifact_name ON artifact (name);
CREATE INDEX idx_artifact_owner ON artifact (owner);
CREATE INDEX idx_artifact_ref ON artifact (ref);
CREATE INDEX idx_artifact_scope ON artifact (scope);
CREATE INDEX idx_artifact_scope_owner ON artifact (scope, owner);
CREATE INDEX idx_artifact_type ON artifact (type);
CREATE INDEX idx_artifact_type_created ON artifact (type, created DESC);
CREATE INDEX idx_artifact_visibility ON artifact (visibility);
CREATE INDEX idx_artifact_visibility_scope ON artifact (visibility, scope, owner);
CREATE INDEX idx_artifact_version_artifact ON artifact_version (artifact);
CREATE INDEX idx_artifact_version_artifact_execution ON artifact_version (artifact, execution) WHERE (execution IS NOT NULL);
CREATE INDEX idx_artifact_version_artifact_version ON artifact_version (artifact, version DESC);
CREATE INDEX idx_artifact_version_created ON artifact_version (created DESC);
CREATE INDEX idx_artifact_version_execution ON artifact_version (execution) WHERE (execution IS NOT NULL);
CREATE INDEX idx_artifact_version_file_path ON artifact_version (file_path) WHERE (file_path IS NOT NULL);
CREATE INDEX idx_audit_event_actor ON audit_event (actor_identity, created DESC) WHERE (actor_identity IS NOT NULL);
CREATE INDEX idx_audit_event_category ON audit_event (category, created DESC);
CREATE INDEX idx_audit_event_details ON audit_event USING gin (details);
CREATE INDEX idx_audit_event_event_type ON audit_event (event_type, created DESC);
CREATE INDEX idx_audit_event_outcome ON audit_event (outcome, created DESC);
CREATE INDEX idx_audit_event_request ON audit_event (request_id) WHERE (request_id IS NOT NULL);
CREATE INDEX idx_audit_event_resource ON audit_event (resource_type, resource_id, created DESC) WHERE (resource_type IS NOT NULL);
CREATE INDEX idx_audit_event_resource_ref ON audit_event (resource_ref, created DESC) WHERE (resource_ref IS NOT NULL);
CREATE INDEX idx_enforcement_conditions_gin ON enforcement USING gin (conditions);
CREATE INDEX idx_enforcement_created ON enforcement (created DESC);
CREATE INDEX idx_enforcement_event ON enforcement (event);
CREATE INDEX idx_enforcement_event_status ON enforcement (event, status);
CREATE INDEX idx_enforcement_payload_gin ON enforcement USING gin (payload);
CREATE INDEX idx_enforcement_rule ON enforcement (rule);
CREATE INDEX idx_enforcement_rule_ref ON enforcement (rule_ref);
CREATE INDEX idx_enforcement_rule_status ON enforcement (rule, status);
CREATE INDEX idx_enforcement_status ON enforcement (status);
CREATE INDEX idx_enforcement_status_created ON enforcement (status, created DESC);
CREATE INDEX idx_enforcement_trigger_ref ON enforcement (trigger_ref);
CREATE UNIQUE INDEX uq_enforcement_rule_event ON enforcement (rule, event) WHERE ((rule IS NOT NULL) AND (event IS NOT NULL));
CREATE INDEX idx_event_created ON event (created DESC);
CREATE INDEX idx_event_payload_gin ON event USING gin (payload);
CREATE INDEX idx_event_source ON event (source);
CREATE INDEX idx_event_source_created ON event (source, created DESC);
CREATE INDEX idx_event_trigger ON event (trigger);
CREATE INDEX idx_event_trigger_created ON event (trigger, created DESC);
CREATE INDEX idx_event_trigger_ref ON event (trigger_ref);
CREATE INDEX idx_event_trigger_ref_created ON event (trigger_ref, created DESC);
CREATE INDEX idx_execution_action ON execution (action);
CREATE INDEX idx_execution_action_ref ON execution (action_ref);
CREATE INDEX idx_execution_action_status ON execution (action, status);
CREATE INDEX idx_execution_created ON execution (created DESC);
CREATE INDEX idx_execution_enforcement ON execution (enforcement);
CREATE INDEX idx_execution_env_vars_gin ON execution USING gin (env_vars);
CREATE INDEX idx_execution_executor ON execution (executor);
CREATE INDEX idx_execution_executor_created ON execution (executor, created DESC);
CREATE INDEX idx_execution_original_execution ON execution (original_execution) WHERE (original_execution IS NOT NULL);
CREATE INDEX idx_execution_parent ON execution (parent);
CREATE INDEX idx_execution_parent_created ON execution (parent, created DESC);
CREATE INDEX idx_execution_permission_set_refs ON execution USING gin (permission_set_refs);
CREATE INDEX idx_execution_result_gin ON execution USING gin (result);
CREATE INDEX idx_execution_status ON execution (status);
CREATE INDEX idx_execution_status_created ON execution (status, created DESC);
CREATE INDEX idx_execution_status_retry ON execution (status, retry_count) WHERE ((status = 'failed'::execution_status_enum) AND (retry_count < COALESCE(max_retries, 0)));
CREATE INDEX idx_execution_status_updated ON execution (status, updated DESC);
CREATE INDEX idx_execution_top_level_created ON execution (created DESC) WHERE (parent IS NULL);
CREATE INDEX idx_execution_updated ON execution (updated DESC);
CREATE INDEX idx_execution_worker ON execution (worker);
CREATE INDEX idx_execution_worker_affinity_gin ON execution USING gin (worker_affinity) WHERE (worker_affinity IS NOT NULL);
CREATE INDEX idx_execution_worker_created ON execution (worker, created DESC);
CREATE INDEX idx_execution_worker_selector_gin ON execution USING gin (worker_selector) WHERE (worker_selector IS NOT NULL);
CREATE INDEX idx_execution_worker_tolerations_gin ON execution USING gin (worker_tolerations) WHERE (worker_tolerations IS NOT NULL);
CREATE UNIQUE INDEX uq_execution_top_level_enforcement ON execution (enforcement) WHERE ((enforcement IS NOT NULL) AND (parent IS NULL) AND ((config IS NULL) OR (NOT (config ? 'retry_of'::text))));
CREATE INDEX idx_execution_admission_entry_execution ON execution_admission_entry (execution_id);
CREATE INDEX idx_execution_admission_entry_state_status_queue ON execution_admission_entry (state_id, status, queue_order);
CREATE INDEX idx_execution_admission_state_action ON execution_admission_state (action_id);
CREATE INDEX idx_execution_history_changed_fields ON execution_history USING gin (changed_fields);
CREATE INDEX idx_execution_history_entity ON execution_history (entity_id, "time" DESC);
CREATE INDEX idx_execution_history_entity_ref ON execution_history (entity_ref, "time" DESC);
CREATE INDEX idx_execution_history_status_changes ON execution_history ("time" DESC) WHERE ('status'::text = ANY (changed_fields));
CREATE INDEX idx_execution_secret_value_entity ON execution_secret_value (entity_type, entity_id);
CREATE INDEX idx_identity_attributes_gin ON identity USING gin (attributes);
CREATE INDEX idx_identity_created ON identity (created DESC);
CREATE INDEX idx_identity_frozen ON identity (frozen);
CREATE INDEX idx_identity_login ON identity (login);
CREATE INDEX idx_identity_password_hash ON identity (password_hash) WHERE (password_hash IS NOT NULL);
CREATE UNIQUE INDEX uq_identity_oidc_issuer_sub ON identity ((((attributes -> 'oidc'::text) ->> 'issuer'::text)), (((attributes -> 'oidc'::text) ->> 'sub'::text))) WHERE (attributes ? 'oidc'::text);
CREATE INDEX idx_identity_role_assignment_identity ON identity_role_assignment (identity);
CREATE INDEX idx_identity_role_assignment_role ON identity_role_assignment (role);
CREATE INDEX idx_identity_role_assignment_source ON identity_role_assignment (source);
CREATE INDEX idx_inquiry_assigned_status ON inquiry (assigned_to, status);
CREATE INDEX idx_inquiry_assigned_to ON inquiry (assigned_to);
CREATE INDEX idx_inquiry_created ON inquiry (created DESC);
CREATE INDEX idx_inquiry_execution_status ON inquiry (execution, status);
CREATE INDEX idx_inquiry_response_gin ON inquiry USING gin (response);
CREATE INDEX idx_inquiry_status ON inquiry (status);
CREATE INDEX idx_inquiry_status_created ON inquiry (status, created DESC);
CREATE INDEX idx_inquiry_timeout_at ON inquiry (timeout_at) WHERE (timeout_at IS NOT NULL);
CREATE UNIQUE INDEX uq_inquiry_execution ON inquiry (execution) WHERE (execution IS NOT NULL);
CREATE INDEX idx_integration_token_active_lookup ON integration_token (token_hash) WHERE (revoked_at IS NULL);
CREATE INDEX idx_integration_token_created ON integration_token (created DESC);
CREATE INDEX idx_integration_token_expires_at ON integration_token (expires_at) WHERE (expires_at IS NOT NULL);
CREATE INDEX idx_integration_token_identity ON integration_token (identity);
CREATE INDEX idx_integration_token_last_used_at ON integration_token (last_used_at DESC);
CREATE INDEX idx_key_created ON key (created DESC);
CREATE INDEX idx_key_owner_action ON key (owner_action);
CREATE INDEX idx_key_owner_identity ON key (owner_identity);
CREATE INDEX idx_key_owner_identity_name ON key (owner_identity, name);
CREATE INDEX idx_key_owner_pack ON key (owner_pack);
CREATE INDEX idx_key_owner_pack_name ON key (owner_pack, name);
CREATE INDEX idx_key_owner_sensor ON key (owner_sensor);
CREATE INDEX idx_key_owner_type ON key (owner_type);
CREATE INDEX idx_key_owner_type_owner ON key (owner_type, owner);
CREATE INDEX idx_key_ref ON key (ref);
CREATE UNIQUE INDEX idx_key_unique ON key (owner_type, owner, name);
CREATE INDEX idx_notification_channel ON notification (channel);
CREATE INDEX idx_notification_channel_state ON notification (channel, state);
CREATE INDEX idx_notification_content_gin ON notification USING gin (content);
CREATE INDEX idx_notification_created ON notification (created DESC);
CREATE INDEX idx_notification_entity ON notification (entity);
CREATE INDEX idx_notification_entity_type ON notification (entity_type);
CREATE INDEX idx_notification_entity_type_entity ON notification (entity_type, entity);
CREATE INDEX idx_notification_state ON notification (state);
CREATE INDEX idx_notification_state_created ON notification (state, created DESC);
CREATE INDEX idx_pack_config_gin ON pack USING gin (config);
CREATE INDEX idx_pack_created ON pack (created DESC);
CREATE INDEX idx_pack_dependencies_gin ON pack USING gin (dependencies);
CREATE INDEX idx_pack_installed_at ON pack (installed_at DESC) WHERE (installed_at IS NOT NULL);
CREATE INDEX idx_pack_installed_by ON pack (installed_by) WHERE (installed_by IS NOT NULL);
CREATE INDEX idx_pack_is_standard ON pack (is_standard) WHERE (is_standard = true);
CREATE INDEX idx_pack_is_standard_created ON pack (is_standard, created DESC);
CREATE INDEX idx_pack_meta_gin ON pack USING gin (meta);
CREATE INDEX idx_pack_ref ON pack (ref);
CREATE INDEX idx_pack_runtime_deps_gin ON pack USING gin (runtime_deps);
CREATE INDEX idx_pack_source_type ON pack (source_type) WHERE (source_type IS NOT NULL);
CREATE INDEX idx_pack_tags_gin ON pack USING gin (tags);
CREATE INDEX idx_pack_version_created ON pack (version, created DESC);
CREATE INDEX idx_pack_environment_claim_expires_at ON pack_environment (claim_expires_at);
CREATE INDEX idx_pack_environment_claimed_by_worker ON pack_environment (claimed_by_worker);
CREATE INDEX idx_pack_environment_pack ON pack_environment (pack);
CREATE INDEX idx_pack_environment_pack_ref ON pack_environment (pack_ref);
CREATE INDEX idx_pack_environment_pack_runtime ON pack_environment (pack, runtime);
CREATE INDEX idx_pack_environment_runtime ON pack_environment (runtime);
CREATE INDEX idx_pack_environment_runtime_ref ON pack_environment (runtime_ref);
CREATE INDEX idx_pack_environment_runtime_version ON pack_environment (runtime_version);
CREATE INDEX idx_pack_environment_status ON pack_environment (status);
CREATE INDEX idx_pack_registry_index_order ON pack_registry_index (enabled, ("position"), id);
CREATE INDEX idx_pack_test_execution_pack_id ON pack_test_execution (pack_id);
CREATE INDEX idx_pack_test_execution_pass_rate ON pack_test_execution (pass_rate);
CREATE INDEX idx_pack_test_execution_time ON pack_test_execution (execution_time DESC);
CREATE INDEX idx_pack_test_execution_trigger ON pack_test_execution (trigger_reason);
CREATE INDEX idx_permission_assignment_created ON permission_assignment (created DESC);
CREATE INDEX idx_permission_assignment_identity ON permission_assignment (identity);
CREATE INDEX idx_permission_assignment_identity_created ON permission_assignment (identity, created DESC);
CREATE INDEX idx_permission_assignment_permset ON permission_assignment (permset);
CREATE INDEX idx_permission_assignment_permset_created ON permission_assignment (permset, created DESC);
CREATE INDEX idx_permission_set_created ON permission_set (created DESC);
CREATE INDEX idx_permission_set_pack ON permission_set (pack);
CREATE INDEX idx_permission_set_ref ON permission_set (ref);
CREATE INDEX idx_permission_set_role_assignment_permset ON permission_set_role_assignment (permset);
CREATE INDEX idx_permission_set_role_assignment_role ON permission_set_role_assignment (role);
CREATE INDEX idx_policy_action ON policy (action);
CREATE INDEX idx_policy_action_created ON policy (action, created DESC);
CREATE INDEX idx_policy_created ON policy (created DESC);
CREATE INDEX idx_policy_pack ON policy (pack);
CREATE INDEX idx_policy_pack_created ON policy (pack, created DESC);
CREATE INDEX idx_policy_parameters_gin ON policy USING gin (parameters);
CREATE INDEX idx_policy_ref ON policy (ref);
CREATE INDEX idx_policy_tags_gin ON policy USING gin (tags);
CREATE INDEX idx_queue_stats_last_updated ON queue_stats (last_updated);
CREATE INDEX idx_rule_action ON rule (action);
CREATE INDEX idx_rule_action_enabled ON rule (action, enabled);
CREATE INDEX idx_rule_action_params_gin ON rule USING gin (action_params);
CREATE INDEX idx_rule_created ON rule (created DESC);
CREATE INDEX idx_rule_enabled ON rule (enabled) WHERE (enabled = true);
CREATE INDEX idx_rule_is_adhoc ON rule (is_adhoc) WHERE (is_adhoc = true);
CREATE INDEX idx_rule_owner_identity ON rule (owner_identity);
CREATE INDEX idx_rule_pack ON rule (pack);
CREATE INDEX idx_rule_pack_enabled ON rule (pack, enabled);
CREATE INDEX idx_rule_permission_set_refs ON rule USING gin (permission_set_refs) WHERE (permission_set_refs IS NOT NULL);
CREATE INDEX idx_rule_ref ON rule (ref);
CREATE INDEX idx_rule_trigger ON rule (trigger);
CREATE INDEX idx_rule_trigger_enabled ON rule (trigger, enabled);
CREATE INDEX idx_rule_trigger_params_gin ON rule USING gin (trigger_params);
CREATE INDEX idx_runtime_aliases ON runtime USING gin (aliases);
CREATE INDEX idx_runtime_auto_detected ON runtime (auto_detected);
CREATE INDEX idx_runtime_created ON runtime (created DESC);
CREATE INDEX idx_runtime_detection_config ON runtime USING gin (detection_config);
CREATE INDEX idx_runtime_execution_config ON runtime USING gin (execution_config);
CREATE INDEX idx_runtime_name ON runtime (name);
CREATE INDEX idx_runtime_pack ON runtime (pack);
CREATE INDEX idx_runtime_ref ON runtime (ref);
CREATE INDEX idx_runtime_verification ON runtime USING gin (((distributions -> 'verification'::text)));
CREATE INDEX idx_runtime_version_available ON runtime_version (available) WHERE (available = true);
CREATE INDEX idx_runtime_version_components ON runtime_version (runtime, version_major, version_minor, version_patch);
CREATE INDEX idx_runtime_version_created ON runtime_version (created DESC);
CREATE INDEX idx_runtime_version_execution_config ON runtime_version USING gin (execution_config);
CREATE INDEX idx_runtime_version_is_default ON runtime_version (is_default) WHERE (is_default = true);
CREATE INDEX idx_runtime_version_meta ON runtime_version USING gin (meta);
CREATE INDEX idx_runtime_version_runtime ON runtime_version (runtime);
CREATE INDEX idx_runtime_version_runtime_ref ON runtime_version (runtime_ref);
CREATE INDEX idx_runtime_version_version ON runtime_version (version);
CREATE INDEX idx_sensor_created ON sensor (created DESC);
CREATE INDEX idx_sensor_enabled ON sensor (enabled) WHERE (enabled = true);
CREATE INDEX idx_sensor_is_adhoc ON sensor (is_adhoc) WHERE (is_adhoc = true);
CREATE INDEX idx_sensor_pack ON sensor (pack);
CREATE INDEX idx_sensor_ref ON sensor (ref);
CREATE INDEX idx_sensor_runtime ON sensor (runtime);
CREATE INDEX idx_sensor_worker_affinity_gin ON sensor USING gin (worker_affinity);
CREATE INDEX idx_sensor_worker_selector_gin ON sensor USING gin (worker_selector);
CREATE INDEX idx_sensor_worker_tolerations_gin ON sensor USING gin (worker_tolerations);
CREATE INDEX idx_sensor_process_meta_gin ON sensor_process USING gin (meta);
CREATE INDEX idx_sensor_process_next_restart ON sensor_process (next_restart_at) WHERE ((status = 'backoff'::sensor_process_status_enum) AND (next_restart_at IS NOT NULL));
CREATE INDEX idx_sensor_process_sensor ON sensor_process (sensor);
CREATE INDEX idx_sensor_process_sensor_ref ON sensor_process (sensor_ref);
CREATE INDEX idx_sensor_process_status ON sensor_process (status);
CREATE INDEX idx_sensor_process_worker ON sensor_process (worker);
CREATE INDEX idx_sensor_process_worker_status ON sensor_process (worker, status);
CREATE UNIQUE INDEX ux_sensor_process_sensor_ref_worker_name ON sensor_process (sensor_ref, worker_name);
CREATE UNIQUE INDEX ux_sensor_process_sensor_worker ON sensor_process (sensor, worker);
CREATE INDEX idx_sensor_process_history_changed_fields ON sensor_process_history USING gin (changed_fields);
CREATE INDEX idx_sensor_process_history_entity ON sensor_process_history (entity_id, "time" DESC);
CREATE INDEX idx_sensor_process_history_entity_ref ON sensor_process_history (entity_ref, "time" DESC);
CREATE INDEX idx_sensor_process_history_status_changes ON sensor_process_history ("time" DESC) WHERE ('status'::text = ANY (changed_fields));
CREATE INDEX idx_sensor_process_history_worker ON sensor_process_history (worker_id, "time" DESC);
CREATE INDEX idx_supervisor_run_service_started ON supervisor_run (service_name, started_at DESC);
CREATE INDEX idx_supervisor_run_unclean ON supervisor_run (service_name, started_at DESC) WHERE ((clean_shutdown = false) AND (stopped_at IS NULL));
CREATE INDEX idx_trigger_created ON trigger (created DESC);
CREATE INDEX idx_trigger_enabled ON trigger (enabled) WHERE (enabled = true);
CREATE INDEX idx_trigger_enabled_created ON trigger (enabled, created DESC) WHERE (enabled = true);
CREATE INDEX idx_trigger_pack ON trigger (pack);
CREATE INDEX idx_trigger_pack_enabled ON trigger (pack, enabled);
CREATE INDEX idx_trigger_ref ON trigger (ref);
CREATE INDEX idx_trigger_sensor ON trigger (sensor) WHERE (sensor IS NOT NULL);
CREATE INDEX idx_trigger_webhook_key ON trigger (webhook_key) WHERE (webhook_key IS NOT NULL);
CREATE INDEX idx_webhook_event_log_key_created ON webhook_event_log (webhook_key, created DESC);
CREATE INDEX idx_webhook_event_log_rate_limit ON webhook_event_log (trigger_id, webhook_key, source_ip, created DESC) WHERE (rate_limited = false);
CREATE INDEX idx_webhook_event_log_trigger_created ON webhook_event_log (trigger_id, created DESC);
CREATE INDEX idx_work_queue_config_gin ON work_queue USING gin (config);
CREATE INDEX idx_work_queue_created ON work_queue (created DESC);
CREATE INDEX idx_work_queue_dispatch_action ON work_queue (dispatch_action) WHERE (dispatch_action IS NOT NULL);
CREATE INDEX idx_work_queue_enabled ON work_queue (enabled) WHERE (enabled = true);
CREATE INDEX idx_work_queue_is_adhoc ON work_queue (is_adhoc);
CREATE INDEX idx_work_queue_pack ON work_queue (pack);
CREATE INDEX idx_work_queue_pack_ref ON work_queue (pack_ref) WHERE (pack_ref IS NOT NULL);
CREATE INDEX idx_work_queue_permission_set_refs ON work_queue USING gin (permission_set_refs) WHERE (permission_set_refs IS NOT NULL);
CREATE INDEX idx_work_queue_ref ON work_queue (ref);
CREATE INDEX idx_work_queue_dispatch_created ON work_queue_dispatch (created DESC);
CREATE INDEX idx_work_queue_dispatch_queue_ref ON work_queue_dispatch (queue_ref);
CREATE INDEX idx_work_queue_dispatch_queue_status ON work_queue_dispatch (queue, status, created DESC);
CREATE INDEX idx_work_queue_item_created ON work_queue_item (created DESC);
CREATE INDEX idx_work_queue_item_lease_token ON work_queue_item (lease_token) WHERE (lease_token IS NOT NULL);
CREATE INDEX idx_work_queue_item_leased_execution ON work_queue_item (leased_execution) WHERE (leased_execution IS NOT NULL);
CREATE INDEX idx_work_queue_item_metadata_gin ON work_queue_item USING gin (metadata);
CREATE INDEX idx_work_queue_item_payload_gin ON work_queue_item USING gin (payload);
CREATE INDEX idx_work_queue_item_queue_item_key ON work_queue_item (queue, item_key) WHERE (item_key IS NOT NULL);
CREATE INDEX idx_work_queue_item_queue_lease_expires ON work_queue_item (queue, lease_expires_at) WHERE (lease_expires_at IS NOT NULL);
CREATE INDEX idx_work_queue_item_queue_ready_order ON work_queue_item (queue, priority DESC, created, id) WHERE (status = ANY (ARRAY['queued'::work_queue_item_status_enum, 'retry'::work_queue_item_status_enum]));
CREATE INDEX idx_work_queue_item_queue_status_order ON work_queue_item (queue, status, priority DESC, created, id);
CREATE INDEX idx_work_queue_item_requested_by_identity ON work_queue_item (requested_by_identity) WHERE (requested_by_identity IS NOT NULL);
CREATE INDEX idx_worker_capabilities_gin ON worker USING gin (capabilities);
CREATE INDEX idx_worker_capabilities_health_status ON worker USING gin ((((capabilities -> 'health'::text) -> 'status'::text)));
CREATE INDEX idx_worker_cordoned ON worker (cordoned) WHERE (cordoned = true);
CREATE INDEX idx_worker_created ON worker (created DESC);
CREATE INDEX idx_worker_last_heartbeat ON worker (last_heartbeat DESC) WHERE (last_heartbeat IS NOT NULL);
CREATE INDEX idx_worker_meta_gin ON worker USING gin (meta);
CREATE INDEX idx_worker_name ON worker (name);
CREATE INDEX idx_worker_role ON worker (worker_role);
CREATE INDEX idx_worker_role_cordoned_status ON worker (worker_role, cordoned, status);
CREATE INDEX idx_worker_runtime ON worker (runtime);
CREATE INDEX idx_worker_status ON worker (status);
CREATE INDEX idx_worker_status_role ON worker (status, worker_role);
CREATE INDEX idx_worker_type ON worker (worker_type);
CREATE INDEX idx_worker_history_changed_fields ON worker_history USING gin (changed_fields);
CREATE INDEX idx_worker_history_entity ON worker_history (entity_id, "time" DESC);
CREATE INDEX idx_worker_history_entity_ref ON worker_history (entity_ref, "time" DESC);
CREATE INDEX idx_worker_history_status_changes ON worker_history ("time" DESC) WHERE ('status'::text = ANY (changed_fields));
CREATE INDEX idx_workflow_def_pack ON workflow_definition (pack);
CREATE INDEX idx_workflow_def_ref ON workflow_definition (ref);
CREATE INDEX idx_workflow_def_tags ON workflow_definition USING gin (tags);
CREATE INDEX idx_workflow_exec_paused ON workflow_execution (paused) WHERE (paused = true);
CREATE INDEX idx_workflow_exec_status ON workflow_execution (status);
CREATE INDEX idx_workflow_exec_workflow_def ON workflow_execution (workflow_def);
CREATE INDEX idx_workflow_task_dispatch_execution_id ON workflow_task_dispatch (execution_id) WHERE (execution_id IS NOT NULL);
CREATE UNIQUE INDEX uq_workflow_task_dispatch_identity ON workflow_task_dispatch (workflow_execution, task_name, COALESCE(task_index, '-1'::integer));
