-- Items that users describe in files and apply: packs with everything in them, and policies. A
-- document is a row as JSON: the file's fields override the table's.

-- name: LockCatalog :exec
-- Only one transaction at a time compares files with the tables and changes them. Readers and
-- batches do not wait.
SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || '.attune.catalog', 0));

-- name: LockPolicyPacks :many
-- Keeps the packs that policies will name, and the packs of their actions, from being deleted
-- before the commit. Packs are locked before actions, as in a deletion.
SELECT p.id FROM pack p
WHERE p.ref = ANY (sqlc.arg(refs)::text[])
   OR p.id = ANY (ARRAY(SELECT a.pack FROM action a WHERE a.ref = ANY (sqlc.arg(actions)::text[])))
ORDER BY p.id FOR KEY SHARE;

-- name: LockPolicyActions :many
SELECT a.id FROM action a WHERE a.ref = ANY (sqlc.arg(refs)::text[]) ORDER BY a.id FOR KEY SHARE;


-- name: LockPolicies :many
SELECT p.id FROM policy p WHERE p.ref = ANY (sqlc.arg(refs)::text[]) ORDER BY p.id FOR UPDATE;

-- name: PackRefs :many
-- For a hint about an unknown ref; read only then.
SELECT p.ref FROM pack p ORDER BY p.ref LIMIT sqlc.arg(page)::int;

-- name: SupersededPolicies :many
-- The policies among these that have no effect: only the newest concurrency policy of each scope has one.
SELECT p.ref, newest.ref AS newest
FROM policy p
JOIN LATERAL (
    SELECT n.ref FROM policy n
    WHERE n.kind = 'concurrency' AND n.action IS NOT DISTINCT FROM p.action
      AND (p.action IS NOT NULL OR n.pack IS NOT DISTINCT FROM p.pack)
    ORDER BY n.created DESC, n.id DESC LIMIT 1) newest ON newest.ref <> p.ref
WHERE p.kind = 'concurrency' AND p.ref = ANY (sqlc.arg(refs)::text[]);

-- name: UndescribedPolicies :many
-- Policies about packs and their actions that are named after a pack or were read from its folder,
-- and that no file describes. folder is the pack in whose folder the newest application read the
-- policy.
SELECT p.id, p.ref, p.action, p.pack, f.folder
FROM policy p
LEFT JOIN action a ON a.id = p.action
LEFT JOIN pack k ON k.id = p.pack
CROSS JOIN LATERAL (
    SELECT coalesce((SELECT o.request ->> 'pack' FROM operator_audit o
                     WHERE o.target_type = 'policy' AND o.target_id = p.id AND o.action = 'policy.apply'
                     ORDER BY o.id DESC LIMIT 1), '')::text AS folder
) f
WHERE p.ref <> ALL (sqlc.arg(described)::text[])
  AND (k.ref = ANY (sqlc.arg(packs)::text[]) OR a.pack_ref = ANY (sqlc.arg(packs)::text[])
       OR split_part(p.ref, '.', 1) = ANY (sqlc.arg(packs)::text[]) OR f.folder = ANY (sqlc.arg(packs)::text[]))
ORDER BY p.ref;

-- name: LockPolicyScopes :many
-- Locks the counters of policies that will be deleted: batches lock them before policies.
SELECT c.id FROM admission_scope c
WHERE c.policy IN (SELECT p.id FROM policy p WHERE p.ref = ANY (sqlc.arg(refs)::text[]))
ORDER BY c.id FOR UPDATE;

-- name: DeletePolicies :exec
DELETE FROM policy WHERE id = ANY (sqlc.arg(ids)::bigint[]);

-- name: ApplyPolicy :one
-- Writes one policy by its ref. created does not change: it decides which of several policies of
-- one scope is the newest.
INSERT INTO policy (ref, name, description, tags, action, action_ref, pack, pack_ref, kind, threshold, window_seconds,
                    burst, method, parameters, max_queue_length, queue_timeout_seconds, retry_place, adaptive_min,
                    adaptive_latency_ms)
SELECT sqlc.arg(ref)::text, d.name, d.description, d.tags, d.action, d.action_ref, d.pack, d.pack_ref, d.kind, d.threshold,
       d.window_seconds, d.burst, d.method::policy_method_enum, d.parameters, d.max_queue_length, d.queue_timeout_seconds,
       d.retry_place, d.adaptive_min, d.adaptive_latency_ms
FROM jsonb_to_record(sqlc.arg(doc)::jsonb) AS d (
    name text, description text, tags text[], action bigint, action_ref text, pack bigint, pack_ref text, kind text,
    threshold int, window_seconds int, burst int, method text, parameters text[], max_queue_length int,
    queue_timeout_seconds int, retry_place text, adaptive_min int, adaptive_latency_ms int)
ON CONFLICT (ref) DO UPDATE
SET name = excluded.name, description = excluded.description, tags = excluded.tags, action = excluded.action,
    action_ref = excluded.action_ref, pack = excluded.pack, pack_ref = excluded.pack_ref, kind = excluded.kind,
    threshold = excluded.threshold, window_seconds = excluded.window_seconds, burst = excluded.burst,
    method = excluded.method, parameters = excluded.parameters, max_queue_length = excluded.max_queue_length,
    queue_timeout_seconds = excluded.queue_timeout_seconds, retry_place = excluded.retry_place,
    adaptive_min = excluded.adaptive_min, adaptive_latency_ms = excluded.adaptive_latency_ms
RETURNING id;

-- name: FindWaitingHeads :many
-- The heads of queues under a policy, blocked queues first. The sweeps find the queues beyond the
-- page.
SELECT s.id AS state_id, h.execution_id, s.action_id, e.action_ref, e.parent, e.enforcement, e.config,
       now()::timestamptz AS at
FROM (
    SELECT q.id, q.action_id
    FROM execution_admission_state q
    JOIN action a ON a.id = q.action_id
    LEFT JOIN admission_blocked b ON b.state_id = q.id
    WHERE q.queued_count > 0 AND NOT q.paused
      AND (a.id = ANY (sqlc.arg(actions)::bigint[]) OR a.pack = ANY (sqlc.arg(packs)::bigint[]) OR sqlc.arg(everything)::bool)
    ORDER BY b.ticket NULLS LAST, q.id
    LIMIT sqlc.arg(page)::int
) s
CROSS JOIN LATERAL (
    SELECT f.execution_id
    FROM (SELECT unnest(ARRAY[1, 0, -1]) AS lane) l
    CROSS JOIN LATERAL (
        SELECT w.execution_id FROM execution_admission_entry w
        WHERE w.state_id = s.id AND w.lane = l.lane
        ORDER BY w.queue_order LIMIT 1
    ) f
    ORDER BY l.lane DESC LIMIT 1
) h
JOIN execution e ON e.id = h.execution_id
ORDER BY s.id;

-- name: CatalogRows :many
-- The items of one kind with these refs. Of runtimes all: an action may use any name of one. Of actions also the ones of
-- these packs, or all: a policy of the pack, or of everything, may name their parameters.
SELECT p.id, p.ref::text AS ref, p.ref::text AS pack_ref, false AS is_adhoc, to_jsonb(p) AS doc
FROM pack p WHERE sqlc.arg(kind)::text = 'pack' AND p.ref = ANY (sqlc.arg(refs)::text[])
UNION ALL
SELECT r.id, r.ref, coalesce(r.pack_ref, ''), false, to_jsonb(r)
FROM runtime r WHERE sqlc.arg(kind)::text = 'runtime'
UNION ALL
SELECT w.id, w.ref, w.pack_ref, false, to_jsonb(w)
FROM workflow_definition w WHERE sqlc.arg(kind)::text = 'workflow' AND w.ref = ANY (sqlc.arg(refs)::text[])
UNION ALL
SELECT a.id, a.ref, a.pack_ref, a.is_adhoc,
       (to_jsonb(a) || jsonb_build_object('runtime_ref', r.ref, 'workflow_ref', w.ref))::jsonb
FROM action a
LEFT JOIN runtime r ON r.id = a.runtime
LEFT JOIN workflow_definition w ON w.id = a.workflow_def
WHERE sqlc.arg(kind)::text = 'action' AND (a.ref = ANY (sqlc.arg(refs)::text[])
    OR a.pack_ref = ANY (sqlc.arg(packs)::text[]) OR sqlc.arg(everything)::bool)
UNION ALL
SELECT t.id, t.ref, coalesce(t.pack_ref, ''), t.is_adhoc, to_jsonb(t)
FROM trigger t WHERE sqlc.arg(kind)::text = 'trigger' AND t.ref = ANY (sqlc.arg(refs)::text[])
UNION ALL
SELECT u.id, u.ref, u.pack_ref, u.is_adhoc, to_jsonb(u)
FROM rule u WHERE sqlc.arg(kind)::text = 'rule' AND u.ref = ANY (sqlc.arg(refs)::text[])
UNION ALL -- the refs of the rows that a policy is bound to, not the texts beside them
SELECT l.id, l.ref, '', false, (to_jsonb(l) || jsonb_build_object('action_ref', a.ref, 'pack_ref', p.ref))::jsonb
FROM policy l
LEFT JOIN action a ON a.id = l.action
LEFT JOIN pack p ON p.id = l.pack
WHERE sqlc.arg(kind)::text = 'policy' AND l.ref = ANY (sqlc.arg(refs)::text[])
ORDER BY 1;

-- name: TriggerRefs :many
-- For a hint about an unknown ref; read only then.
SELECT t.ref FROM trigger t ORDER BY t.ref LIMIT sqlc.arg(page)::int;

-- name: ApplyPack :one
INSERT INTO pack (ref, label, description, version, conf_schema, config, meta, tags, runtime_deps, dependencies, is_standard)
SELECT sqlc.arg(ref)::text, d.label, d.description, d.version, d.conf_schema, d.config, d.meta, d.tags, d.runtime_deps,
       d.dependencies, d.is_standard
FROM jsonb_to_record(sqlc.arg(doc)::jsonb) AS d (
    label text, description text, version text, conf_schema jsonb, config jsonb, meta jsonb, tags text[],
    runtime_deps text[], dependencies text[], is_standard boolean)
ON CONFLICT (ref) DO UPDATE
SET label = excluded.label, description = excluded.description, version = excluded.version,
    conf_schema = excluded.conf_schema, config = excluded.config, meta = excluded.meta, tags = excluded.tags,
    runtime_deps = excluded.runtime_deps, dependencies = excluded.dependencies, is_standard = excluded.is_standard
RETURNING id;

-- name: ApplyRuntime :one
INSERT INTO runtime (ref, pack, pack_ref, description, name, aliases, distributions, installation, execution_config)
SELECT sqlc.arg(ref)::text, d.pack, d.pack_ref, d.description, d.name, d.aliases, d.distributions, d.installation,
       d.execution_config
FROM jsonb_to_record(sqlc.arg(doc)::jsonb) AS d (
    pack bigint, pack_ref text, description text, name text, aliases text[], distributions jsonb, installation jsonb,
    execution_config jsonb)
ON CONFLICT (ref) DO UPDATE
SET pack = excluded.pack, pack_ref = excluded.pack_ref, description = excluded.description, name = excluded.name,
    aliases = excluded.aliases, distributions = excluded.distributions, installation = excluded.installation,
    execution_config = excluded.execution_config
RETURNING id;

-- name: ApplyWorkflow :one
INSERT INTO workflow_definition (ref, pack, pack_ref, label, description, version, param_schema, out_schema, definition, tags)
SELECT sqlc.arg(ref)::text, d.pack, d.pack_ref, d.label, d.description, d.version, d.param_schema, d.out_schema,
       d.definition, d.tags
FROM jsonb_to_record(sqlc.arg(doc)::jsonb) AS d (
    pack bigint, pack_ref text, label text, description text, version text, param_schema jsonb, out_schema jsonb,
    definition jsonb, tags text[])
ON CONFLICT (ref) DO UPDATE
SET pack = excluded.pack, pack_ref = excluded.pack_ref, label = excluded.label, description = excluded.description,
    version = excluded.version, param_schema = excluded.param_schema, out_schema = excluded.out_schema,
    definition = excluded.definition, tags = excluded.tags
RETURNING id;

-- name: ApplyAction :one
INSERT INTO action (ref, pack, pack_ref, label, description, entrypoint, runtime, workflow_def, param_schema, out_schema,
                    parameter_delivery, parameter_format, output_format, timeout_seconds, scheduled_timeout_seconds,
                    max_retries, runtime_version_constraint, accesses_mcp, default_execution_permission_set_refs,
                    log_retention_policy, log_retention_limit, artifact_retention_policy, artifact_retention_limit,
                    required_worker_runtimes, worker_selector, worker_tolerations, worker_affinity)
SELECT sqlc.arg(ref)::text, d.pack, d.pack_ref, d.label, d.description, d.entrypoint, d.runtime, d.workflow_def,
       d.param_schema, d.out_schema, d.parameter_delivery, d.parameter_format, d.output_format, d.timeout_seconds,
       d.scheduled_timeout_seconds, d.max_retries, d.runtime_version_constraint, d.accesses_mcp,
       d.default_execution_permission_set_refs, d.log_retention_policy::artifact_retention_enum, d.log_retention_limit,
       d.artifact_retention_policy::artifact_retention_enum, d.artifact_retention_limit, d.required_worker_runtimes,
       d.worker_selector, d.worker_tolerations, d.worker_affinity
FROM jsonb_to_record(sqlc.arg(doc)::jsonb) AS d (
    pack bigint, pack_ref text, label text, description text, entrypoint text, runtime bigint, workflow_def bigint,
    param_schema jsonb, out_schema jsonb, parameter_delivery text, parameter_format text, output_format text,
    timeout_seconds integer, scheduled_timeout_seconds integer, max_retries integer, runtime_version_constraint text,
    accesses_mcp boolean, default_execution_permission_set_refs text[], log_retention_policy text,
    log_retention_limit integer, artifact_retention_policy text, artifact_retention_limit integer,
    required_worker_runtimes jsonb, worker_selector jsonb, worker_tolerations jsonb, worker_affinity jsonb)
ON CONFLICT (ref) DO UPDATE
SET pack = excluded.pack, pack_ref = excluded.pack_ref, label = excluded.label, description = excluded.description,
    entrypoint = excluded.entrypoint, runtime = excluded.runtime, workflow_def = excluded.workflow_def,
    param_schema = excluded.param_schema, out_schema = excluded.out_schema,
    parameter_delivery = excluded.parameter_delivery, parameter_format = excluded.parameter_format,
    output_format = excluded.output_format, timeout_seconds = excluded.timeout_seconds,
    scheduled_timeout_seconds = excluded.scheduled_timeout_seconds, max_retries = excluded.max_retries,
    runtime_version_constraint = excluded.runtime_version_constraint, accesses_mcp = excluded.accesses_mcp,
    default_execution_permission_set_refs = excluded.default_execution_permission_set_refs,
    log_retention_policy = excluded.log_retention_policy, log_retention_limit = excluded.log_retention_limit,
    artifact_retention_policy = excluded.artifact_retention_policy,
    artifact_retention_limit = excluded.artifact_retention_limit,
    required_worker_runtimes = excluded.required_worker_runtimes, worker_selector = excluded.worker_selector,
    worker_tolerations = excluded.worker_tolerations, worker_affinity = excluded.worker_affinity
RETURNING id;

-- name: ApplyTrigger :one
INSERT INTO trigger (ref, pack, pack_ref, label, description, enabled, param_schema, out_schema)
SELECT sqlc.arg(ref)::text, d.pack, d.pack_ref, d.label, d.description, d.enabled, d.param_schema, d.out_schema
FROM jsonb_to_record(sqlc.arg(doc)::jsonb) AS d (
    pack bigint, pack_ref text, label text, description text, enabled boolean, param_schema jsonb, out_schema jsonb)
ON CONFLICT (ref) DO UPDATE
SET pack = excluded.pack, pack_ref = excluded.pack_ref, label = excluded.label, description = excluded.description,
    enabled = excluded.enabled, param_schema = excluded.param_schema, out_schema = excluded.out_schema
RETURNING id;

-- name: ApplyRule :one
INSERT INTO rule (ref, pack, pack_ref, label, description, action, action_ref, trigger, trigger_ref, conditions,
                  action_params, trigger_params, permission_set_refs, enabled)
SELECT sqlc.arg(ref)::text, d.pack, d.pack_ref, d.label, d.description, d.action, d.action_ref, d.trigger, d.trigger_ref,
       d.conditions, d.action_params, d.trigger_params, d.permission_set_refs, d.enabled
FROM jsonb_to_record(sqlc.arg(doc)::jsonb) AS d (
    pack bigint, pack_ref text, label text, description text, action bigint, action_ref text, trigger bigint,
    trigger_ref text, conditions jsonb, action_params jsonb, trigger_params jsonb, permission_set_refs text[],
    enabled boolean)
ON CONFLICT (ref) DO UPDATE
SET pack = excluded.pack, pack_ref = excluded.pack_ref, label = excluded.label, description = excluded.description,
    action = excluded.action, action_ref = excluded.action_ref, trigger = excluded.trigger,
    trigger_ref = excluded.trigger_ref, conditions = excluded.conditions, action_params = excluded.action_params,
    trigger_params = excluded.trigger_params, permission_set_refs = excluded.permission_set_refs,
    enabled = excluded.enabled
RETURNING id;

-- name: RelinkRules :many
-- Deleting an action or a trigger removes it from its rules. Rules get it back when it exists
-- again.
UPDATE rule r
SET action = coalesce(r.action, a.id), trigger = coalesce(r.trigger, t.id)
FROM rule x
LEFT JOIN action a ON x.action IS NULL AND a.ref = x.action_ref
LEFT JOIN trigger t ON x.trigger IS NULL AND t.ref = x.trigger_ref
WHERE r.id = x.id
  AND (a.ref = ANY (sqlc.arg(actions)::text[]) OR t.ref = ANY (sqlc.arg(triggers)::text[]))
RETURNING r.id, r.ref, r.pack_ref, r.action_ref, r.trigger_ref, (a.id IS NOT NULL)::bool AS action_linked,
          (t.id IS NOT NULL)::bool AS trigger_linked, to_jsonb(r) AS doc;

-- name: SwitchRule :one
-- Enables or disables a rule. changed is false if it was so already.
WITH was AS (
    SELECT r.id, r.trigger_ref, r.trigger_params FROM rule r WHERE r.ref = sqlc.arg(ref)::text FOR UPDATE
), changed AS (
    UPDATE rule r SET enabled = sqlc.arg(enable)::bool FROM was
    WHERE r.id = was.id AND r.enabled <> sqlc.arg(enable)::bool
    RETURNING r.id
)
SELECT was.id, was.trigger_ref, coalesce(was.trigger_params, '{}')::jsonb AS trigger_params,
       EXISTS (SELECT FROM changed)::bool AS changed
FROM was;

-- name: PackRuntimeNames :many
-- The runtimes that workers prepare for a pack.
SELECT DISTINCT lower(r.name)::text AS name
FROM runtime r
WHERE r.id IN (SELECT a.runtime FROM action a WHERE a.pack = sqlc.arg(pack))
   OR r.id IN (SELECT s.runtime FROM sensor s WHERE s.pack = sqlc.arg(pack)::bigint)
ORDER BY name;

-- name: PrunableRows :many
-- Rows of packs that their files lack, without rows that users created by hand, in the order in
-- which they can be deleted. busy counts unfinished executions, up to a thousand.
SELECT 'rule'::text AS kind, r.id, r.ref, r.trigger_ref AS detail, 0::bigint AS busy
FROM rule r
WHERE r.pack_ref = ANY (sqlc.arg(packs)::text[]) AND NOT r.is_adhoc AND r.ref <> ALL (sqlc.arg(rules)::text[])
UNION ALL
SELECT 'trigger'::text, t.id, t.ref, ''::text, 0::bigint
FROM trigger t
WHERE t.pack_ref = ANY (sqlc.arg(packs)::text[]) AND NOT t.is_adhoc AND t.ref <> ALL (sqlc.arg(triggers)::text[])
UNION ALL
SELECT 'action'::text, a.id, a.ref, ''::text,
       (SELECT count(*) FROM (
            SELECT FROM execution e
            WHERE e.action = a.id AND e.status NOT IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned')
            LIMIT 1000) n)
FROM action a
WHERE a.pack_ref = ANY (sqlc.arg(packs)::text[]) AND NOT a.is_adhoc AND a.ref <> ALL (sqlc.arg(actions)::text[])
UNION ALL
SELECT 'workflow'::text, w.id, w.ref::text, ''::text,
       (SELECT count(*) FROM (
            SELECT FROM workflow_execution x
            WHERE x.workflow_def = w.id AND x.open AND x.status NOT IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned')
            LIMIT 1000) n)
FROM workflow_definition w
WHERE w.pack_ref = ANY (sqlc.arg(packs)::text[]) AND w.ref <> ALL (sqlc.arg(workflows)::text[])
  AND NOT EXISTS (SELECT FROM action a WHERE a.workflow_def = w.id AND a.is_adhoc);

-- name: PruneRules :exec
DELETE FROM rule WHERE id = ANY (sqlc.arg(ids)::bigint[]);

-- name: PruneTriggers :exec
DELETE FROM trigger WHERE id = ANY (sqlc.arg(ids)::bigint[]);

-- name: PruneActions :exec
DELETE FROM action WHERE id = ANY (sqlc.arg(ids)::bigint[]);

-- name: PruneWorkflows :exec
DELETE FROM workflow_definition WHERE id = ANY (sqlc.arg(ids)::bigint[]);
