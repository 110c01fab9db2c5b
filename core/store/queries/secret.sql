-- Encrypted secret values, beside the JSON in which markers stand for them.

-- name: ReadSecretValues :many
-- All values of these entities of one type, by entity and path.
SELECT v.entity_id, v.json_path, v.source_kind, coalesce(v.source_ref, '')::text AS source_ref, v.encrypted_value,
       coalesce(v.encryption_key_hash, '')::text AS encryption_key_hash
FROM unnest(sqlc.arg(entities)::bigint[]) AS w (id)
CROSS JOIN LATERAL (
    SELECT x.entity_id, x.json_path, x.source_kind, x.source_ref, x.encrypted_value, x.encryption_key_hash
    FROM execution_secret_value x WHERE x.entity_type = sqlc.arg(entity_type)::text AND x.entity_id = w.id OFFSET 0) v
ORDER BY v.entity_id, v.json_path;

-- name: InsertSecretValues :exec
-- Row i of the arrays is one value. A second insert of the same path replaces it. The hash of the
-- key is the key itself, so it is stored only where another program has written it.
INSERT INTO execution_secret_value (entity_type, entity_id, json_path, source_kind, source_ref, encrypted_value, encryption_key_hash)
SELECT s.entity_type, s.entity_id, s.json_path, s.source_kind, nullif(s.source_ref, ''), s.encrypted_value::jsonb, nullif(s.key_hash, '')
FROM (
    SELECT unnest(sqlc.arg(entity_types)::text[]) AS entity_type, unnest(sqlc.arg(entity_ids)::bigint[]) AS entity_id,
           unnest(sqlc.arg(json_paths)::text[]) AS json_path, unnest(sqlc.arg(source_kinds)::text[]) AS source_kind,
           unnest(sqlc.arg(source_refs)::text[]) AS source_ref, unnest(sqlc.arg(encrypted_values)::text[]) AS encrypted_value,
           unnest(sqlc.arg(key_hashes)::text[]) AS key_hash
) s
ORDER BY s.entity_type, s.entity_id, s.json_path
ON CONFLICT (entity_type, entity_id, json_path) DO UPDATE
SET source_kind = excluded.source_kind, source_ref = excluded.source_ref,
    encrypted_value = excluded.encrypted_value, encryption_key_hash = excluded.encryption_key_hash;

-- name: ViewSchemas :one
-- The parameters that the action of an execution marks as secret.
SELECT a.param_schema, a.out_schema
FROM execution e
CROSS JOIN LATERAL (
    SELECT x.param_schema, x.out_schema FROM action x WHERE x.id = e.action UNION ALL
    SELECT x.param_schema, x.out_schema FROM action x WHERE e.action IS NULL AND x.ref = e.action_ref
    LIMIT 1) a
WHERE e.id = sqlc.arg(execution);
