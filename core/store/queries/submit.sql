-- Requests of users and programs.

-- name: ActionsByRef :many
-- epoch is the version of all actions that the rows belong to.
SELECT a.id, a.ref, a.param_schema, a.default_execution_permission_set_refs AS permission_sets,
       coalesce(a.artifact_retention_policy, 'versions')::text AS retention_policy, coalesce(a.artifact_retention_limit, 5)::int AS retention_limit,
       (SELECT e.epoch FROM admission_epoch e)::bigint AS epoch
FROM action a WHERE a.ref = ANY (sqlc.arg(refs)::text[]) ORDER BY a.id;

-- name: ActionRefs :many
-- For a hint about an unknown ref; read only then.
SELECT a.ref FROM action a ORDER BY a.ref LIMIT sqlc.arg(page)::int;

-- name: OutboxRowExists :one
-- False as soon as the broker has confirmed every message of the row.
SELECT EXISTS (SELECT 1 FROM outbox o WHERE o.id = sqlc.arg(id));

-- name: RequestExecutions :many
-- Inserts executions and the outbox row with their requests in one statement, if the actions are
-- unchanged since the caller read them. Otherwise it inserts and returns nothing. Empty texts and
-- zeros are stored as NULL. The body of a message is its parts with the row's time and its id
-- between them. The rows get ascending ids in the order of the arrays. With tell, the engines are
-- notified of the outbox row. published are rows that the caller's relay has published.
WITH made AS (
    INSERT INTO execution (action, action_ref, config, priority, executor, parent, permission_set_refs, env_vars,
                           artifact_retention_policy, artifact_retention_limit,
                           worker_selector, worker_tolerations, worker_affinity)
    SELECT r.action, r.ref, nullif(r.config, '')::jsonb, nullif(r.priority, 0),
           (SELECT i.id FROM identity i WHERE i.id = r.executor), nullif(r.parent, 0), r.permission_sets::text[],
           nullif(r.env_vars, '')::jsonb, nullif(r.retention_policy, '')::artifact_retention_enum, nullif(r.retention_limit, 0),
           nullif(r.selector, '')::jsonb, nullif(r.tolerations, '')::jsonb, nullif(r.affinity, '')::jsonb
    FROM (SELECT unnest(sqlc.arg(actions)::bigint[]) AS action, unnest(sqlc.arg(refs)::text[]) AS ref,
                 unnest(sqlc.arg(configs)::text[]) AS config, unnest(sqlc.arg(priorities)::smallint[]) AS priority,
                 unnest(sqlc.arg(executors)::bigint[]) AS executor, unnest(sqlc.arg(parents)::bigint[]) AS parent,
                 unnest(sqlc.arg(permission_sets)::text[]) AS permission_sets, unnest(sqlc.arg(env_vars)::text[]) AS env_vars,
                 unnest(sqlc.arg(retention_policies)::text[]) AS retention_policy, unnest(sqlc.arg(retention_limits)::int[]) AS retention_limit,
                 unnest(sqlc.arg(selectors)::text[]) AS selector, unnest(sqlc.arg(tolerations)::text[]) AS tolerations,
                 unnest(sqlc.arg(affinities)::text[]) AS affinity
          LIMIT cardinality(sqlc.arg(actions)::bigint[])) r -- a limit, so that the planner keeps one plan for any number
    WHERE (SELECT e.epoch FROM admission_epoch e) = sqlc.arg(epoch)::bigint
    RETURNING id, created
), gone AS (
    DELETE FROM outbox x WHERE x.id = ANY (ARRAY(SELECT unnest(sqlc.arg(published)::bigint[])))
), sent AS (
    INSERT INTO outbox (message_ids, exchanges, routing_keys, message_types, traces, bodies)
    SELECT sqlc.arg(message_ids)::text[], sqlc.arg(exchanges)::text[], sqlc.arg(routing_keys)::text[], sqlc.arg(message_types)::text[],
           sqlc.arg(traces)::text[],
           ARRAY(SELECT convert_to((sqlc.arg(heads)::text[])[n.place] || to_char(n.created AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
                                   || (sqlc.arg(middles)::text[])[n.place] || n.id || (sqlc.arg(tails)::text[])[n.place], 'UTF8')
                 FROM (SELECT m.id, m.created, row_number() OVER () AS place FROM made m) n)
    WHERE EXISTS (SELECT FROM made)
    RETURNING id, coalesce(CASE WHEN sqlc.arg(tell)::bool THEN pg_notify('attune_outbox', current_schema() || ' ' || id)::text END, '')::text AS told
)
SELECT m.id, m.created, s.id AS outbox_id, s.told FROM made m CROSS JOIN sent s;

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
