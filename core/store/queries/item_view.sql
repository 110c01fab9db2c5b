-- What packs hold, for lists and single items: policies, actions, packs, triggers.
-- file is where the newest application in operator_audit read the item from.

-- name: ViewPolicyItems :many
-- Policies by ref. newer_ref is the concurrency policy of the same scope that counts instead.
SELECT p.id, p.ref, p.name AS label, coalesce(p.description, '')::text AS description, p.tags, p.kind, p.threshold,
       (CASE WHEN p.action IS NOT NULL THEN 'action' WHEN p.pack IS NOT NULL THEN 'pack' ELSE 'global' END)::text AS scope,
       coalesce(p.window_seconds, 0)::int AS window_seconds, coalesce(p.burst, 0)::int AS burst, p.method::text AS method,
       p.parameters, coalesce(p.max_queue_length, 0)::int AS max_queue_length,
       coalesce(p.queue_timeout_seconds, 0)::int AS queue_timeout_seconds, coalesce(p.retry_place, '')::text AS retry_place,
       coalesce(p.adaptive_min, 0)::int AS adaptive_min, coalesce(p.adaptive_latency_ms, 0)::int AS adaptive_latency_ms,
       coalesce(p.action, 0)::bigint AS action_id, coalesce(a.ref, '')::text AS action_ref,
       coalesce(p.pack, 0)::bigint AS pack_id, coalesce(k.ref, a.pack_ref, '')::text AS pack_ref, p.created, p.updated,
       coalesce((SELECT n.ref FROM policy n
                 WHERE p.kind = 'concurrency' AND n.kind = 'concurrency' AND (n.created, n.id) > (p.created, p.id)
                   AND n.action IS NOT DISTINCT FROM p.action
                   AND (p.action IS NOT NULL OR n.pack IS NOT DISTINCT FROM p.pack)
                 ORDER BY n.created DESC, n.id DESC LIMIT 1), '')::text AS newer_ref,
       coalesce((SELECT o.request ->> 'file' FROM operator_audit o
                 WHERE o.target_type = 'policy' AND o.target_id = p.id AND o.action = 'policy.apply'
                 ORDER BY o.id DESC LIMIT 1), '')::text AS file
FROM policy p
LEFT JOIN action a ON a.id = p.action
LEFT JOIN pack k ON k.id = p.pack
WHERE p.ref > sqlc.arg(after)::text
  AND (sqlc.arg(ref)::text = '' OR p.ref = sqlc.arg(ref)::text)
  AND (sqlc.arg(pack)::text = '' OR coalesce(k.ref, a.pack_ref) = sqlc.arg(pack)::text)
ORDER BY p.ref
LIMIT sqlc.arg(page)::int;

-- name: ViewActionItems :many
SELECT a.id, a.ref, a.pack AS pack_id, a.pack_ref, a.label, coalesce(a.description, '')::text AS description, a.entrypoint AS entry_point,
       coalesce(r.name, '')::text AS runtime, coalesce(w.ref, '')::text AS workflow_ref, a.is_adhoc AS adhoc,
       coalesce(a.param_schema, 'null')::jsonb AS param_schema, coalesce(a.out_schema, 'null')::jsonb AS out_schema,
       a.parameter_delivery, a.parameter_format, a.output_format, coalesce(a.timeout_seconds, 0)::int AS timeout_seconds,
       coalesce(a.scheduled_timeout_seconds, 0)::int AS scheduled_timeout_seconds, coalesce(a.max_retries, 0)::int AS max_retries,
       attune_placement(a)::jsonb AS placement, a.created, a.updated,
       coalesce((SELECT p.threshold FROM policy p WHERE p.action = a.id AND p.kind = 'concurrency'
                 ORDER BY p.created DESC, p.id DESC LIMIT 1), 0)::int AS threshold,
       coalesce((SELECT o.request ->> 'file' FROM operator_audit o
                 WHERE o.target_type = 'action' AND o.target_id = a.id AND o.action = 'action.apply'
                 ORDER BY o.id DESC LIMIT 1), '')::text AS file
FROM action a
LEFT JOIN runtime r ON r.id = a.runtime
LEFT JOIN workflow_definition w ON w.id = a.workflow_def
WHERE a.ref > sqlc.arg(after)::text
  AND (sqlc.arg(ref)::text = '' OR a.ref = sqlc.arg(ref)::text)
  AND (sqlc.arg(pack)::text = '' OR a.pack_ref = sqlc.arg(pack)::text)
ORDER BY a.ref
LIMIT sqlc.arg(page)::int;

-- name: ViewTriggerItems :many
-- Triggers of older installations have no sensor_ref: the name then is the column of absent. A viewer may not
-- read the whole row.
SELECT t.id, t.ref, coalesce(t.pack_ref, '')::text AS pack_ref, t.label, coalesce(t.description, '')::text AS description,
       t.enabled, t.is_adhoc AS adhoc, coalesce(t.param_schema, 'null')::jsonb AS param_schema,
       coalesce(t.out_schema, 'null')::jsonb AS out_schema, coalesce((SELECT sensor_ref FROM trigger x WHERE x.id = t.id), '')::text AS sensor_ref, t.webhook_enabled AS webhook,
       t.created, t.updated, (SELECT count(*) FROM rule u WHERE u.trigger_ref = t.ref)::int AS rules,
       coalesce((SELECT o.request ->> 'file' FROM operator_audit o
                 WHERE o.target_type = 'trigger' AND o.target_id = t.id AND o.action = 'trigger.apply'
                 ORDER BY o.id DESC LIMIT 1), '')::text AS file
FROM trigger t, (SELECT NULL::text AS sensor_ref) absent
WHERE t.ref > sqlc.arg(after)::text
  AND (sqlc.arg(ref)::text = '' OR t.ref = sqlc.arg(ref)::text)
  AND (sqlc.arg(pack)::text = '' OR t.pack_ref = sqlc.arg(pack)::text)
ORDER BY t.ref
LIMIT sqlc.arg(page)::int;

-- name: ViewPackItems :many
SELECT k.id, k.ref, k.ref AS pack_ref, k.label, coalesce(k.description, '')::text AS description, k.version, k.tags, k.is_standard AS standard, k.dependencies,
       k.conf_schema, k.created, k.updated,
       (SELECT count(*) FROM action a WHERE a.pack = k.id)::int AS actions,
       (SELECT count(*) FROM trigger t WHERE t.pack = k.id)::int AS triggers,
       (SELECT count(*) FROM rule u WHERE u.pack = k.id)::int AS rules,
       (SELECT count(*) FROM policy p LEFT JOIN action a ON a.id = p.action WHERE coalesce(p.pack, a.pack) = k.id)::int AS policies,
       coalesce((SELECT o.request ->> 'file' FROM operator_audit o
                 WHERE o.target_type = 'pack' AND o.target_id = k.id AND o.action = 'pack.apply'
                 ORDER BY o.id DESC LIMIT 1), '')::text AS file
FROM pack k
WHERE k.ref > sqlc.arg(after)::text
  AND (sqlc.arg(ref)::text = '' OR k.ref = sqlc.arg(ref)::text)
  AND (sqlc.arg(pack)::text = '' OR k.ref = sqlc.arg(pack)::text)
ORDER BY k.ref
LIMIT sqlc.arg(page)::int;

-- name: ViewRulesAround :many
-- The rules of an action, of a trigger or of a pack.
SELECT r.ref, r.trigger_ref, r.action_ref, r.enabled
FROM rule r
WHERE (sqlc.arg(action)::text = '' OR r.action_ref = sqlc.arg(action)::text)
  AND (sqlc.arg(trigger)::text = '' OR r.trigger_ref = sqlc.arg(trigger)::text)
  AND (sqlc.arg(pack)::text = '' OR r.pack_ref = sqlc.arg(pack)::text)
ORDER BY r.ref
LIMIT sqlc.arg(bound)::int;

-- name: ViewWorkflowsUsing :many
-- Workflows with a task that runs the action.
SELECT w.ref::text AS ref FROM workflow_definition w
WHERE jsonb_path_exists(w.definition, '$.tasks.**.action ? (@ == $ref)', jsonb_build_object('ref', sqlc.arg(action)::text))
ORDER BY w.ref
LIMIT sqlc.arg(bound)::int;

-- name: ViewPolicyQueueIDs :many
-- Queues whose executions a policy is about and that hold or wait, the busiest first.
SELECT s.id
FROM execution_admission_state s JOIN action a ON a.id = s.action_id
WHERE (CASE WHEN sqlc.arg(action)::bigint <> 0 THEN a.id = sqlc.arg(action)::bigint
            WHEN sqlc.arg(pack)::bigint <> 0 THEN a.pack = sqlc.arg(pack)::bigint ELSE true END)
  AND (s.queued_count > 0 OR s.active_count > 0)
ORDER BY s.queued_count DESC, s.active_count DESC, s.id
LIMIT sqlc.arg(bound)::int;

-- name: ViewPolicyScopeIDs :many
-- The shared limits that a policy makes, the fullest first.
SELECT c.id FROM admission_scope c WHERE c.policy = sqlc.arg(policy)::bigint
ORDER BY c.active_count DESC, c.id
LIMIT sqlc.arg(bound)::int;
