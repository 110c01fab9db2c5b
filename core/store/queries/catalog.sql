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

-- name: PutItem :one
SELECT attune_put(sqlc.arg(item)::text, sqlc.arg(ref)::text, sqlc.arg(doc)::jsonb)::bigint AS id;

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
