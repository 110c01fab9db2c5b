-- The functions that triggers and views of an existing installation call. They
-- do what the installation's own functions do as far as another program sees it:
-- which notifications are sent with which keys, and which rows are written.
-- Functions that only the installation's API calls are left out.

CREATE FUNCTION update_updated_column() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.updated = now();
    RETURN NEW;
END
$$;

CREATE FUNCTION _jsonb_digest_summary(val jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN val IS NOT NULL THEN jsonb_build_object(
        'digest', 'md5:' || md5(val::text), 'size', octet_length(val::text), 'type', jsonb_typeof(val)) END
$$;

-- History: one row for each change of a tracked field.

CREATE FUNCTION record_execution_history() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    changed text[] := '{}';
    before  jsonb := '{}';
    after   jsonb := '{}';
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO execution_history (operation, entity_id, entity_ref, new_values)
        VALUES ('INSERT', NEW.id, NEW.action_ref, jsonb_build_object('status', NEW.status, 'action_ref', NEW.action_ref,
            'executor', NEW.executor, 'worker', NEW.worker, 'parent', NEW.parent, 'enforcement', NEW.enforcement,
            'started_at', NEW.started_at));
        RETURN NULL;
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO execution_history (operation, entity_id, entity_ref, old_values)
        VALUES ('DELETE', OLD.id, OLD.action_ref, jsonb_build_object('status', OLD.status));
        RETURN NULL;
    END IF;
    IF OLD.status IS DISTINCT FROM NEW.status THEN
        changed := changed || 'status'::text;
        before := before || jsonb_build_object('status', OLD.status);
        after := after || jsonb_build_object('status', NEW.status);
    END IF;
    IF OLD.result IS DISTINCT FROM NEW.result THEN
        changed := changed || 'result'::text;
        before := before || jsonb_build_object('result', _jsonb_digest_summary(OLD.result));
        after := after || jsonb_build_object('result', _jsonb_digest_summary(NEW.result));
    END IF;
    IF OLD.executor IS DISTINCT FROM NEW.executor THEN
        changed := changed || 'executor'::text;
        before := before || jsonb_build_object('executor', OLD.executor);
        after := after || jsonb_build_object('executor', NEW.executor);
    END IF;
    IF OLD.worker IS DISTINCT FROM NEW.worker THEN
        changed := changed || 'worker'::text;
        before := before || jsonb_build_object('worker', OLD.worker);
        after := after || jsonb_build_object('worker', NEW.worker);
    END IF;
    IF OLD.workflow_task IS DISTINCT FROM NEW.workflow_task THEN
        changed := changed || 'workflow_task'::text;
        before := before || jsonb_build_object('workflow_task', OLD.workflow_task);
        after := after || jsonb_build_object('workflow_task', NEW.workflow_task);
    END IF;
    IF OLD.env_vars IS DISTINCT FROM NEW.env_vars THEN
        changed := changed || 'env_vars'::text;
        before := before || jsonb_build_object('env_vars', OLD.env_vars);
        after := after || jsonb_build_object('env_vars', NEW.env_vars);
    END IF;
    IF OLD.started_at IS DISTINCT FROM NEW.started_at THEN
        changed := changed || 'started_at'::text;
        before := before || jsonb_build_object('started_at', OLD.started_at);
        after := after || jsonb_build_object('started_at', NEW.started_at);
    END IF;
    IF changed <> '{}' THEN
        INSERT INTO execution_history (operation, entity_id, entity_ref, changed_fields, old_values, new_values)
        VALUES ('UPDATE', NEW.id, NEW.action_ref, changed, before, after);
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION record_worker_history() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    tracked text[] := '{name,status,capabilities,meta,host,port,cordoned,cordon_reason,cordoned_by,cordoned_at}';
    before  jsonb := CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(OLD) END;
    after   jsonb := CASE WHEN TG_OP <> 'DELETE' THEN to_jsonb(NEW) END;
    changed text[];
BEGIN
    SELECT coalesce(array_agg(f), '{}') INTO changed FROM unnest(tracked) f WHERE before -> f IS DISTINCT FROM after -> f;
    IF TG_OP <> 'UPDATE' OR changed <> '{}' THEN
        INSERT INTO worker_history (operation, entity_id, entity_ref, changed_fields, old_values, new_values)
        SELECT TG_OP, coalesce((after ->> 'id')::bigint, (before ->> 'id')::bigint), coalesce(after ->> 'name', before ->> 'name'),
            CASE WHEN TG_OP = 'UPDATE' THEN changed ELSE '{}' END,
            (SELECT jsonb_object_agg(f, before -> f) FROM unnest(changed) f WHERE before IS NOT NULL),
            (SELECT jsonb_object_agg(f, after -> f) FROM unnest(changed) f WHERE after IS NOT NULL);
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION record_sensor_process_history() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    before jsonb := CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(OLD) END;
    after  jsonb := CASE WHEN TG_OP <> 'DELETE' THEN to_jsonb(NEW) END;
BEGIN
    IF TG_OP <> 'UPDATE' OR before -> 'status' IS DISTINCT FROM after -> 'status' THEN
        INSERT INTO sensor_process_history (operation, entity_id, entity_ref, worker_name, old_values, new_values)
        VALUES (TG_OP, coalesce((after ->> 'id')::bigint, (before ->> 'id')::bigint),
            coalesce(after ->> 'sensor_ref', before ->> 'sensor_ref'), coalesce(after ->> 'worker_name', before ->> 'worker_name'),
            before -> 'status', after -> 'status');
    END IF;
    RETURN NULL;
END
$$;

-- Audit: one row for each status of an execution.

CREATE FUNCTION audit_execution_lifecycle() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    kind text;
BEGIN
    IF TG_OP = 'UPDATE' AND OLD.status IS NOT DISTINCT FROM NEW.status THEN
        RETURN NULL;
    END IF;
    kind := CASE NEW.status
        WHEN 'requested' THEN 'execution.requested' WHEN 'scheduled' THEN 'execution.scheduled'
        WHEN 'running' THEN 'execution.started' WHEN 'completed' THEN 'execution.completed'
        WHEN 'failed' THEN 'execution.failed' WHEN 'timeout' THEN 'execution.timed_out'
        WHEN 'cancelled' THEN 'execution.cancelled' WHEN 'canceling' THEN 'execution.canceling'
        WHEN 'abandoned' THEN 'execution.abandoned' ELSE 'execution.status_changed' END;
    INSERT INTO audit_event (category, event_type, outcome, actor_identity, resource_type, resource_id, resource_ref,
        details, correlation_chain)
    VALUES ('execution', kind,
        CASE WHEN NEW.status IN ('failed', 'timeout', 'abandoned') THEN 'failure' ELSE 'success' END::audit_outcome_enum,
        NEW.executor, 'execution', NEW.id, NEW.action_ref,
        jsonb_strip_nulls(jsonb_build_object('operation', lower(TG_OP),
            'old_status', CASE WHEN TG_OP = 'UPDATE' THEN OLD.status END, 'new_status', NEW.status,
            'action_ref', NEW.action_ref, 'parent_execution_id', NEW.parent, 'enforcement_id', NEW.enforcement,
            'worker_id', NEW.worker, 'retry_count', NEW.retry_count, 'max_retries', NEW.max_retries,
            'original_execution', NEW.original_execution)),
        jsonb_strip_nulls(jsonb_build_object('execution_id', NEW.id, 'parent_execution_id', NEW.parent,
            'enforcement_id', NEW.enforcement)));
    RETURN NULL;
END
$$;

-- Notifications: JSON text on a channel. PostgreSQL refuses 8,000 bytes and more,
-- and the statement with it.

CREATE FUNCTION notify_execution_created() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    cause enforcement%ROWTYPE;
BEGIN
    SELECT * INTO cause FROM enforcement WHERE id = NEW.enforcement;
    PERFORM pg_notify('execution_created', json_build_object('entity_type', 'execution', 'entity_id', NEW.id, 'id', NEW.id,
        'action_id', NEW.action, 'action_ref', NEW.action_ref, 'status', NEW.status, 'enforcement', NEW.enforcement,
        'rule_ref', cause.rule_ref, 'trigger_ref', cause.trigger_ref, 'parent', NEW.parent, 'started_at', NEW.started_at,
        'workflow_task', NEW.workflow_task, 'created', NEW.created, 'updated', NEW.updated)::text);
    RETURN NULL;
END
$$;

CREATE FUNCTION notify_execution_status_changed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    cause enforcement%ROWTYPE;
BEGIN
    IF OLD.status IS DISTINCT FROM NEW.status THEN
        SELECT * INTO cause FROM enforcement WHERE id = NEW.enforcement;
        PERFORM pg_notify('execution_status_changed', json_build_object('entity_type', 'execution', 'entity_id', NEW.id,
            'id', NEW.id, 'action_id', NEW.action, 'action_ref', NEW.action_ref, 'status', NEW.status,
            'old_status', OLD.status, 'enforcement', NEW.enforcement, 'rule_ref', cause.rule_ref,
            'trigger_ref', cause.trigger_ref, 'parent', NEW.parent, 'started_at', NEW.started_at,
            'workflow_task', NEW.workflow_task, 'created', NEW.created, 'updated', NEW.updated)::text);
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION notify_workflow_execution_status_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('workflow_execution_status_changed', json_build_object('entity_type', 'execution', 'entity_id', NEW.id,
        'id', NEW.id, 'action_ref', NEW.action_ref, 'status', NEW.status, 'old_status', OLD.status,
        'workflow_def', NEW.workflow_def, 'parent', NEW.parent, 'created', NEW.created, 'updated', NEW.updated)::text);
    RETURN NULL;
END
$$;

CREATE FUNCTION notify_inquiry_created() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('inquiry_created', json_build_object('entity_type', 'inquiry', 'entity_id', NEW.id, 'id', NEW.id,
        'execution', NEW.execution, 'status', NEW.status, 'timeout_at', NEW.timeout_at, 'created', NEW.created)::text);
    RETURN NULL;
END
$$;

CREATE FUNCTION notify_inquiry_responded() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.status = 'responded' AND OLD.status IS DISTINCT FROM NEW.status THEN
        PERFORM pg_notify('inquiry_responded', json_build_object('entity_type', 'inquiry', 'entity_id', NEW.id,
            'id', NEW.id, 'execution', NEW.execution, 'status', NEW.status, 'updated', NEW.updated)::text);
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION notify_inquiry_timeout() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.status = 'timeout' AND OLD.status IS DISTINCT FROM NEW.status THEN
        PERFORM pg_notify('inquiry_timeout', json_build_object('entity_type', 'inquiry', 'entity_id', NEW.id,
            'id', NEW.id, 'execution', NEW.execution, 'status', NEW.status, 'timeout_at', NEW.timeout_at,
            'updated', NEW.updated)::text);
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION notify_event_created() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('event_created', json_build_object('entity_type', 'event', 'entity_id', NEW.id, 'id', NEW.id,
        'trigger', NEW.trigger, 'trigger_ref', NEW.trigger_ref, 'source', NEW.source, 'source_ref', NEW.source_ref,
        'rule', NEW.rule, 'rule_ref', NEW.rule_ref, 'has_payload', NEW.payload IS NOT NULL, 'created', NEW.created)::text);
    RETURN NULL;
END
$$;

CREATE FUNCTION notify_enforcement_created() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('enforcement_created', json_build_object('entity_type', 'enforcement', 'entity_id', NEW.id,
        'id', NEW.id, 'rule', NEW.rule, 'rule_ref', NEW.rule_ref, 'trigger_ref', NEW.trigger_ref, 'event', NEW.event,
        'status', NEW.status, 'condition', NEW.condition, 'created', NEW.created, 'resolved_at', NEW.resolved_at)::text);
    RETURN NULL;
END
$$;

CREATE FUNCTION notify_enforcement_status_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.status IS DISTINCT FROM NEW.status THEN
        PERFORM pg_notify('enforcement_status_changed', json_build_object('entity_type', 'enforcement', 'entity_id', NEW.id,
            'id', NEW.id, 'rule', NEW.rule, 'rule_ref', NEW.rule_ref, 'trigger_ref', NEW.trigger_ref, 'event', NEW.event,
            'status', NEW.status, 'old_status', OLD.status, 'condition', NEW.condition, 'created', NEW.created,
            'resolved_at', NEW.resolved_at)::text);
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION notify_on_insert() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify(NEW.channel, json_build_object('id', NEW.id, 'entity_type', NEW.entity_type, 'entity', NEW.entity,
        'activity', NEW.activity)::text);
    RETURN NULL;
END
$$;

CREATE FUNCTION notify_artifact_created() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('artifact_created', json_build_object('entity_type', 'artifact', 'entity_id', NEW.id, 'id', NEW.id,
        'ref', NEW.ref, 'type', NEW.type, 'created', NEW.created)::text);
    RETURN NULL;
END
$$;

CREATE FUNCTION notify_artifact_updated() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('artifact_updated', json_build_object('entity_type', 'artifact', 'entity_id', NEW.id, 'id', NEW.id,
        'ref', NEW.ref, 'type', NEW.type, 'created', NEW.created, 'updated', NEW.updated)::text);
    RETURN NULL;
END
$$;

CREATE FUNCTION notify_work_queue_created() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('work_queue_created', json_build_object('entity_type', 'work_queue', 'entity_id', NEW.id, 'id', NEW.id,
        'ref', NEW.ref, 'enabled', NEW.enabled, 'created', NEW.created, 'updated', NEW.updated)::text);
    RETURN NULL;
END
$$;

CREATE FUNCTION notify_work_queue_updated() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('work_queue_updated', json_build_object('entity_type', 'work_queue', 'entity_id', NEW.id, 'id', NEW.id,
        'ref', NEW.ref, 'enabled', NEW.enabled, 'created', NEW.created, 'updated', NEW.updated)::text);
    RETURN NULL;
END
$$;

CREATE FUNCTION notify_work_queue_item_created() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('work_queue_item_created', json_build_object('entity_type', 'work_queue_item', 'entity_id', NEW.id,
        'id', NEW.id, 'queue', NEW.queue, 'item_key', NEW.item_key, 'status', NEW.status, 'created', NEW.created)::text);
    RETURN NULL;
END
$$;

CREATE FUNCTION notify_work_queue_item_updated() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('work_queue_item_updated', json_build_object('entity_type', 'work_queue_item', 'entity_id', NEW.id,
        'id', NEW.id, 'queue', NEW.queue, 'item_key', NEW.item_key, 'status', NEW.status, 'old_status', OLD.status,
        'updated', NEW.updated)::text);
    RETURN NULL;
END
$$;

-- The rest.

CREATE FUNCTION enforce_artifact_retention() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    kept artifact%ROWTYPE;
BEGIN
    SELECT * INTO kept FROM artifact WHERE id = NEW.artifact;
    IF kept.retention_policy = 'versions' THEN
        DELETE FROM artifact_version v WHERE v.id IN (
            SELECT o.id FROM artifact_version o WHERE o.artifact = NEW.artifact
            ORDER BY o.version DESC OFFSET greatest(kept.retention_limit, 1));
    END IF;
    UPDATE artifact SET size_bytes = NEW.size_bytes, content_type = NEW.content_type WHERE id = NEW.artifact;
    RETURN NULL;
END
$$;

CREATE FUNCTION validate_key_owner() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.owner_type = 'system' THEN
        NEW.owner := 'system';
    ELSIF num_nonnulls(NEW.owner_identity, NEW.owner_pack, NEW.owner_action, NEW.owner_sensor) <> 1 THEN
        RAISE EXCEPTION 'exactly one owner must be set for owner_type %', NEW.owner_type;
    ELSE
        NEW.owner := coalesce(NEW.owner_identity, NEW.owner_pack, NEW.owner_action, NEW.owner_sensor)::text;
    END IF;
    RETURN NEW;
END
$$;

CREATE FUNCTION update_pack_test_metadata() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE pack SET meta = meta || jsonb_build_object('last_tested_at', now()) WHERE id = NEW.pack_id;
    RETURN NULL;
END
$$;

CREATE FUNCTION get_worker_queue_depth(worker_id_param bigint) RETURNS integer LANGUAGE sql STABLE AS $$
    SELECT count(*)::integer FROM execution WHERE worker = worker_id_param AND status IN ('scheduled', 'running')
$$;

CREATE FUNCTION is_execution_retriable(execution_id_param bigint) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM execution WHERE id = execution_id_param AND status = 'failed'
        AND retry_count < coalesce(max_retries, 0))
$$;
