-- The views that read tables of the engine. A column that a view reads cannot
-- be dropped or change its type.

CREATE VIEW healthy_workers AS
SELECT w.id, w.name, w.worker_type, w.worker_role, w.runtime, w.status, w.capabilities, w.last_heartbeat,
    coalesce(w.capabilities -> 'health' ->> 'status', 'healthy') AS health_status,
    coalesce((w.capabilities -> 'health' ->> 'queue_depth')::integer, 0) AS queue_depth,
    coalesce((w.capabilities -> 'health' ->> 'consecutive_failures')::integer, 0) AS consecutive_failures
FROM worker w
WHERE w.status = 'active' AND w.last_heartbeat > now() - interval '30 seconds'
  AND coalesce(w.capabilities -> 'health' ->> 'status', 'healthy') IN ('healthy', 'degraded');

CREATE VIEW workflow_execution_summary AS
SELECT x.id, x.execution, d.ref AS workflow_ref, d.label AS workflow_label, d.version AS workflow_version, x.status, x.paused,
    array_length(x.current_tasks, 1) AS current_task_count, array_length(x.completed_tasks, 1) AS completed_task_count,
    array_length(x.failed_tasks, 1) AS failed_task_count, array_length(x.skipped_tasks, 1) AS skipped_task_count,
    x.error_message, x.created, x.updated
FROM workflow_execution x JOIN workflow_definition d ON d.id = x.workflow_def;

CREATE VIEW workflow_action_link AS
SELECT d.id AS workflow_def_id, d.ref AS workflow_ref, d.label, d.version, a.id AS action_id, a.ref AS action_ref,
    a.pack AS pack_id, a.pack_ref
FROM workflow_definition d LEFT JOIN action a ON a.workflow_def = d.id;

CREATE VIEW execution_volume_hourly AS
SELECT date_trunc('hour', e.created) AS bucket, e.action_ref, e.status AS initial_status, count(*) AS execution_count
FROM execution e GROUP BY 1, 2, 3;

CREATE VIEW enforcement_volume_hourly AS
SELECT date_trunc('hour', n.created) AS bucket, n.rule_ref, count(*) AS enforcement_count FROM enforcement n GROUP BY 1, 2;

CREATE VIEW event_volume_hourly AS
SELECT date_trunc('hour', v.created) AS bucket, v.trigger_ref, count(*) AS event_count FROM event v GROUP BY 1, 2;

CREATE VIEW execution_status_hourly AS
SELECT date_trunc('hour', h.time) AS bucket, h.entity_ref AS action_ref, h.new_values ->> 'status' AS new_status,
    count(*) AS transition_count
FROM execution_history h WHERE 'status' = ANY (h.changed_fields) GROUP BY 1, 2, 3;

CREATE VIEW execution_throughput_hourly AS
SELECT date_trunc('hour', h.time) AS bucket, h.entity_ref AS action_ref, count(*) AS execution_count
FROM execution_history h WHERE h.operation = 'INSERT' GROUP BY 1, 2;

CREATE VIEW worker_status_hourly AS
SELECT date_trunc('hour', h.time) AS bucket, h.entity_ref AS worker_name, h.new_values ->> 'status' AS new_status,
    count(*) AS transition_count
FROM worker_history h WHERE 'status' = ANY (h.changed_fields) GROUP BY 1, 2, 3;
