-- The tables of work queues and of the audit log get the columns that existing
-- installations have, so that one statement reads both. Nothing of ours writes
-- work queue items; audit rows are kept.

-- +goose Up
DROP TABLE work_queue_dispatch;
DROP TABLE work_queue_item;
DROP TABLE work_queue;

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

ALTER TABLE work_queue ADD CONSTRAINT work_queue_dispatch_action_fkey FOREIGN KEY (dispatch_action) 
    REFERENCES action ON DELETE SET NULL;
ALTER TABLE work_queue ADD CONSTRAINT work_queue_pack_fkey FOREIGN KEY (pack) 
    REFERENCES pack ON DELETE SET NULL;
ALTER TABLE work_queue_dispatch ADD CONSTRAINT work_queue_dispatch_queue_fkey FOREIGN KEY (queue) 
    REFERENCES work_queue ON DELETE CASCADE;
ALTER TABLE work_queue_item ADD CONSTRAINT work_queue_item_queue_fkey FOREIGN KEY (queue) 
    REFERENCES work_queue ON DELETE CASCADE;
ALTER TABLE work_queue_item ADD CONSTRAINT work_queue_item_requested_by_identity_fkey FOREIGN KEY (requested_by_identity) 
    REFERENCES identity ON DELETE SET NULL;

CREATE INDEX idx_work_queue_dispatch_queue_status
    ON work_queue_dispatch (queue, status, created DESC);
CREATE INDEX idx_work_queue_item_leased_execution
    ON work_queue_item (leased_execution)
    WHERE (leased_execution IS NOT NULL);
CREATE INDEX idx_work_queue_item_queue_ready_order
    ON work_queue_item (queue, priority DESC, created, id)
    WHERE (status = ANY (ARRAY['queued'::work_queue_item_status_enum, 'retry'::work_queue_item_status_enum]));

ALTER TABLE audit_event RENAME TO audit_event_before;
ALTER INDEX audit_event_pkey RENAME TO audit_event_before_pkey;
ALTER TABLE audit_event_default RENAME TO audit_event_before_default;
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
) PARTITION BY RANGE (created);
CREATE TABLE audit_event_default PARTITION OF audit_event DEFAULT;
CREATE INDEX idx_audit_event_resource ON audit_event (resource_type, resource_id, created DESC) WHERE (resource_type IS NOT NULL);
INSERT INTO audit_event (created, category, event_type, outcome, actor_identity, resource_type, resource_id, resource_ref, details)
SELECT created, category, action, outcome, identity, entity_type, entity_id, entity_ref, details FROM audit_event_before ORDER BY id;
DROP TABLE audit_event_before;
SELECT attune_partitions_ahead('audit_event', 1, 7);

-- +goose Down
DROP TABLE work_queue_dispatch;
DROP TABLE work_queue_item;
DROP TABLE work_queue;
CREATE TABLE work_queue (
    id              bigserial PRIMARY KEY,
    ref             text NOT NULL UNIQUE,
    pack            bigint REFERENCES pack (id) ON DELETE CASCADE,
    pack_ref        text,
    label           text NOT NULL,
    description     text,
    action          bigint REFERENCES action (id) ON DELETE SET NULL,
    action_ref      text NOT NULL,
    action_params   jsonb NOT NULL DEFAULT '{}',
    enabled         boolean NOT NULL DEFAULT true,
    update_strategy work_queue_update_strategy_enum NOT NULL DEFAULT 'immutable',
    batch_mode      work_queue_batch_mode_enum NOT NULL DEFAULT 'single',
    batch_size      jsonb,
    concurrency     jsonb,
    retry_limit     jsonb,
    created         timestamptz NOT NULL DEFAULT now(),
    updated         timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE work_queue_item (
    id            bigserial PRIMARY KEY,
    queue         bigint NOT NULL REFERENCES work_queue (id) ON DELETE CASCADE,
    item_key      text,
    payload       jsonb NOT NULL DEFAULT '{}',
    priority      integer NOT NULL DEFAULT 0,
    status        work_queue_item_status_enum NOT NULL DEFAULT 'queued',
    attempt_count integer NOT NULL DEFAULT 0,
    lease_until   timestamptz,
    execution     bigint REFERENCES execution (id) ON DELETE SET NULL,
    summary       text,
    error         jsonb,
    created       timestamptz NOT NULL DEFAULT now(),
    updated       timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX idx_work_queue_item_lease ON work_queue_item (queue, priority DESC, created, id)
    WHERE status IN ('queued', 'retry');

CREATE TABLE work_queue_dispatch (
    id        bigserial PRIMARY KEY,
    queue     bigint NOT NULL REFERENCES work_queue (id) ON DELETE CASCADE,
    execution bigint NOT NULL UNIQUE REFERENCES execution (id) ON DELETE CASCADE,
    status    work_queue_dispatch_status_enum NOT NULL DEFAULT 'leased',
    item_ids  bigint[] NOT NULL DEFAULT '{}',
    created   timestamptz NOT NULL DEFAULT now(),
    updated   timestamptz NOT NULL DEFAULT now()
);

ALTER TABLE audit_event RENAME TO audit_event_after;
ALTER INDEX audit_event_pkey RENAME TO audit_event_after_pkey;
ALTER TABLE audit_event_default RENAME TO audit_event_after_default;
CREATE TABLE audit_event (
    id          bigserial NOT NULL,
    created     timestamptz NOT NULL DEFAULT now(),
    category    audit_category_enum NOT NULL,
    action      text NOT NULL,
    outcome     audit_outcome_enum NOT NULL DEFAULT 'success',
    identity    bigint,
    entity_type text,
    entity_id   bigint,
    entity_ref  text,
    details     jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (id, created)
) PARTITION BY RANGE (created);
CREATE TABLE audit_event_default PARTITION OF audit_event DEFAULT;
CREATE INDEX idx_audit_event_entity ON audit_event (entity_type, entity_id, created DESC);
INSERT INTO audit_event (created, category, action, outcome, identity, entity_type, entity_id, entity_ref, details)
SELECT created, category, event_type, outcome, actor_identity, resource_type, resource_id, resource_ref, coalesce(details, '{}')
FROM audit_event_after ORDER BY id;
DROP TABLE audit_event_after;
SELECT attune_partitions_ahead('audit_event', 1, 7);
