-- What people describe in files and apply: policies.

-- name: LockCatalog :exec
-- One at a time compares files with the tables and changes them; readers and
-- rounds are not held up.
SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || '.attune.catalog', 0));

-- name: LockPolicyPacks :many
-- Keeps the packs that policies will name, and those of their actions, from
-- being deleted before they do. Packs come before actions, as in a deletion.
SELECT p.id FROM pack p
WHERE p.ref = ANY (sqlc.arg(refs)::text[])
   OR p.id = ANY (ARRAY(SELECT a.pack FROM action a WHERE a.ref = ANY (sqlc.arg(actions)::text[])))
ORDER BY p.id FOR KEY SHARE;

-- name: LockPolicyActions :many
SELECT a.id FROM action a WHERE a.ref = ANY (sqlc.arg(refs)::text[]) ORDER BY a.id FOR KEY SHARE;


-- name: LockPolicies :many
SELECT p.id FROM policy p WHERE p.ref = ANY (sqlc.arg(refs)::text[]) ORDER BY p.id FOR UPDATE;

-- name: CatalogActions :many
-- The named actions, and those of packs, or all, whose parameters a wider
-- policy may name.
SELECT a.id, a.ref, a.pack, p.ref AS pack_ref, a.param_schema
FROM action a
JOIN pack p ON p.id = a.pack
WHERE a.ref = ANY (sqlc.arg(refs)::text[]) OR p.ref = ANY (sqlc.arg(packs)::text[]) OR sqlc.arg(everything)::bool
ORDER BY a.id;

-- name: CatalogPacks :many
SELECT p.id, p.ref FROM pack p WHERE p.ref = ANY (sqlc.arg(refs)::text[]) ORDER BY p.id;

-- name: PackRefs :many
-- For a hint when a ref is unknown; read only then.
SELECT p.ref FROM pack p ORDER BY p.ref LIMIT sqlc.arg(page)::int;

-- name: CatalogPolicies :many
-- Policies as they are now. The refs of action and pack are those of the rows
-- that the policy is bound to, not the texts beside them.
SELECT p.id, p.ref, p.name, coalesce(p.description, '')::text AS description, p.tags,
       p.action, coalesce(a.ref, '')::text AS action_ref, p.pack, coalesce(k.ref, '')::text AS pack_ref,
       p.kind, p.threshold, coalesce(p.window_seconds, 0)::int AS window_seconds, coalesce(p.burst, 0)::int AS burst,
       p.method::text AS method, p.parameters, coalesce(p.max_queue_length, 0)::int AS max_queue_length,
       coalesce(p.queue_timeout_seconds, 0)::int AS queue_timeout_seconds,
       coalesce(p.retry_place, '')::text AS retry_place, coalesce(p.adaptive_min, 0)::int AS adaptive_min,
       coalesce(p.adaptive_latency_ms, 0)::int AS adaptive_latency_ms, p.created
FROM policy p
LEFT JOIN action a ON a.id = p.action
LEFT JOIN pack k ON k.id = p.pack
WHERE p.ref = ANY (sqlc.arg(refs)::text[])
ORDER BY p.id;

-- name: CatalogRivals :many
-- The concurrency policies of actions, of packs, or of everything: of each
-- scope only the newest has an effect.
SELECT p.id, p.ref, p.action, p.pack, p.created
FROM policy p
WHERE p.kind = 'concurrency'
  AND (p.action = ANY (sqlc.arg(actions)::bigint[])
       OR p.action IS NULL AND p.pack = ANY (sqlc.arg(packs)::bigint[])
       OR p.action IS NULL AND p.pack IS NULL AND sqlc.arg(everything)::bool)
ORDER BY p.created DESC, p.id DESC;

-- name: ApplyPolicy :one
-- Writes one policy by its ref. created stays what it was: it says which of
-- several policies of one scope is the newest.
    INSERT INTO policy (ref, name, description, tags, action, action_ref, pack, pack_ref, kind, threshold, window_seconds,
                    burst, method, parameters, max_queue_length, queue_timeout_seconds, retry_place, adaptive_min,
                    adaptive_latency_ms)
VALUES (sqlc.arg(ref), sqlc.arg(name), nullif(sqlc.arg(description)::text, ''), sqlc.arg(tags)::text[],
        sqlc.narg(action), nullif(sqlc.arg(action_ref)::text, ''), sqlc.narg(pack),
        nullif(sqlc.arg(pack_ref)::text, ''), sqlc.arg(kind), sqlc.arg(threshold),
        nullif(sqlc.arg(window_seconds)::int, 0), nullif(sqlc.arg(burst)::int, 0),
        sqlc.arg(method)::text::policy_method_enum, sqlc.arg(parameters)::text[],
        nullif(sqlc.arg(max_queue_length)::int, 0), nullif(sqlc.arg(queue_timeout_seconds)::int, 0),
        nullif(sqlc.arg(retry_place)::text, ''), nullif(sqlc.arg(adaptive_min)::int, 0),
        nullif(sqlc.arg(adaptive_latency_ms)::int, 0))
ON CONFLICT (ref) DO UPDATE
SET name = excluded.name, description = excluded.description, tags = excluded.tags, action = excluded.action,
    action_ref = excluded.action_ref, pack = excluded.pack, pack_ref = excluded.pack_ref, kind = excluded.kind,
    threshold = excluded.threshold, window_seconds = excluded.window_seconds, burst = excluded.burst,
    method = excluded.method, parameters = excluded.parameters, max_queue_length = excluded.max_queue_length,
    queue_timeout_seconds = excluded.queue_timeout_seconds, retry_place = excluded.retry_place,
    adaptive_min = excluded.adaptive_min, adaptive_latency_ms = excluded.adaptive_latency_ms
RETURNING id;

-- name: FindWaitingHeads :many
-- The first waiter of queues that a policy is about, those that something wider
-- keeps first. What is beyond the page is found by the sweeps.
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
