-- Inserts bench.executions executions, twelve a second up to now (a million is a day), bench.queued of them
-- queued. Triggers are off, so these statements also write the triggers' rows.
SET LOCAL session_replication_role = replica;
SET LOCAL synchronous_commit = off;

INSERT INTO pack (id, ref, label, version) VALUES (1000, 'bench', 'Bench', '1.0.0');
INSERT INTO action (id, ref, pack, pack_ref, label, entrypoint)
SELECT n, 'bench.action_' || n, 1000, 'bench', 'Action ' || n, 'core.noop' FROM generate_series(1001, 1200) n;
INSERT INTO policy (ref, action, action_ref, parameters, method, threshold, name)
SELECT 'bench.limit_' || n, n, 'bench.action_' || n, '{}', 'enqueue', 4, 'bench.limit_' || n FROM generate_series(1001, 1050) n;

INSERT INTO worker (id, name, worker_type, worker_role, status, capabilities, last_heartbeat, heartbeat_seen, host)
SELECT n, 'bench-worker-' || n, 'local', 'action', 'active',
       '{"runtimes": ["native"], "max_concurrent_executions": 20, "worker_version": "1.0.0", "labels": {}, "taints": []}', now(), now(), 'host-' || n
FROM generate_series(1, 40) n;
INSERT INTO worker_load (worker, assigned) SELECT n, 10 FROM generate_series(1, 40) n;
-- A replica of the engine that evaluates the alerts, and stays fresh for a day.
INSERT INTO engine_replica (id, host, version, pid, state, started, last_seen, loops, details)
VALUES (gen_random_uuid(), 'host-1', '1.0.0', 1, 'running', now(), now() + interval '1 day', jsonb_build_object('alerts', now()),
        jsonb_build_object('clock', now(), 'loops', '{"alerts": {"patience_ns": 60000000000}}'::jsonb));

-- Every other one of the newest 2 × bench.queued is queued; the 400 before them run.
CREATE TEMP TABLE made ON COMMIT DROP AS
SELECT n AS id, 1001 + n % 200 AS action, now() - interval '86.4 milliseconds' * (size.executions - n) AS created,
       CASE WHEN n > size.executions - 2 * size.queued AND n % 2 = 0 THEN 'requested'
            WHEN n > size.executions - 2 * size.queued - 400 AND n <= size.executions - 2 * size.queued THEN 'running'
            WHEN n % 25 = 1 THEN 'failed' WHEN n % 101 = 1 THEN 'timeout' WHEN n % 103 = 1 THEN 'cancelled' WHEN n % 107 = 1 THEN 'abandoned'
            ELSE 'completed' END::execution_status_enum AS status
FROM (SELECT current_setting('bench.executions')::bigint AS executions, current_setting('bench.queued')::bigint AS queued) size,
     generate_series(1, size.executions) n;

-- Half of the queued executions are in one queue.
UPDATE made SET action = 1001 WHERE status = 'requested' AND id % 4 = 0;

INSERT INTO execution (id, action, action_ref, config, parent, worker, status, result, started_at, created, updated, attempt,
                       finished_at, admitted_at)
SELECT m.id, m.action, 'bench.action_' || m.action, '{"message": "hello", "n": 12345}',
       CASE WHEN m.id % 20 = 0 THEN m.id - m.id % 1000 + 1 END,
       CASE WHEN m.status <> 'requested' THEN 1 + m.id % 40 END, m.status,
       CASE WHEN m.status = 'completed' THEN '{"stdout": "done"}' WHEN m.status IN ('failed', 'timeout') THEN '{"error": "exit code 1"}' END::jsonb,
       CASE WHEN m.status <> 'requested' THEN m.created + interval '1 second' END, m.created,
       CASE WHEN m.status = 'requested' THEN m.created ELSE least(now(), m.created + interval '3 seconds') END, 1,
       CASE WHEN m.status NOT IN ('requested', 'running') THEN least(now(), m.created + interval '3 seconds') END,
       CASE WHEN m.status <> 'requested' THEN m.created END
FROM made m ORDER BY m.id;

INSERT INTO execution_holder (execution, state_id, worker, attempt, granted_at)
SELECT e.id, m.action, e.worker, 1, m.created FROM made m JOIN execution e ON e.id = m.id WHERE m.status = 'running' ORDER BY m.id;

INSERT INTO execution_admission_entry (state_id, execution_id, status, queue_order, enqueued_at, activated_at)
SELECT m.action, m.id, CASE m.status WHEN 'running' THEN 'active' ELSE 'queued' END,
       row_number() OVER (PARTITION BY m.action ORDER BY m.id), m.created, CASE m.status WHEN 'running' THEN m.created END
FROM made m WHERE m.status IN ('requested', 'running') ORDER BY m.id;
INSERT INTO execution_admission_state (id, action_id, max_concurrent, next_queue_order, total_enqueued, total_completed, active_count, queued_count, head_order)
SELECT e.state_id, e.state_id, 4, max(e.queue_order) + 1, 2 * count(*), count(*), count(*) FILTER (WHERE e.status = 'active'),
       count(*) FILTER (WHERE e.status = 'queued'), coalesce(min(e.queue_order) FILTER (WHERE e.status = 'queued'), max(e.queue_order) + 1)
FROM execution_admission_entry e GROUP BY e.state_id;
INSERT INTO queue_stats (action_id, queue_length, active_count, max_concurrent, total_enqueued, total_completed, oldest_enqueued_at)
SELECT s.action_id, s.queued_count, s.active_count, s.max_concurrent, s.total_enqueued, s.total_completed, now() - interval '4 hours'
FROM execution_admission_state s;

INSERT INTO execution_history (time, operation, entity_id, entity_ref, changed_fields, old_values, new_values)
SELECT m.created + step.after, step.operation, m.id, 'bench.action_' || m.action, step.fields, step.was::jsonb,
       jsonb_build_object('status', CASE step.operation WHEN 'INSERT' THEN 'requested' ELSE m.status::text END)
FROM made m CROSS JOIN (VALUES (interval '0', 'INSERT', '{}'::text[], NULL), (interval '3 seconds', 'UPDATE', '{status}', '{"status": "running"}'))
    AS step (after, operation, fields, was)
WHERE step.operation = 'INSERT' OR m.status <> 'requested' ORDER BY 1;

INSERT INTO dead_letter (fingerprint, message_type, exchange, routing_key, queue, reason, body, execution, worker, decision, decided_at, decided_by, created, action_ref, died)
SELECT 'bench ' || m.id, 'execution.dispatch', 'attune.executions', 'execution.dispatch.worker.' || m.id % 40, 'worker.' || m.id % 40 || '.executions',
       'expired', '{}', m.id, 1 + m.id % 40, CASE WHEN m.id % 1000 > 1 THEN 'requeued' END, m.created, 'engine', m.created, 'bench.action_' || m.action, m.created
FROM made m WHERE m.id % 100 = 1 AND m.status <> 'requested' ORDER BY m.id;
INSERT INTO operator_audit (at, actor, source, action, target_type, target_id, target)
SELECT m.created, 'bench@host', 'attune-tui', 'execution.cancel', 'execution', m.id, m.id::text FROM made m WHERE m.id % 50 = 0 ORDER BY m.id;

INSERT INTO workflow_definition (id, ref, pack, pack_ref, label, version, definition)
VALUES (1000, 'bench.flow', 1000, 'bench', 'Flow', '1.0.0', '{"version": "1.0.0", "tasks": [{"name": "a", "action": "core.noop"}]}');
INSERT INTO workflow_execution (execution, workflow_def, task_graph, status, created, updated, open)
SELECT m.id, 1000, '{}', m.status, m.created, m.created, m.status = 'running' FROM made m WHERE m.id % 50 = 1 AND m.status <> 'requested' ORDER BY m.id;
INSERT INTO workflow_task_dispatch (workflow_execution, task_name, execution_id, settled)
SELECT w.id, 'a', w.execution + 1, NOT w.open FROM workflow_execution w ORDER BY w.id;
INSERT INTO inquiry (execution, prompt, status, timeout_at, created, settled)
SELECT m.id, 'Go on?', CASE WHEN m.status = 'running' THEN 'pending' ELSE 'responded' END::inquiry_status_enum, now() + interval '1 day', m.created, true
FROM made m WHERE m.id % 100 = 3 AND m.status <> 'requested' ORDER BY m.id;

SELECT setval('execution_id_seq', (SELECT max(id) FROM made)), setval('action_id_seq', 1200), setval('worker_id_seq', 40), setval('pack_id_seq', 1000),
       setval('execution_admission_state_id_seq', 1200), setval('workflow_definition_id_seq', 1000);
