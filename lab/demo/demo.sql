-- The demo's pack: actions with limits of their own, one of them per tenant, a
-- limit over the whole pack, and one action that is paced.
INSERT INTO pack (ref, label, version) VALUES ('demo', 'Demo', '1.0.0') ON CONFLICT (ref) DO NOTHING;

INSERT INTO action (ref, pack, pack_ref, label, description, entrypoint, param_schema)
SELECT a.ref, p.id, 'demo', a.label, a.description, 'core.sleep', a.param_schema::jsonb
FROM (VALUES
    ('demo.report', 'Report', 'Takes a moment; at most four at once.', '{"seconds": {"type": "number", "default": 0.3}}'),
    ('demo.notify', 'Notify', 'Ten starts a second, evenly spaced but for three.', '{"seconds": {"type": "number", "default": 0.01}}'),
    ('demo.sync', 'Synchronise', 'Takes a moment; at most two at once for each tenant.',
     '{"seconds": {"type": "number", "default": 0.2}, "tenant": {"type": "string"}}')
) AS a(ref, label, description, param_schema)
JOIN pack p ON p.ref = 'demo'
ON CONFLICT (ref) DO NOTHING;

INSERT INTO action (ref, pack, pack_ref, label, description, entrypoint, max_retries, param_schema)
SELECT 'demo.unlucky', p.id, 'demo', 'Unlucky', 'Fails, is repeated once, and fails again.', 'core.fail', 1, '{"message": {"type": "string"}}'::jsonb
FROM pack p WHERE p.ref = 'demo'
ON CONFLICT (ref) DO NOTHING;
UPDATE action SET max_retries = 2 WHERE ref IN ('demo.report', 'demo.sync');

INSERT INTO policy (ref, pack, pack_ref, method, threshold, name)
SELECT 'demo.pack_limit', p.id, 'demo', 'enqueue', 8, 'Eight of the pack at once' FROM pack p WHERE p.ref = 'demo'
ON CONFLICT (ref) DO NOTHING;
INSERT INTO policy (ref, pack, pack_ref, action, action_ref, method, kind, threshold, window_seconds, burst, name)
SELECT 'demo.notify_rate', a.pack, 'demo', a.id, a.ref, 'enqueue', 'rate', 10, 1, 3, 'Ten notifications a second'
FROM action a WHERE a.ref = 'demo.notify'
ON CONFLICT (ref) DO NOTHING;

INSERT INTO policy (ref, pack, pack_ref, action, action_ref, parameters, method, threshold, name)
SELECT v.ref, a.pack, 'demo', a.id, a.ref, v.parameters, 'enqueue', v.threshold, v.name
FROM (VALUES
    ('demo.report_limit', 'demo.report', '{}'::text[], 4, 'Four reports at once'),
    ('demo.sync_limit', 'demo.sync', '{tenant}'::text[], 2, 'Two synchronisations at once for each tenant')
) AS v(ref, action_ref, parameters, threshold, name)
JOIN action a ON a.ref = v.action_ref
ON CONFLICT (ref) DO NOTHING;
