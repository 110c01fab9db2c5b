-- An hour of made-up history, so that every chart has something to show at once. Each
-- row names itself: executions in config and result, workers by name and meta, dead letters,
-- answers and alerts by who decided. It runs before any engine; the caller has set
-- demo.since (nothing is written for before that), demo.workers (how many) and
-- demo.mark (the words).
--
-- One row an execution, in order of time, so that ids grow with time as real ones do:
-- readers of the last hour search by id.
-- A wave every 20 minutes, a deployment 41 minutes ago that stops nearly everything and
-- is caught up with, a burst 24 minutes ago, and a morning whose load grows to that of the
-- live run, so that its first minute fits in. The last 7 minutes are healthy.
SELECT setseed(0.5);

CREATE TEMP TABLE past_minute ON COMMIT DROP AS
SELECT m.ago, date_trunc('second', now()) - make_interval(mins => m.ago) AS at,
       ((1100 + 350 * sin(m.ago * 2 * pi() / 20) + 2600 * exp(-m.ago / 10.0))
        * CASE WHEN m.ago = 41 THEN 0.3 WHEN m.ago IN (39, 40) THEN 0.04 WHEN m.ago = 38 THEN 0.5
               WHEN m.ago IN (36, 37) THEN 1.7 WHEN m.ago BETWEEN 21 AND 24 THEN 2.2 ELSE 1 END)::int AS n,
       -- for how many seconds what arrives has to wait for a limit
       CASE WHEN m.ago BETWEEN 39 AND 41 THEN 25 WHEN m.ago = 38 THEN 10 WHEN m.ago IN (20, 24) THEN 12
            WHEN m.ago IN (21, 22, 23) THEN 25 WHEN m.ago % 20 BETWEEN 3 AND 7 THEN 3 ELSE 0.8 END AS wait
FROM generate_series(60, 1, -1) AS m (ago)
WHERE date_trunc('second', now()) - make_interval(mins => m.ago) >= current_setting('demo.since')::timestamptz;

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

CREATE TEMP TABLE past_row ON COMMIT DROP AS
SELECT m.ago, m.at + make_interval(secs => 60.0 * (k - random()) / m.n) AS created, x.dice, random() AS luck,
       CASE WHEN x.dice < 0.42 THEN 'core.echo' WHEN x.dice < 0.60 THEN 'core.noop' WHEN x.dice < 0.68 THEN 'demo.notify'
            WHEN x.dice < 0.87 THEN 'demo.report' ELSE 'demo.sync' END AS ref,
       (ARRAY['acme', 'globex', 'initech'])[1 + floor(random() * 3)::int] AS tenant,
       CASE WHEN x.dice >= 0.68 THEN m.wait * (0.6 + 0.4 * random()) ELSE 0.01 + 0.02 * random() END AS waits,
       0::bigint AS flow, NULL::text AS task
FROM past_minute m
CROSS JOIN generate_series(1, m.n) AS k
CROSS JOIN LATERAL (SELECT random() + 0 * k AS dice) AS x;
-- An order a minute: a workflow and its tasks; every fourth asks a person, every ninth
-- is refused by the bank. The parcel's workflow is left out.
INSERT INTO past_row (ago, created, luck, ref, waits, flow, task)
SELECT m.ago, m.at + make_interval(secs => 7 + t.after), 0.5, t.ref, 0.02, 61 - m.ago, t.task
FROM past_minute m
CROSS JOIN (VALUES ('shop.fulfil', NULL, 0.0), ('shop.check', 'check', 0.01), ('core.sleep', 'reserve', 0.11),
                   ('core.echo', 'quote', 0.12), ('core.ask', 'approve', 0.13), ('shop.charge', 'charge', 21.2)) AS t (ref, task, after)
WHERE m.ago > 1 AND m.ago NOT IN (39, 40, 41) AND (t.task IS DISTINCT FROM 'approve' OR m.ago % 4 = 0);

CREATE TEMP TABLE past ON COMMIT DROP AS
SELECT (SELECT coalesce(max(id), 0) FROM execution) + row_number() OVER (ORDER BY r.created, r.flow, r.task NULLS FIRST) AS id,
       r.ago, r.ref, r.tenant, r.flow, r.task, r.created, a.id AS action,
       (SELECT coalesce(max(id), 0) FROM workflow_execution) + r.flow AS workflow,
       r.created + make_interval(secs => r.waits) AS admitted,
       r.created + make_interval(secs => r.waits + 0.01) AS started,
       -- Three reasons to fail, and some that the operator cancelled.
       (CASE WHEN r.ref = 'demo.sync' AND r.tenant = 'globex' AND r.ago BETWEEN 11 AND 15 AND r.luck < 0.6 THEN 'failed'
             WHEN r.ref = 'demo.report' AND r.ago BETWEEN 21 AND 24 AND r.luck < 0.08 THEN 'timeout'
             WHEN r.flow = 0 AND r.ago = 41 AND r.luck < 0.15 THEN 'abandoned'
             WHEN r.ref = 'demo.report' AND r.ago BETWEEN 21 AND 24 AND r.luck < 0.1 THEN 'cancelled'
             WHEN r.flow % 9 = 5 AND r.ago > 20 AND (r.task IS NULL OR r.task = 'charge') THEN 'failed'
             ELSE 'completed' END)::execution_status_enum AS status,
       CASE WHEN r.ref = 'demo.report' THEN 0.1 + 0.4 * r.luck WHEN r.ref = 'demo.sync' THEN 0.1 + 0.2 * r.luck
            WHEN r.task = 'approve' THEN 18 + 2 * r.luck WHEN r.ref = 'shop.fulfil' THEN 21.5 ELSE 0.02 * r.luck END AS runs,
       CASE WHEN r.ref NOT IN ('shop.fulfil', 'core.ask') THEN w.ids[1 + (r.luck * 997)::int % cardinality(w.ids)] END AS worker
FROM past_row r
JOIN action a ON a.ref = r.ref
JOIN (SELECT m.ago, array_agg(w.id ORDER BY w.id) AS ids
      FROM past_minute m
      JOIN worker w ON w.name LIKE 'demo-worker-%' OR w.name = 'demo-past-1' AND m.ago > 40
                       OR w.name = 'demo-past-2' AND m.ago BETWEEN 18 AND 25
      GROUP BY m.ago) w ON w.ago = r.ago;

INSERT INTO execution (id, action, action_ref, config, parent, worker, status, result, started_at, workflow_def, workflow_task,
                       created, updated, attempt, finished_at, admitted_at)
SELECT p.id, p.action, p.ref,
       jsonb_strip_nulls(jsonb_build_object('history', current_setting('demo.mark'),
           'tenant', CASE WHEN p.ref = 'demo.sync' THEN p.tenant END, 'order', nullif(p.flow, 0))),
       f.id, p.worker, p.status,
       jsonb_build_object('history', current_setting('demo.mark'), 'succeeded', p.status = 'completed') || CASE p.status
           WHEN 'failed' THEN jsonb_build_object('exit_code', 1, 'error',
               CASE WHEN p.flow > 0 THEN 'the card was refused' ELSE 'globex answers 503: its service is down' END)
           WHEN 'timeout' THEN jsonb_build_object('error', 'Execution timed out after 2 seconds')
           WHEN 'abandoned' THEN jsonb_build_object('error', 'Execution abandoned because its worker became unavailable while running')
           WHEN 'cancelled' THEN jsonb_build_object('error', 'Cancelled', 'cancelled_by', 'demo')
           ELSE jsonb_build_object('exit_code', 0, 'duration_ms', (1000 * p.runs)::int) END,
       p.started, CASE WHEN p.ref = 'shop.fulfil' THEN a.workflow_def END,
       CASE WHEN p.task IS NOT NULL THEN jsonb_build_object('workflow_execution', p.workflow, 'task_name', p.task) END,
       p.created, p.started + make_interval(secs => p.runs), 1, p.started + make_interval(secs => p.runs),
       CASE WHEN p.worker IS NOT NULL THEN p.admitted END
FROM past p
JOIN action a ON a.id = p.action
LEFT JOIN past f ON p.task IS NOT NULL AND f.flow = p.flow AND f.task IS NULL AND f.flow > 0
ORDER BY p.id;
SELECT setval('execution_id_seq', greatest((SELECT max(id) FROM execution), 1));

-- The steps of what did not complete; of the others the row tells enough.
INSERT INTO execution_history (time, operation, entity_id, entity_ref, changed_fields, new_values)
SELECT h.at, h.operation, p.id, p.ref, h.fields, h.new
FROM past p
CROSS JOIN LATERAL (VALUES
    (p.created, 'INSERT', '{status}'::text[], jsonb_build_object('status', 'requested')),
    (p.admitted, 'UPDATE', '{status,worker}', jsonb_build_object('status', 'scheduled', 'worker', p.worker)),
    (p.started, 'UPDATE', '{status,started_at}', jsonb_build_object('status', 'running')),
    (p.started + make_interval(secs => p.runs), 'UPDATE', '{status,result}', jsonb_build_object('status', p.status))) AS h (at, operation, fields, new)
WHERE p.status <> 'completed' AND p.flow = 0;

-- The queues, as they would be if these executions had passed through them.
INSERT INTO execution_admission_state (action_id, group_key, max_concurrent, unlimited, total_enqueued, total_completed)
SELECT q.action, q.grouped, coalesce(l.threshold, 2147483647), l.threshold IS NULL, q.n, q.n
FROM (SELECT p.action, CASE WHEN p.ref = 'demo.sync' THEN format('{"tenant":"%s"}', p.tenant) END AS grouped, count(*) AS n
      FROM past p WHERE p.worker IS NOT NULL GROUP BY 1, 2
      UNION ALL
      SELECT p.action, NULL, 0 FROM past p WHERE p.ref = 'demo.sync' GROUP BY 1) q
LEFT JOIN policy l ON l.action = q.action AND l.kind = 'concurrency'
ORDER BY q.action, q.grouped NULLS FIRST
ON CONFLICT (action_id, group_key_normalized) DO NOTHING;

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
WHERE p.flow > 0 AND p.task IS NULL
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
FROM (SELECT * FROM past WHERE ago = 41 AND status = 'completed' AND worker IS NOT NULL ORDER BY id DESC LIMIT 9) p
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
CROSS JOIN LATERAL (SELECT date_trunc('second', now()) - make_interval(mins => g.ended - CASE WHEN k % 2 = 0 THEN 3 ELSE 5 END) AS at) AS d
ORDER BY m.at, k;
INSERT INTO lost_work (at, cause, outcome, execution, attempt, action_ref, worker, age_seconds)
SELECT p.started + make_interval(secs => p.runs), 'worker_gone', 'abandoned', p.id, 1, p.ref, p.worker, 60
FROM past p WHERE p.status = 'abandoned' ORDER BY p.id;
INSERT INTO alert (rule, target, severity, summary, hint, value, since, fired, cleared, seen)
SELECT v.rule, v.target, 'warning', v.summary, current_setting('demo.mark'), v.value, m.at, m.at, m.at + v.lasted, m.at + v.lasted
FROM (VALUES ('worker_heartbeat', 'demo-past-1', 'demo-past-1 heartbeat stale for 2m', 120.0, 40, interval '2 minutes'),
             ('action_failing', 'demo.sync', 'demo.sync fails: 52 % of its executions', 0.52, 14, interval '6 minutes')
     ) AS v (rule, target, summary, value, ago, lasted)
JOIN past_minute m ON m.ago = v.ago
ORDER BY m.at;
