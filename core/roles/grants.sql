-- The privileges of the roles, told once: the command `roles` and `doctor --as` read this file. A statement names
-- one table, or one function, and roles; a table that a schema does not have is skipped. Who inserts also
-- gets the sequences of the table.
--
-- A trigger runs with the privileges of the login that fires it. That is why every writer may insert into the
-- histories, audit_event and late_write, and why a worker may read enforcement: triggers of an existing
-- installation do.
--
-- Secrets are sealed in execution_secret_value, and keys are in key. viewer reads neither, nor
-- identity.password_hash, trigger.webhook_key, pack.config and work_queue_item.lease_token.

GRANT SELECT ON action TO engine, operator, viewer;
GRANT SELECT (id, pack, pack_ref, entrypoint, runtime, param_schema, out_schema, parameter_delivery,
    parameter_format, output_format, is_adhoc, timeout_seconds, runtime_version_constraint) ON action TO worker;
GRANT SELECT ON activity_minute TO engine, operator, viewer;
GRANT INSERT, UPDATE, DELETE ON activity_minute TO engine;
GRANT SELECT ON admission_blocked TO engine, operator, viewer;
GRANT INSERT, UPDATE, DELETE ON admission_blocked TO engine;
GRANT INSERT, UPDATE (ticket, reason, scope_id, until, need, wake), DELETE ON admission_blocked TO operator;
GRANT SELECT, UPDATE ON admission_epoch TO engine;
GRANT SELECT ON admission_epoch TO operator;
GRANT SELECT ON admission_scope TO engine, operator, viewer;
GRANT INSERT, UPDATE, DELETE ON admission_scope TO engine;
GRANT UPDATE (max_concurrent, active_count, policy, policy_ref, window_seconds, burst, next_at, period_start,
    used) ON admission_scope TO operator;
GRANT SELECT ON alert TO engine, operator, viewer;
GRANT INSERT, UPDATE, DELETE ON alert TO engine;
GRANT SELECT ON attune_schema_needs TO engine, operator, viewer, worker;
GRANT SELECT ON attune_schema_origin TO engine, operator, viewer;
GRANT SELECT (origin) ON attune_schema_origin TO worker;
GRANT SELECT ON attune_schema_version TO engine, operator, viewer, worker;
GRANT INSERT ON audit_event TO engine, operator, worker;
GRANT SELECT ON dead_letter TO engine, operator, viewer;
GRANT INSERT, UPDATE, DELETE ON dead_letter TO engine;
GRANT INSERT, UPDATE (fingerprint, decision, decided_at, decided_by, evidence) ON dead_letter TO operator;
GRANT SELECT ON enforcement TO engine, operator, viewer, worker;
GRANT INSERT, UPDATE, DELETE ON enforcement TO engine;
GRANT SELECT ON engine_replica TO engine, operator, viewer;
GRANT INSERT, UPDATE, DELETE ON engine_replica TO engine;
GRANT SELECT ON event TO engine, operator, viewer;
GRANT INSERT ON event TO engine;
GRANT SELECT ON event_matched TO engine, operator, viewer;
GRANT INSERT, DELETE ON event_matched TO engine;
GRANT SELECT ON event_matching TO engine, operator, viewer;
GRANT SELECT, INSERT, DELETE ON event_origin TO engine;
GRANT SELECT ON execution TO engine, operator, viewer;
GRANT INSERT, UPDATE, DELETE ON execution TO engine;
GRANT INSERT, UPDATE (action, worker, status, result, workflow_task, attempt, admitted_at, priority) ON execution TO
    operator;
GRANT SELECT (id, action, action_ref, config, parent, enforcement, executor, permission_set_refs, worker, status,
    result, started_at, workflow_task, attempt, finished_at), UPDATE (status, result, started_at) ON execution TO
    worker;
GRANT SELECT ON execution_admission_entry TO engine, operator, viewer;
GRANT INSERT, UPDATE, DELETE ON execution_admission_entry TO engine;
GRANT INSERT, UPDATE (id, lane, queue_order), DELETE ON execution_admission_entry TO operator;
GRANT SELECT ON execution_admission_state TO engine, operator, viewer;
GRANT INSERT, UPDATE, DELETE ON execution_admission_state TO engine;
GRANT INSERT, UPDATE (max_concurrent, next_queue_order, total_enqueued, total_completed, active_count,
    queued_count, head_order, unlimited, paused, pause_reason, queued_high, queued_low, head_high, head_low,
    front_order, lane_streak, limit_override, max_queued, queue_timeout_seconds, adaptive_limit, adaptive_at,
    paused_by, paused_at, resumed_at) ON execution_admission_state TO operator;
GRANT SELECT ON execution_cancel TO engine, operator, viewer;
GRANT INSERT, UPDATE, DELETE ON execution_cancel TO engine;
GRANT INSERT, UPDATE (actor, reason) ON execution_cancel TO operator;
GRANT SELECT (execution, at, actor, reason) ON execution_cancel TO worker;
GRANT SELECT ON execution_history TO engine, operator, viewer;
GRANT INSERT ON execution_history TO engine, operator, worker;
GRANT SELECT ON execution_holder TO engine, operator, viewer;
GRANT INSERT, UPDATE, DELETE ON execution_holder TO engine;
GRANT INSERT, UPDATE (worker), DELETE ON execution_holder TO operator;
GRANT SELECT (execution, worker) ON execution_holder TO worker;
GRANT SELECT ON execution_retry TO engine, operator, viewer;
GRANT INSERT, UPDATE ON execution_retry TO engine;
GRANT INSERT, UPDATE (waiting) ON execution_retry TO operator;
GRANT SELECT, INSERT, UPDATE, DELETE ON execution_secret_value TO engine;
GRANT SELECT, INSERT, UPDATE (source_kind, source_ref, encrypted_value, encryption_key_hash) ON
    execution_secret_value TO operator;
GRANT SELECT (entity_type, entity_id, json_path, source_kind, source_ref, encrypted_value, encryption_key_hash),
    INSERT (entity_type, entity_id, json_path, source_kind, source_ref, encrypted_value), UPDATE (source_kind,
    source_ref, encrypted_value, encryption_key_hash) ON execution_secret_value TO worker;
GRANT SELECT ON execution_slot TO engine, operator, viewer;
GRANT INSERT, DELETE ON execution_slot TO engine, operator;
GRANT SELECT (id, login, frozen) ON identity TO engine, operator, viewer;
GRANT SELECT ON identity_role_assignment TO engine;
GRANT SELECT ON inquiry TO engine, operator, viewer;
GRANT INSERT, UPDATE ON inquiry TO engine;
GRANT UPDATE (status, response, responded_at, updated, settled, responded_by, responder) ON inquiry TO operator;
GRANT SELECT ON inquiry_fault TO engine, operator, viewer;
GRANT INSERT ON inquiry_fault TO engine;
GRANT SELECT (ref, owner_type, owner_pack, owner_action, name, encrypted, encryption_key_hash, value) ON key TO
    worker;
GRANT SELECT, INSERT, DELETE ON late_write TO engine;
GRANT INSERT ON late_write TO operator, worker;
GRANT SELECT ON lost_holder TO engine, operator, viewer;
GRANT INSERT, UPDATE, DELETE ON lost_holder TO engine;
GRANT UPDATE, DELETE ON lost_holder TO operator;
GRANT SELECT ON lost_work TO engine, operator, viewer;
GRANT INSERT, UPDATE, DELETE ON lost_work TO engine;
GRANT SELECT ON message_trial TO engine, operator, viewer, worker;
GRANT INSERT, DELETE ON message_trial TO engine, operator, worker;
GRANT SELECT ON operator_audit TO engine, operator, viewer;
GRANT INSERT, UPDATE, DELETE ON operator_audit TO engine;
GRANT INSERT, UPDATE (request, outcome, error) ON operator_audit TO operator;
GRANT SELECT ON outbox TO engine, operator, viewer;
GRANT INSERT, UPDATE, DELETE ON outbox TO engine;
GRANT INSERT, UPDATE (claimed_at, attempts, owner), DELETE ON outbox TO operator;
GRANT SELECT, INSERT, UPDATE, DELETE ON outbox_owner TO engine;
GRANT SELECT, INSERT, UPDATE (renewed), DELETE ON outbox_owner TO operator;
GRANT SELECT (id, ref, label, description, version, conf_schema, tags, dependencies, is_standard, created,
    updated) ON pack TO engine, operator, viewer;
GRANT SELECT (config) ON pack TO engine;
GRANT SELECT ON permission_assignment TO engine;
GRANT SELECT ON permission_set TO engine;
GRANT SELECT ON permission_set_role_assignment TO engine;
GRANT SELECT ON policy TO engine, operator, viewer;
GRANT SELECT ON queue_stats TO engine, operator, viewer;
GRANT INSERT, UPDATE ON queue_stats TO engine;
GRANT INSERT, UPDATE (queue_length, active_count, max_concurrent, oldest_enqueued_at, total_enqueued,
    total_completed, last_updated) ON queue_stats TO operator;
GRANT SELECT, INSERT, UPDATE, DELETE ON request_key TO engine;
GRANT SELECT ON rule TO engine, operator, viewer;
GRANT SELECT ON runtime TO engine, operator, viewer;
GRANT SELECT (id, name, execution_config) ON runtime TO worker;
GRANT SELECT (id, runtime, version, execution_config, is_default, available) ON runtime_version TO worker;
GRANT SELECT ON trace_origin TO engine, operator, viewer;
GRANT INSERT, DELETE ON trace_origin TO engine;
GRANT SELECT, INSERT, UPDATE, DELETE ON trace_pending TO engine;
GRANT SELECT ON trace_seed TO engine, operator, viewer;
GRANT SELECT (id, ref, pack, pack_ref, label, description, enabled, is_adhoc, param_schema, out_schema,
    webhook_enabled, sensor_ref, created, updated) ON trigger TO engine, operator, viewer;
GRANT SELECT ON undelivered_dispatch TO engine, operator, viewer;
GRANT INSERT, DELETE ON undelivered_dispatch TO engine;
GRANT SELECT ON work_queue TO engine, operator, viewer;
GRANT SELECT ON work_queue_dispatch TO engine, operator, viewer;
GRANT SELECT (id, queue, priority, status, leased_execution, lease_expires_at, created) ON work_queue_item TO
    engine, operator, viewer;
GRANT SELECT ON worker TO engine, operator, viewer;
GRANT UPDATE, DELETE ON worker TO engine;
GRANT UPDATE (status, cordoned, cordon_reason, cordoned_by, cordoned_at, draining, deactivated_at), DELETE ON
    worker TO operator;
GRANT SELECT (id, name, worker_type, host, port, status, capabilities, cordoned, draining, incarnation,
    heartbeat_seen, deactivated_at), INSERT (name, worker_type, worker_role, host, port, status, capabilities,
    draining, incarnation), UPDATE (worker_type, worker_role, host, port, status, capabilities, last_heartbeat,
    draining, incarnation, deactivated_at) ON worker TO worker;
GRANT SELECT ON worker_history TO engine, operator, viewer;
GRANT INSERT ON worker_history TO engine, operator, worker;
GRANT SELECT ON worker_load TO engine, operator, viewer;
GRANT INSERT, UPDATE ON worker_load TO engine;
GRANT UPDATE (assigned) ON worker_load TO operator;
GRANT INSERT ON worker_load TO worker;
GRANT SELECT ON worker_probe TO engine, operator, viewer;
GRANT INSERT, UPDATE ON worker_probe TO engine;
GRANT SELECT ON workflow_definition TO engine, operator, viewer;
GRANT SELECT ON workflow_execution TO engine, operator, viewer;
GRANT INSERT, UPDATE ON workflow_execution TO engine;
GRANT UPDATE (status, paused, pause_reason) ON workflow_execution TO operator;
GRANT SELECT, INSERT, DELETE ON workflow_item TO engine;
GRANT SELECT ON workflow_log TO engine, operator, viewer;
GRANT INSERT ON workflow_log TO engine;
GRANT SELECT ON workflow_source TO engine, operator, viewer;
GRANT INSERT, UPDATE, DELETE ON workflow_source TO engine;
GRANT SELECT ON workflow_task_dispatch TO engine, operator, viewer;
GRANT INSERT, UPDATE ON workflow_task_dispatch TO engine;
GRANT UPDATE (execution_id) ON workflow_task_dispatch TO operator;

-- The partitions are created and dropped by functions with the privileges of their owner.
GRANT EXECUTE ON FUNCTION attune_partition_add TO engine;
GRANT EXECUTE ON FUNCTION attune_partition_default TO engine;
GRANT EXECUTE ON FUNCTION attune_partition_drop TO engine;
GRANT EXECUTE ON FUNCTION attune_partition_prune TO engine;
GRANT EXECUTE ON FUNCTION attune_partition_rest TO engine;
