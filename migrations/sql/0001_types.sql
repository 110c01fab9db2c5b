-- The enumerated types of the platform. The order of the labels is part of the
-- protocol: ORDER BY on such a column follows it.

-- +goose Up
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


-- Where this schema came from. A schema that existed before keeps its own
-- indexes and triggers; later files look here to know.
CREATE TABLE attune_schema_origin (
    origin  text PRIMARY KEY CHECK (origin IN ('own', 'adopted')),
    created timestamptz NOT NULL DEFAULT now()
);
INSERT INTO attune_schema_origin (origin) VALUES ('own');

-- +goose Down
DROP TABLE attune_schema_origin;
DROP TYPE audit_outcome_enum;
DROP TYPE audit_category_enum;
DROP TYPE work_queue_dispatch_status_enum;
DROP TYPE work_queue_item_status_enum;
DROP TYPE work_queue_batch_mode_enum;
DROP TYPE work_queue_update_strategy_enum;
DROP TYPE pack_environment_status_enum;
DROP TYPE sensor_process_status_enum;
DROP TYPE artifact_visibility_enum;
DROP TYPE artifact_retention_enum;
DROP TYPE artifact_type_enum;
DROP TYPE notification_status_enum;
DROP TYPE owner_type_enum;
DROP TYPE worker_status_enum;
DROP TYPE worker_role_enum;
DROP TYPE worker_type_enum;
DROP TYPE policy_method_enum;
DROP TYPE inquiry_status_enum;
DROP TYPE enforcement_condition_enum;
DROP TYPE enforcement_status_enum;
DROP TYPE execution_status_enum;
