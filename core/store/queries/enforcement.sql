-- Enforcements and their executions.

-- name: ReadEnforcements :many
-- Enforcements with the inputs of the decision. execution is the existing one, 0 for none. A rule
-- without an owner acts as the system, if that identity exists.
SELECT f.id, f.status, f.rule_ref, f.trigger_ref, f.event, f.config, f.created,
       coalesce(r.id, 0)::bigint AS rule, coalesce(r.enabled, false)::bool AS enabled,
       r.action, coalesce(r.action_ref, '')::text AS action_ref, (r.trigger IS NOT NULL)::bool AS has_trigger,
       coalesce(r.owner_identity, (SELECT i.id FROM identity i WHERE i.id = 1), 0)::bigint AS executor,
       coalesce(r.permission_set_refs, a.default_execution_permission_set_refs, '{}')::text[] AS permission_set_refs,
       coalesce((SELECT x.id FROM execution x
                 WHERE x.enforcement = f.id AND x.parent IS NULL AND (x.config IS NULL OR NOT (x.config ? 'retry_of'))), 0)::bigint AS execution
FROM enforcement f
LEFT JOIN rule r ON r.id = f.rule
LEFT JOIN action a ON a.id = r.action
WHERE f.id = ANY (sqlc.arg(ids)::bigint[])
ORDER BY f.id;

-- name: ResolveEnforcements :exec
-- Resolves pending enforcements: disabled with an error, processed without one.
WITH changed AS (
    UPDATE enforcement f
    SET status = CASE WHEN r.error = '' THEN 'processed' ELSE 'disabled' END::enforcement_status_enum,
        resolved_at = now(), error = nullif(r.error, '')
    FROM (SELECT unnest(sqlc.arg(ids)::bigint[]) AS id, unnest(sqlc.arg(errors)::text[]) AS error) r
    WHERE f.id = ANY (ARRAY[r.id]) AND f.status = 'created'
    RETURNING f.id
)
SELECT attune_expect((SELECT count(*) FROM changed), cardinality(sqlc.arg(ids)::bigint[])::bigint, 'enforcements that were to be taken up');

-- name: CopyEnforcementSecrets :exec
-- Copies the secrets of parameters together with the parameters.
INSERT INTO execution_secret_value (entity_type, entity_id, json_path, source_kind, source_ref, encrypted_value, encryption_key_hash)
SELECT 'execution_config', c.execution, v.json_path, v.source_kind, v.source_ref, v.encrypted_value, v.encryption_key_hash
FROM (SELECT unnest(sqlc.arg(enforcements)::bigint[]) AS enforcement, unnest(sqlc.arg(executions)::bigint[]) AS execution) c
CROSS JOIN LATERAL (
    SELECT x.json_path, x.source_kind, x.source_ref, x.encrypted_value, x.encryption_key_hash
    FROM execution_secret_value x WHERE x.entity_type = 'enforcement_config' AND x.entity_id = c.enforcement OFFSET 0) v
ORDER BY c.execution, v.json_path
ON CONFLICT (entity_type, entity_id, json_path) DO NOTHING;
