-- The packs, rules, policies, workflows and workers of an installation on the day of its adoption.
-- state.go adds the executions.

INSERT INTO identity (login, display_name) VALUES ('system', 'System');
INSERT INTO pack (ref, label, version) VALUES ('demo', 'Demo', '1.0.0'), ('core', 'Core', '1.0.0');
INSERT INTO action (ref, pack, pack_ref, label, entrypoint)
SELECT 'demo.' || name, p.id, p.ref, name, name || '.sh'
FROM pack p, unnest('{work,limited,leaky,gated,shaky}'::text[]) name WHERE p.ref = 'demo';
INSERT INTO action (ref, pack, pack_ref, label, entrypoint) SELECT 'core.ask', id, ref, 'Ask', 'ask' FROM pack WHERE ref = 'core';
INSERT INTO action (ref, pack, pack_ref, label, entrypoint, max_retries)
SELECT 'demo.retried', id, ref, 'Retried', 'retried.sh', 3 FROM pack WHERE ref = 'demo';
INSERT INTO policy (ref, pack, pack_ref, action, action_ref, method, threshold, name)
SELECT 'demo.two', p.id, p.ref, a.id, a.ref, 'enqueue', 2, 'Two at a time' FROM pack p, action a WHERE p.ref = 'demo' AND a.ref = 'demo.limited';
INSERT INTO policy (ref, pack, pack_ref, action, action_ref, method, threshold, name)
SELECT 'demo.one', p.id, p.ref, a.id, a.ref, 'enqueue', 1, 'One at a time' FROM pack p, action a WHERE p.ref = 'demo' AND a.ref = 'demo.leaky';

INSERT INTO "trigger" (ref, pack, pack_ref, label) SELECT v.ref, p.id, p.ref, v.ref
FROM pack p JOIN (VALUES ('demo.tick', 'demo'), ('core.alert', 'core')) v (ref, pack) ON v.pack = p.ref;
INSERT INTO rule (ref, pack, pack_ref, label, action, action_ref, "trigger", trigger_ref, conditions, action_params, enabled, owner_identity)
SELECT 'demo.on_tick', p.id, p.ref, 'On a tick', a.id, a.ref, t.id, t.ref, '{}', '{"source": "{{ event.payload.n }}"}', true, 1
FROM pack p, action a, "trigger" t WHERE p.ref = 'demo' AND a.ref = 'demo.work' AND t.ref = 'demo.tick';
INSERT INTO rule (ref, pack, pack_ref, label, action, action_ref, "trigger", trigger_ref, conditions, action_params, enabled, owner_identity)
SELECT 'demo.on_alert', p.id, p.ref, 'On an alert', a.id, a.ref, t.id, t.ref, '{}', '{}', true, 1
FROM pack p, action a, "trigger" t WHERE p.ref = 'demo' AND a.ref = 'demo.work' AND t.ref = 'core.alert';

INSERT INTO workflow_definition (ref, pack, pack_ref, label, version, definition)
SELECT v.ref, p.id, p.ref, v.ref, '1.0.0', v.definition::jsonb
FROM pack p, (VALUES
    ('demo.chain', '{"version": "1.0.0", "vars": {"code": -1}, "tasks": [
        {"name": "first", "action": "demo.work", "next": [{"when": "{{ succeeded() }}",
            "publish": [{"code": "{{ result().code }}"}, {"lost": "{{ result().no_such_field }}"}], "do": ["second"]}]},
        {"name": "second", "action": "demo.work", "input": {"code": "{{ task.first.result.code }}"}}],
        "output_map": {"code": "{{ workflow.code }}"}}'),
    ('demo.list', '{"version": "1.0.0", "tasks": [
        {"name": "each", "action": "demo.work", "with_items": "{{ parameters.items }}", "concurrency": 1, "input": {"item": "{{ item }}"},
         "next": [{"when": "{{ succeeded() }}", "do": ["last"]}]},
        {"name": "last", "action": "demo.work"}]}'),
    ('demo.mended', '{"version": "1.0.0", "tasks": [
        {"name": "breaks", "action": "demo.shaky", "next": [{"when": "{{ failed() }}", "do": ["mends"]}]},
        {"name": "mends", "action": "demo.work"}]}'),
    ('demo.round', '{"version": "1.0.0", "tasks": [
        {"name": "start", "action": "demo.work", "next": [{"do": ["there"]}]},
        {"name": "there", "action": "demo.work", "next": [{"do": ["back"]}]},
        {"name": "back", "action": "demo.work", "next": [{"do": ["there"]}]}]}'),
    ('demo.changed', '{"version": "1.0.0", "tasks": [
        {"name": "first", "action": "demo.work", "next": [{"do": ["second"]}]}, {"name": "second", "action": "demo.work"}]}'),
    ('demo.gate', '{"version": "1.0.0", "tasks": [
        {"name": "holds", "action": "demo.gated", "next": [{"do": ["after"]}]}, {"name": "after", "action": "demo.work"}]}')
) v (ref, definition) WHERE p.ref = 'demo';
INSERT INTO action (ref, pack, pack_ref, label, entrypoint, workflow_def)
SELECT d.ref, d.pack, d.pack_ref, d.label, d.ref || '.yaml', d.id FROM workflow_definition d;

INSERT INTO work_queue (ref, pack, pack_ref, label, dispatch_action, dispatch_action_ref)
SELECT 'demo.inbox', p.id, p.ref, 'Inbox', a.id, a.ref FROM pack p, action a WHERE p.ref = 'demo' AND a.ref = 'demo.work';
INSERT INTO work_queue_item (queue, queue_ref, payload, enqueue_source)
SELECT q.id, q.ref, jsonb_build_object('n', n), 'api' FROM work_queue q, generate_series(1, 2) n;

INSERT INTO worker (name, worker_type, worker_role, status, capabilities, last_heartbeat) VALUES
    ('worker-dead', 'remote', 'action', 'active', '{"runtimes": ["shell"]}', now() - interval '10 minutes'),
    ('worker-absent', 'remote', 'action', 'inactive', '{"runtimes": ["shell"]}', now() - interval '1 hour');
