-- name: GetPackByRef :one
SELECT * FROM pack WHERE ref = sqlc.arg(ref);

-- name: ListPacks :many
SELECT id, ref, label, version, is_standard, updated FROM pack ORDER BY ref;

-- name: UpsertPack :one
INSERT INTO pack (ref, label, description, version, conf_schema, config, tags, installed_at, installation_method)
VALUES (sqlc.arg(ref), sqlc.arg(label), sqlc.narg(description), sqlc.arg(version),
        coalesce(sqlc.narg(conf_schema)::jsonb, '{}'), coalesce(sqlc.narg(config)::jsonb, '{}'),
        coalesce(sqlc.arg(tags)::text[], '{}'), now(), 'catalog')
ON CONFLICT (ref) DO UPDATE SET
    label = excluded.label, description = excluded.description, version = excluded.version,
    conf_schema = excluded.conf_schema, tags = excluded.tags, installed_at = excluded.installed_at
RETURNING id;

-- name: GetRuntimes :many
SELECT id, ref, name, aliases FROM runtime ORDER BY id;
