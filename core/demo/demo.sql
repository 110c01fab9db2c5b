-- The demo's pack: two actions with limits, one of them per tenant.
INSERT INTO pack (ref, label, version) VALUES ('demo', 'Demo', '1.0.0') ON CONFLICT (ref) DO NOTHING;

INSERT INTO action (ref, pack, pack_ref, label, description, entrypoint, param_schema)
SELECT a.ref, p.id, 'demo', a.label, a.description, 'core.sleep', a.param_schema::jsonb
FROM (VALUES
    ('demo.report', 'Report', 'Takes a moment; at most four at once.', '{"seconds": {"type": "number", "default": 0.3}}'),
    ('demo.sync', 'Synchronise', 'Takes a moment; at most two at once for each tenant.',
     '{"seconds": {"type": "number", "default": 0.2}, "tenant": {"type": "string"}}')
) AS a(ref, label, description, param_schema)
JOIN pack p ON p.ref = 'demo'
ON CONFLICT (ref) DO NOTHING;

INSERT INTO policy (ref, pack, pack_ref, action, action_ref, parameters, method, threshold, name)
SELECT v.ref, a.pack, 'demo', a.id, a.ref, v.parameters, 'enqueue', v.threshold, v.name
FROM (VALUES
    ('demo.report_limit', 'demo.report', '{}'::text[], 4, 'Four reports at once'),
    ('demo.sync_limit', 'demo.sync', '{tenant}'::text[], 2, 'Two synchronisations at once for each tenant')
) AS v(ref, action_ref, parameters, threshold, name)
JOIN action a ON a.ref = v.action_ref
ON CONFLICT (ref) DO NOTHING;
