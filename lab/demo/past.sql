-- An hour of made-up history, so that every chart has something to show at once. Its minutes are written as an engine
-- would have recorded them, without their executions; only the orders have all of their rows. Each row of these
-- names itself: executions in config and result, workers by name and meta, dead letters, answers and alerts by who
-- decided. It runs before any engine; the caller has set demo.since (nothing is written for before that), demo.workers
-- (how many) and demo.mark (the words).
--
-- A wave every 20 minutes, a deployment 41 minutes ago that stops nearly everything and
-- is caught up with, a burst 24 minutes ago, and a morning whose load grows to that of the
-- live run, so that its first minute fits in. The last 7 minutes are healthy.
CREATE TEMP TABLE past_minute ON COMMIT DROP AS
SELECT m.ago, date_trunc('minute', now()) - make_interval(mins => m.ago) AS at,
       ((1100 + 350 * sin(m.ago * 2 * pi() / 20) + 2600 * exp(-m.ago / 10.0))
        * CASE WHEN m.ago = 41 THEN 0.3 WHEN m.ago IN (39, 40) THEN 0.04 WHEN m.ago = 38 THEN 0.5
               WHEN m.ago IN (36, 37) THEN 1.7 WHEN m.ago BETWEEN 21 AND 24 THEN 2.2 ELSE 1 END)::int AS n,
       -- for how many seconds what arrives has to wait for a limit
       CASE WHEN m.ago BETWEEN 39 AND 41 THEN 25 WHEN m.ago = 38 THEN 10 WHEN m.ago IN (20, 24) THEN 12
            WHEN m.ago IN (21, 22, 23) THEN 25 WHEN m.ago % 20 BETWEEN 3 AND 7 THEN 3 ELSE 0.8 END AS wait
FROM generate_series(60, 1, -1) AS m (ago)
WHERE date_trunc('minute', now()) - make_interval(mins => m.ago) >= current_setting('demo.since')::timestamptz;

-- Workers of the demo were there all the time; demo-past-1 left with the deployment, and
-- demo-past-2 came for the burst.
INSERT INTO worker (name, worker_type, worker_role, host, status, meta, last_heartbeat, heartbeat_seen, created, updated)
SELECT w.name, 'local', 'action', 'demo', 'inactive', jsonb_build_object('history', current_setting('demo.mark')),
       w.until, w.until, w.since, w.until
FROM (SELECT 'demo-worker-' || i AS name, now() - interval '60 minutes' AS since, now() - interval '1 minute' AS until
      FROM generate_series(1, current_setting('demo.workers')::int) AS i
      UNION ALL VALUES ('demo-past-1', now() - interval '60 minutes', now() - interval '40 minutes'),
                       ('demo-past-2', now() - interval '26 minutes', now() - interval '17 minutes')) AS w
WHERE EXISTS (SELECT FROM past_minute)
ON CONFLICT (name) DO NOTHING;
INSERT INTO worker_history (time, operation, entity_id, entity_ref, changed_fields, old_values, new_values)
SELECT h.at, h.operation, w.id, w.name, '{status}', h.old, h.new
FROM worker w
CROSS JOIN LATERAL (VALUES (w.created, 'INSERT', NULL::jsonb, '{"status": "active"}'::jsonb),
                           (w.updated, 'UPDATE', '{"status": "active"}', '{"status": "inactive"}')) AS h (at, operation, old, new)
WHERE w.meta ->> 'history' = current_setting('demo.mark') AND NOT EXISTS (SELECT FROM worker_history x WHERE x.entity_id = w.id)
ORDER BY w.id, h.at;
INSERT INTO worker_load (worker) SELECT id FROM worker ON CONFLICT DO NOTHING;

CREATE TEMP TABLE past_worker ON COMMIT DROP AS
SELECT m.ago, w.id FROM past_minute m
JOIN worker w ON w.name LIKE 'demo-worker-%' OR w.name = 'demo-past-1' AND m.ago > 40 OR w.name = 'demo-past-2' AND m.ago BETWEEN 18 AND 25;

-- The queues, as they would be if the executions had passed through them.
INSERT INTO execution_admission_state (action_id, group_key, max_concurrent, unlimited)
SELECT a.id, q.grouped, coalesce(l.threshold, 2147483647), l.threshold IS NULL
FROM (VALUES ('core.echo', NULL), ('core.noop', NULL), ('demo.notify', NULL), ('demo.report', NULL), ('demo.sync', NULL),
             ('demo.sync', '{"tenant":"acme"}'), ('demo.sync', '{"tenant":"globex"}'), ('demo.sync', '{"tenant":"initech"}')) AS q (ref, grouped)
JOIN action a ON a.ref = q.ref
LEFT JOIN policy l ON l.action = a.id AND l.kind = 'concurrency'
WHERE EXISTS (SELECT FROM past_minute)
ORDER BY a.id, q.grouped NULLS FIRST
ON CONFLICT (action_id, group_key_normalized) DO NOTHING;

-- Three reasons to fail, and some that the operator cancelled. What waits and runs follows from the rate and the time.
INSERT INTO activity_minute (minute, action_ref, completed, failed, timeout, cancelled, abandoned, queued, running)
SELECT m.at, s.ref, c.n - c.failed - c.timeout - c.cancelled - c.abandoned, c.failed, c.timeout, c.cancelled, c.abandoned,
       c.n / 60.0 * CASE WHEN s.waits THEN m.wait ELSE 0 END, c.n / 60.0 * s.runs
FROM past_minute m
CROSS JOIN (VALUES ('core.echo', 0.42, 0.01, false), ('core.noop', 0.18, 0.01, false), ('demo.notify', 0.08, 0.01, false),
                   ('demo.report', 0.19, 0.3, true), ('demo.sync', 0.13, 0.2, true)) AS s (ref, share, runs, waits)
CROSS JOIN LATERAL (
    SELECT (m.n * s.share)::int AS n,
           (CASE WHEN s.ref = 'demo.sync' AND m.ago BETWEEN 11 AND 15 THEN 0.2 ELSE 0 END * m.n * s.share)::int AS failed,
           (CASE WHEN s.ref = 'demo.report' AND m.ago BETWEEN 21 AND 24 THEN 0.08 ELSE 0 END * m.n * s.share)::int AS timeout,
           (CASE WHEN s.ref = 'demo.report' AND m.ago BETWEEN 21 AND 24 THEN 0.02 ELSE 0 END * m.n * s.share)::int AS cancelled,
           (CASE WHEN m.ago = 41 THEN 0.15 ELSE 0 END * m.n * s.share)::int AS abandoned) c
ON CONFLICT (minute, action_ref) DO NOTHING;
INSERT INTO activity_minute (minute, action_ref, queues, slots, ended)
SELECT m.at, '',
       (SELECT jsonb_object_agg(q.id, jsonb_build_array((d.queued / d.queues)::int, m.wait::int))
        FROM (SELECT s.id, a.ref, s.group_key FROM execution_admission_state s JOIN action a ON a.id = s.action_id) q
        JOIN (SELECT x.action_ref, x.queued, CASE WHEN x.action_ref = 'demo.sync' THEN 3.0 ELSE 1.0 END AS queues
              FROM activity_minute x WHERE x.minute = m.at AND x.queued > 0) d ON d.action_ref = q.ref
        WHERE q.ref <> 'demo.sync' OR q.group_key IS NOT NULL),
       (SELECT jsonb_object_agg(w.id, (m.n / 60.0 * 0.1 / p.n)::int + w.id % 2) FROM past_worker w WHERE w.ago = m.ago),
       (SELECT jsonb_object_agg(w.id, (m.n / p.n)::int) FROM past_worker w WHERE w.ago = m.ago)
FROM past_minute m
CROSS JOIN LATERAL (SELECT count(*) AS n FROM past_worker w WHERE w.ago = m.ago) p
ON CONFLICT (minute, action_ref) DO NOTHING;

-- An order a minute: a workflow and its tasks; every fourth asks a person, every ninth
-- is refused by the bank. The parcel's workflow is left out. Ids grow with time, as those of real executions do.
CREATE TEMP TABLE past ON COMMIT DROP AS
SELECT (SELECT coalesce(max(id), 0) FROM execution) + row_number() OVER (ORDER BY x.created, x.flow, t.task NULLS FIRST) AS id,
       m.ago, t.ref, x.flow, t.task, x.created, a.id AS action,
       (SELECT coalesce(max(id), 0) FROM workflow_execution) + x.flow AS workflow,
       x.created + interval '20 milliseconds' AS admitted, x.created + interval '30 milliseconds' AS started,
       (CASE WHEN x.flow % 9 = 5 AND m.ago > 20 AND (t.task IS NULL OR t.task = 'charge') THEN 'failed'
             ELSE 'completed' END)::execution_status_enum AS status,
       CASE WHEN t.task = 'approve' THEN 19.0 WHEN t.task IS NULL THEN 21.5 ELSE 0.01 END AS runs,
       CASE WHEN t.ref NOT IN ('shop.fulfil', 'core.ask')
            THEN (SELECT w.id FROM past_worker w WHERE w.ago = m.ago ORDER BY w.id LIMIT 1) END AS worker
FROM past_minute m
CROSS JOIN (VALUES ('shop.fulfil', NULL, 0.0), ('shop.check', 'check', 0.01), ('core.sleep', 'reserve', 0.11),
                   ('core.echo', 'quote', 0.12), ('core.ask', 'approve', 0.13), ('shop.charge', 'charge', 21.2)) AS t (ref, task, after)
CROSS JOIN LATERAL (SELECT m.at + make_interval(secs => 7 + t.after) AS created, 61 - m.ago AS flow) x
JOIN action a ON a.ref = t.ref
WHERE m.ago > 1 AND m.ago NOT IN (39, 40, 41) AND (t.task IS DISTINCT FROM 'approve' OR m.ago % 4 = 0);

INSERT INTO execution (id, action, action_ref, config, parent, worker, status, result, started_at, workflow_def, workflow_task,
                       created, updated, attempt, finished_at, admitted_at)
SELECT p.id, p.action, p.ref,
       jsonb_build_object('history', current_setting('demo.mark'), 'order', p.flow),
       f.id, p.worker, p.status,
       jsonb_build_object('history', current_setting('demo.mark'), 'succeeded', p.status = 'completed') || CASE p.status
           WHEN 'failed' THEN jsonb_build_object('exit_code', 1, 'error', 'the card was refused')
           ELSE jsonb_build_object('exit_code', 0, 'duration_ms', (1000 * p.runs)::int) END,
       p.started, CASE WHEN p.ref = 'shop.fulfil' THEN a.workflow_def END,
       CASE WHEN p.task IS NOT NULL THEN jsonb_build_object('workflow_execution', p.workflow, 'task_name', p.task) END,
       p.created, p.started + make_interval(secs => p.runs), 1, p.started + make_interval(secs => p.runs),
       CASE WHEN p.worker IS NOT NULL THEN p.admitted END
FROM past p
JOIN action a ON a.id = p.action
LEFT JOIN past f ON p.task IS NOT NULL AND f.flow = p.flow AND f.task IS NULL
ORDER BY p.id;
SELECT setval('execution_id_seq', greatest((SELECT max(id) FROM execution), 1));

INSERT INTO workflow_execution (id, execution, workflow_def, completed_tasks, failed_tasks, skipped_tasks, variables, task_graph,
                                status, error_message, open, created, updated)
SELECT p.workflow, p.id, a.workflow_def,
       CASE WHEN p.status = 'failed' THEN '{check,reserve,quote}' ELSE '{check,reserve,quote,charge}' END::text[]
       || CASE WHEN p.ago % 4 = 0 THEN '{approve}' ELSE '{}' END::text[],
       CASE WHEN p.status = 'failed' THEN '{charge}' ELSE '{}' END::text[],
       CASE WHEN p.ago % 4 = 0 THEN '{ship,apologise}' ELSE '{approve,ship,apologise}' END::text[],
       jsonb_build_object('history', current_setting('demo.mark')), g.graph, p.status,
       CASE WHEN p.status = 'failed' THEN 'task charge failed: the card was refused' END, false,
       p.created, p.started + make_interval(secs => p.runs)
FROM past p
JOIN action a ON a.id = p.action
JOIN (
    SELECT d.id, jsonb_build_object('nodes', jsonb_object_agg(t.task ->> 'name', jsonb_build_object(
               'name', t.task -> 'name', 'action', t.task -> 'action', 'task_type', t.task -> 'type', 'inbound_tasks',
               (SELECT coalesce(jsonb_agg(b.task -> 'name'), '[]') FROM jsonb_array_elements(d.definition -> 'tasks') AS b (task)
                WHERE jsonb_path_exists(b.task, '$.next[*].do[*] ? (@ == $name)', jsonb_build_object('name', t.task -> 'name'))),
               'transitions', (SELECT coalesce(jsonb_agg(jsonb_build_object('when', n.next -> 'when', 'do_tasks', coalesce(n.next -> 'do', '[]'), 'publish', '[]'::jsonb)), '[]')
                               FROM jsonb_array_elements(CASE WHEN jsonb_typeof(t.task -> 'next') = 'array' THEN t.task -> 'next' ELSE '[]' END) AS n (next)))))
           AS graph
    FROM workflow_definition d CROSS JOIN jsonb_array_elements(d.definition -> 'tasks') AS t (task)
    WHERE d.ref = 'shop.fulfil' GROUP BY d.id) g ON g.id = a.workflow_def
WHERE p.task IS NULL
ORDER BY p.id;
SELECT setval('workflow_execution_id_seq', greatest((SELECT max(id) FROM workflow_execution), 1));
INSERT INTO workflow_task_dispatch (workflow_execution, task_name, execution_id, settled, created, updated)
SELECT p.workflow, p.task, p.id, true, p.created, p.created FROM past p WHERE p.task IS NOT NULL ORDER BY p.id;
INSERT INTO inquiry (execution, prompt, status, response, timeout_at, responded_at, created, updated, settled, responder)
SELECT p.id, format('Order %s is worth %s. Shall it go out?', p.flow, 900 + p.flow), 'responded', '{"approved": true}',
       p.created + interval '60 seconds', p.started + make_interval(secs => p.runs), p.created,
       p.started + make_interval(secs => p.runs), true, 'demo history'
FROM past p WHERE p.task = 'approve' ORDER BY p.id;

-- Executions that the departed worker had not begun went to others. A person has requeued
-- the events that a service missed twice, and has discarded unreadable letters.
INSERT INTO dead_letter (fingerprint, message_type, exchange, routing_key, queue, reason, execution, worker, execution_status, action_ref,
                         attempt, detail, decision, decided_at, decided_by, evidence, died, created, updated)
SELECT format('%s %s', current_setting('demo.mark'), p.id), 'ExecutionRequested', 'attune.executions', 'execution.dispatch.worker.' || w.id,
       format('worker.%s.executions', w.id), 'expired', p.id, w.id, 'scheduled', p.ref, 1, current_setting('demo.mark'),
       'retried', p.created + interval '20 seconds', 'demo history', jsonb_build_object('history', current_setting('demo.mark')),
       p.created + interval '19 seconds', p.created + interval '20 seconds', p.created + interval '20 seconds'
FROM (SELECT * FROM past WHERE ago > 41 AND status = 'completed' AND worker IS NOT NULL ORDER BY id DESC LIMIT 9) p
JOIN worker w ON w.name = 'demo-past-1'
ORDER BY p.id;
INSERT INTO dead_letter (fingerprint, message_type, exchange, routing_key, queue, reason, detail, decision, decided_at, decided_by,
                         evidence, died, created, updated)
SELECT format('%s %s %s', current_setting('demo.mark'), m.at, k), g.type, g.exchange, g.key, g.queue, g.reason,
       current_setting('demo.mark'), g.decision, d.at, 'demo history',
       jsonb_build_object('history', current_setting('demo.mark')), m.at, m.at, d.at
FROM (VALUES
    (57, 51, 3, 'EventCreated', 'attune.events', 'event.created', 'mirror.events', 'expired', 'requeued'),
    (34, 29, 4, 'EventCreated', 'attune.events', 'event.created', 'mirror.events', 'expired', 'requeued'),
    (24, 20, 6, NULL, 'attune.executions', 'execution.requested', 'attune.execution.requests.queue', 'rejected', 'discarded')
) AS g (begun, ended, each, type, exchange, key, queue, reason, decision)
JOIN past_minute m ON m.ago BETWEEN g.ended AND g.begun
CROSS JOIN generate_series(1, g.each) AS k
-- They wait until a few minutes after the last of them, and are decided in two parts.
CROSS JOIN LATERAL (SELECT date_trunc('minute', now()) - make_interval(mins => g.ended - CASE WHEN k % 2 = 0 THEN 3 ELSE 5 END) AS at) AS d
ORDER BY m.at, k;
INSERT INTO alert (rule, target, severity, summary, hint, value, since, fired, cleared, seen)
SELECT v.rule, v.target, 'warning', v.summary, current_setting('demo.mark'), v.value, m.at, m.at, m.at + v.lasted, m.at + v.lasted
FROM (VALUES ('worker_heartbeat', 'demo-past-1', 'demo-past-1 heartbeat stale for 2m', 120.0, 40, interval '2 minutes'),
             ('action_failing', 'demo.sync', 'demo.sync fails: 52 % of its executions', 0.52, 14, interval '6 minutes')
     ) AS v (rule, target, summary, value, ago, lasted)
JOIN past_minute m ON m.ago = v.ago
ORDER BY m.at;
