-- Requests of users and programs.

-- name: ActionsByRef :many
SELECT a.id, a.ref, a.param_schema, md5(coalesce(a.param_schema::text, ''))::text AS digest FROM action a WHERE a.ref = ANY (sqlc.arg(refs)::text[]) ORDER BY a.id;

-- name: ActionRefs :many
-- For a hint about an unknown ref; read only then.
SELECT a.ref FROM action a ORDER BY a.ref LIMIT sqlc.arg(page)::int;

-- name: InsertRequestedExecutions :many
-- The rows get ascending ids in the order of the arrays. An empty config is stored as NULL, and so
-- is the normal priority, 0. An option is empty, or an object with the fields that a caller of the
-- HTTP API sets.
INSERT INTO execution (action, action_ref, config, priority, executor, parent, permission_set_refs, env_vars,
                       artifact_retention_policy, artifact_retention_limit,
                       worker_selector, worker_tolerations, worker_affinity)
SELECT r.action, r.ref, nullif(r.config, '')::jsonb, nullif(r.priority, 0),
       (SELECT i.id FROM identity i WHERE i.id = (o.v ->> 'executor')::bigint), (o.v ->> 'parent')::bigint,
       CASE WHEN jsonb_typeof(o.v -> 'permission_set_refs') = 'array'
            THEN ARRAY(SELECT s.name FROM jsonb_array_elements_text(o.v -> 'permission_set_refs') s (name))
            ELSE coalesce(a.default_execution_permission_set_refs, '{}') END,
       o.v -> 'env_vars',
       CASE WHEN o.v IS NOT NULL THEN coalesce((o.v ->> 'artifact_retention_policy')::artifact_retention_enum,
                                               a.artifact_retention_policy, 'versions') END,
       CASE WHEN o.v IS NOT NULL THEN coalesce((o.v ->> 'artifact_retention_limit')::int, a.artifact_retention_limit, 5) END,
       o.v -> 'worker_selector', o.v -> 'worker_tolerations', o.v -> 'worker_affinity'
FROM (
    SELECT unnest(sqlc.arg(actions)::bigint[]) AS action, unnest(sqlc.arg(refs)::text[]) AS ref,
           unnest(sqlc.arg(configs)::text[]) AS config, unnest(sqlc.arg(priorities)::smallint[]) AS priority,
           unnest(sqlc.arg(options)::text[]) AS option, generate_subscripts(sqlc.arg(actions)::bigint[], 1) AS place
) r
CROSS JOIN LATERAL (SELECT nullif(r.option, '')::jsonb AS v) o
LEFT JOIN action a ON a.id = r.action
ORDER BY r.place -- a join alone gives the rows in any order
RETURNING id, created;

-- name: OutboxRowExists :one
-- False as soon as the broker has confirmed every message of the row.
SELECT EXISTS (SELECT 1 FROM outbox o WHERE o.id = sqlc.arg(id));

-- name: RequestExecutions :many
-- Inserts executions and the outbox row with their requests in one statement, if the actions are
-- unchanged since the caller read them. Otherwise it inserts and returns nothing. The body of a
-- message is its parts with the row's time and its id between them. The rows get ascending ids in
-- the order of the arrays. With tell, the engines are notified of the outbox row.
WITH asked AS MATERIALIZED (
    SELECT unnest(sqlc.arg(actions)::bigint[]) AS action, unnest(sqlc.arg(refs)::text[]) AS ref, unnest(sqlc.arg(schemas)::text[]) AS digest,
           unnest(sqlc.arg(configs)::text[]) AS config, unnest(sqlc.arg(priorities)::smallint[]) AS priority,
           unnest(sqlc.arg(options)::text[]) AS option, generate_subscripts(sqlc.arg(actions)::bigint[], 1) AS place
), known AS MATERIALIZED (
    SELECT a.id, a.ref, md5(coalesce(a.param_schema::text, '')) AS digest,
           a.default_execution_permission_set_refs, a.artifact_retention_policy, a.artifact_retention_limit
    FROM action a WHERE a.id = ANY (sqlc.arg(actions)::bigint[])
), made AS (
    INSERT INTO execution (action, action_ref, config, priority, executor, parent, permission_set_refs, env_vars,
                           artifact_retention_policy, artifact_retention_limit,
                           worker_selector, worker_tolerations, worker_affinity)
    SELECT r.action, r.ref, nullif(r.config, '')::jsonb, nullif(r.priority, 0),
           (SELECT i.id FROM identity i WHERE i.id = (o.v ->> 'executor')::bigint), (o.v ->> 'parent')::bigint,
           CASE WHEN jsonb_typeof(o.v -> 'permission_set_refs') = 'array'
                THEN ARRAY(SELECT s.name FROM jsonb_array_elements_text(o.v -> 'permission_set_refs') s (name))
                ELSE coalesce(a.default_execution_permission_set_refs, '{}') END,
           o.v -> 'env_vars',
           CASE WHEN o.v IS NOT NULL THEN coalesce((o.v ->> 'artifact_retention_policy')::artifact_retention_enum,
                                                   a.artifact_retention_policy, 'versions') END,
           CASE WHEN o.v IS NOT NULL THEN coalesce((o.v ->> 'artifact_retention_limit')::int, a.artifact_retention_limit, 5) END,
           o.v -> 'worker_selector', o.v -> 'worker_tolerations', o.v -> 'worker_affinity'
    FROM asked r
    CROSS JOIN LATERAL (SELECT nullif(r.option, '')::jsonb AS v) o
    JOIN known a ON a.id = r.action AND a.ref = r.ref AND a.digest = r.digest
    WHERE NOT EXISTS (SELECT FROM asked n WHERE NOT EXISTS (
        SELECT FROM known k WHERE k.id = n.action AND k.ref = n.ref AND k.digest = n.digest))
    ORDER BY r.place -- a join alone gives the rows in any order
    RETURNING id, created
), numbered AS (
    SELECT m.id, m.created, row_number() OVER (ORDER BY m.id) AS place FROM made m
), gone AS (
    DELETE FROM outbox x WHERE x.id = ANY (sqlc.arg(published)::bigint[])
), sent AS (
    INSERT INTO outbox (message_ids, exchanges, routing_keys, message_types, bodies, traces)
    SELECT sqlc.arg(message_ids)::text[], array_agg(sqlc.arg(exchange)::text), array_agg(sqlc.arg(routing_key)::text),
           array_agg(sqlc.arg(message_type)::text),
           array_agg(convert_to(b.head || to_char(n.created AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || b.middle || n.id || b.tail, 'UTF8')
                     ORDER BY n.place),
           array_agg(''::text)
    FROM numbered n
    JOIN (SELECT unnest(sqlc.arg(heads)::text[]) AS head, unnest(sqlc.arg(middles)::text[]) AS middle, unnest(sqlc.arg(tails)::text[]) AS tail,
                 generate_subscripts(sqlc.arg(heads)::text[], 1) AS place) b ON b.place = n.place
    HAVING count(*) > 0
    RETURNING id
)
SELECT n.id, n.created, s.id AS outbox_id,
       coalesce(CASE WHEN sqlc.arg(tell)::bool AND n.place = 1
                     THEN pg_notify('attune_outbox', current_schema() || ' ' || s.id)::text END, '')::text AS told
FROM numbered n CROSS JOIN sent s
ORDER BY n.place;

-- name: RequestOfKey :one
-- What a client has created with its key within a day.
SELECT k.subject, k.digest = sqlc.arg(digest)::bytea AS same FROM request_key k
WHERE k.client = sqlc.arg(client)::text AND k.key = sqlc.arg(key)::text AND k.created > now() - interval '24 hours';

-- name: TakeRequestKey :execrows
-- No row: another request has the key. It waits for a transaction that is about to take it.
INSERT INTO request_key AS k (client, key, digest, subject)
VALUES (sqlc.arg(client)::text, sqlc.arg(key)::text, sqlc.arg(digest)::bytea, sqlc.arg(subject)::bigint)
ON CONFLICT (client, key) DO UPDATE SET digest = excluded.digest, subject = excluded.subject, created = now()
WHERE k.created <= now() - interval '24 hours';

-- name: PruneRequestKeys :execrows
DELETE FROM request_key k
WHERE (k.client, k.key) IN (
    SELECT o.client, o.key FROM request_key o WHERE o.created <= now() - interval '24 hours'
    ORDER BY o.created LIMIT sqlc.arg(page)::int FOR UPDATE SKIP LOCKED);

-- name: EmittedEvent :one
-- The answer to the emission of an event.
SELECT e.trigger_ref, e.created, coalesce(t.enabled, false) AS enabled
FROM event e LEFT JOIN trigger t ON t.id = e.trigger WHERE e.id = sqlc.arg(id);
