-- Deletes unused and expired rows.

-- name: PruneGroupStates :execrows
-- Rows that a batch holds are left to the next run. The row is checked again under its lock.
DELETE FROM execution_admission_state s
WHERE s.id = ANY (ARRAY(
        SELECT t.id FROM execution_admission_state t
        WHERE t.group_key IS NOT NULL AND t.active_count = 0 AND t.queued_count = 0 AND NOT t.paused
          AND t.limit_override IS NULL AND t.updated < now() - make_interval(secs => sqlc.arg(idle)::float8)
        ORDER BY t.id LIMIT sqlc.arg(page)::int FOR UPDATE SKIP LOCKED))
  AND s.active_count = 0 AND s.queued_count = 0 AND NOT s.paused AND s.limit_override IS NULL;

-- name: PruneScopes :execrows
DELETE FROM admission_scope s
WHERE s.id = ANY (ARRAY(
        SELECT t.id FROM admission_scope t
        WHERE t.active_count = 0
          AND t.updated < now() - greatest(make_interval(secs => sqlc.arg(idle)::float8), make_interval(secs => 2 * coalesce(t.window_seconds, 0)))
          AND NOT EXISTS (SELECT 1 FROM admission_blocked b WHERE b.scope_id = t.id)
        ORDER BY t.id LIMIT sqlc.arg(page)::int FOR UPDATE SKIP LOCKED))
  AND s.active_count = 0;

-- name: FindForgettableWorkers :many
-- Inactive workers with an old heartbeat that hold nothing and have no override. A worker with a
-- recently written row may be returning: it enrols before its first heartbeat.
SELECT w.id, w.name FROM worker w
WHERE w.status = 'inactive' AND NOT w.cordoned AND NOT w.draining AND w.id > sqlc.arg(after)::bigint
  AND coalesce(w.heartbeat_seen, w.updated) < now() - make_interval(secs => sqlc.arg(silent)::float8)
  AND w.updated < now() - make_interval(secs => sqlc.arg(settled)::float8)
  AND coalesce((SELECT l.assigned FROM worker_load l WHERE l.worker = w.id), 0) = 0
ORDER BY w.id LIMIT sqlc.arg(page)::int;

-- name: ReleaseWorkerWindow :one
-- Removes the workers' names from the ended executions of one window of ids. last is where the next
-- window begins; scanned below the window size means that the end was reached. held are the workers
-- that executions of the window still need: unfinished executions, or ended ones that still hold
-- their slot.
WITH page AS MATERIALIZED (
    SELECT e.id, e.worker, (e.finished_status IS NOT NULL AND NOT EXISTS (SELECT FROM execution_holder h WHERE h.execution = ANY (ARRAY[e.id])))::bool AS over
    FROM execution e WHERE e.id > sqlc.arg(after)::bigint ORDER BY e.id LIMIT sqlc.arg(window_size)::int
), locked AS MATERIALIZED (
    SELECT x.id FROM execution x
    WHERE x.id = ANY (ARRAY(SELECT p.id FROM page p WHERE p.over AND p.worker = ANY (sqlc.arg(workers)::bigint[])))
    ORDER BY x.id FOR NO KEY UPDATE OF x
), released AS (
    UPDATE execution x SET worker = NULL
    WHERE x.id = ANY (ARRAY(SELECT l.id FROM locked l)) AND x.worker = ANY (sqlc.arg(workers)::bigint[])
    RETURNING x.id
)
SELECT coalesce((SELECT max(p.id) FROM page p), 0)::bigint AS last, (SELECT count(*) FROM page)::int AS scanned,
       (SELECT count(*) FROM released)::int AS released,
       ARRAY(SELECT DISTINCT p.worker FROM page p WHERE NOT p.over AND p.worker = ANY (sqlc.arg(workers)::bigint[]))::bigint[] AS held;

-- name: LockWorkerLoad :one
-- Precedes the lock of the worker's row, as in every batch.
SELECT coalesce((SELECT l.assigned FROM worker_load l WHERE l.worker = sqlc.arg(worker) FOR UPDATE), 0)::int AS assigned;

-- name: LockForgottenWorker :one
SELECT w.name, w.status::text AS status, w.cordoned, w.draining, w.updated::timestamptz AS updated,
       (coalesce(w.heartbeat_seen, w.updated) < now() - make_interval(secs => sqlc.arg(silent)::float8)
        AND w.updated <= now() - make_interval(secs => sqlc.arg(settled)::float8))::bool AS silent
FROM worker w WHERE w.id = sqlc.arg(worker) FOR UPDATE;

-- name: ReferredWorkers :many
-- The given workers with unfinished executions, found by the index of live rows.
SELECT DISTINCT e.worker::bigint AS worker FROM execution e
WHERE e.finished_status IS NULL AND e.worker = ANY (sqlc.arg(workers)::bigint[])
  AND e.status IN ('scheduled', 'running', 'canceling');

-- name: DeleteWorker :execrows
DELETE FROM worker WHERE id = sqlc.arg(worker);

-- name: PruneDeadLetters :execrows
-- Deletes decided dead letters, never ones that wait for an operator.
DELETE FROM dead_letter d
WHERE d.id = ANY (ARRAY(
        SELECT t.id FROM dead_letter t
        WHERE t.created < now() - make_interval(secs => sqlc.arg(older)::float8)
          AND t.decision IS NOT NULL AND coalesce(t.decided_at, t.updated) < now() - make_interval(secs => sqlc.arg(older)::float8)
        ORDER BY t.created LIMIT sqlc.arg(page)::int FOR UPDATE SKIP LOCKED));

-- name: PruneLostWork :execrows
DELETE FROM lost_work w
WHERE w.id = ANY (ARRAY(
        SELECT t.id FROM lost_work t WHERE t.at < now() - make_interval(secs => sqlc.arg(older)::float8)
        ORDER BY t.at LIMIT sqlc.arg(page)::int FOR UPDATE SKIP LOCKED));

-- name: PruneWorkflowSources :execrows
-- Definitions without a workflow. An engine records the use of a definition at least once an hour
-- before it starts a workflow with it, and workflows refer to theirs by a key. So no definition is
-- deleted that is about to be used.
DELETE FROM workflow_source s
WHERE s.id = ANY (ARRAY(
        SELECT t.id FROM workflow_source t
        WHERE t.used < now() - make_interval(secs => sqlc.arg(older)::float8)
          AND NOT EXISTS (SELECT FROM workflow_execution w WHERE w.source = t.id)
        ORDER BY t.id LIMIT sqlc.arg(page)::int FOR UPDATE SKIP LOCKED))
  AND s.used < now() - make_interval(secs => sqlc.arg(older)::float8);

-- name: PruneAlerts :execrows
-- Deletes cleared alerts; an open one still has a cause.
DELETE FROM alert a
WHERE a.id = ANY (ARRAY(
        SELECT t.id FROM alert t
        WHERE t.since < now() - make_interval(secs => sqlc.arg(older)::float8)
          AND t.cleared < now() - make_interval(secs => sqlc.arg(older)::float8)
        ORDER BY t.since LIMIT sqlc.arg(page)::int FOR UPDATE SKIP LOCKED));

-- name: PruneLateWrites :execrows
-- Ids grow with time: the oldest are read, up to the first that is young enough.
DELETE FROM late_write w
WHERE w.id = ANY (ARRAY(
        SELECT t.id FROM (SELECT o.id, o.at < now() - make_interval(secs => sqlc.arg(older)::float8) AS old
                          FROM late_write o ORDER BY o.id LIMIT sqlc.arg(page)::int) t
        WHERE t.old));

-- name: FindOldRoots :one
-- The ended roots of one window of ids: executions without a parent and an original that ended long
-- ago. last is where the next window begins; more is false when the window reached executions that
-- are too young, or the end.
WITH page AS MATERIALIZED (
    SELECT e.id, e.created < now() - make_interval(secs => sqlc.arg(older)::float8) AS old,
           (e.parent IS NULL AND e.original_execution IS NULL AND e.finished_status IS NOT NULL AND NOT EXISTS (SELECT FROM execution_holder h WHERE h.execution = ANY (ARRAY[e.id]))
            AND coalesce(e.finished_at, e.updated) < now() - make_interval(secs => sqlc.arg(older)::float8)) AS ended
    FROM execution e WHERE e.id > sqlc.arg(after)::bigint ORDER BY e.id LIMIT sqlc.arg(window_size)::int
)
SELECT coalesce((SELECT max(p.id) FROM page p), 0)::bigint AS last,
       ((SELECT count(*) FROM page) = sqlc.arg(window_size)::int AND (SELECT bool_or(p.old) FROM page p))::bool AS more,
       ARRAY(SELECT p.id FROM page p WHERE p.old AND p.ended ORDER BY p.id)::bigint[] AS roots;

-- name: FindFamilies :many
-- The executions of each root: its children and retries, theirs, and so on. over is true if all
-- ended long ago and nothing open refers to any of them.
WITH RECURSIVE family AS (
    SELECT r.id AS root, r.id FROM unnest(sqlc.arg(roots)::bigint[]) r (id)
    UNION
    SELECT f.root, c.id FROM family f CROSS JOIN LATERAL (
        SELECT x.id FROM execution x WHERE x.parent = f.id
        UNION ALL
        SELECT x.id FROM execution x WHERE x.original_execution = f.id) c
)
SELECT f.root::bigint AS root, array_agg(f.id ORDER BY f.id)::bigint[] AS members, bool_and(
    e.finished_status IS NOT NULL AND NOT EXISTS (SELECT FROM execution_holder h WHERE h.execution = ANY (ARRAY[e.id]))
    AND coalesce(e.finished_at, e.updated) < now() - make_interval(secs => sqlc.arg(older)::float8)
    AND NOT EXISTS (SELECT FROM execution_admission_entry q WHERE q.execution_id = e.id)
    AND NOT EXISTS (SELECT FROM execution_slot s WHERE s.execution = e.id)
    AND NOT EXISTS (SELECT FROM execution_retry r WHERE r.failed = e.id AND r.waiting)
    AND NOT EXISTS (SELECT FROM inquiry i WHERE i.execution = e.id AND (i.status = 'pending' OR NOT i.settled))
    AND NOT EXISTS (SELECT FROM dead_letter d WHERE d.execution = e.id AND d.decision IS NULL)
)::bool AS over
FROM family f JOIN execution e ON e.id = f.id
GROUP BY f.root ORDER BY f.root;

-- name: LeasedExecutions :many
-- The executions that hold items of a work queue.
SELECT w.execution::bigint AS execution FROM work_queue_dispatch w
WHERE w.execution = ANY (sqlc.arg(executions)::bigint[]) AND w.status IN ('leased', 'dispatched');

-- name: LockOldExecutions :many
SELECT e.id FROM execution e WHERE e.id = ANY (sqlc.arg(ids)::bigint[]) ORDER BY e.id FOR UPDATE;

-- name: DeleteOldExecutions :execrows
-- Attempts, workflow states, their logs, inquiries and secrets are deleted with their executions.
DELETE FROM execution e WHERE e.id = ANY (sqlc.arg(ids)::bigint[]);

-- name: PruneEnforcements :one
-- Processed enforcements of one window of ids without an execution; last and more as in
-- FindOldRoots.
WITH page AS MATERIALIZED (
    SELECT f.id, f.status, f.created < now() - make_interval(secs => sqlc.arg(older)::float8) AS old
    FROM enforcement f WHERE f.id > sqlc.arg(after)::bigint ORDER BY f.id LIMIT sqlc.arg(window_size)::int
), gone AS (
    DELETE FROM enforcement x
    WHERE x.id = ANY (ARRAY(SELECT p.id FROM page p WHERE p.old AND p.status <> 'created'
                            AND NOT EXISTS (SELECT FROM execution e WHERE e.enforcement = p.id)))
      AND x.status <> 'created'
    RETURNING x.id
)
SELECT coalesce((SELECT max(p.id) FROM page p), 0)::bigint AS last,
       ((SELECT count(*) FROM page) = sqlc.arg(window_size)::int AND (SELECT bool_or(p.old) FROM page p))::bool AS more,
       (SELECT count(*) FROM gone)::bigint AS removed;

-- name: PruneOperatorAudit :execrows
-- Ids grow with time, as in PruneLateWrites.
DELETE FROM operator_audit a
WHERE a.id = ANY (ARRAY(
        SELECT t.id FROM (SELECT o.id, o.at < now() - make_interval(secs => sqlc.arg(older)::float8) AS old
                          FROM operator_audit o ORDER BY o.id LIMIT sqlc.arg(page)::int) t
        WHERE t.old));

-- name: RetentionShape :one
-- Whether the schema has work queues, and finds executions by their enforcement without a scan.
SELECT (to_regclass('work_queue_dispatch') IS NOT NULL)::bool AS work_queues, EXISTS (
    SELECT FROM pg_catalog.pg_index i
    JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
    WHERE i.indrelid = 'execution'::regclass AND a.attname = 'enforcement' AND i.indisvalid
      AND (i.indpred IS NULL OR pg_get_expr(i.indpred, i.indrelid) = '(enforcement IS NOT NULL)'))::bool AS indexed;

-- name: SchemaAdopted :one
-- Whether the schema belongs to an existing installation.
SELECT EXISTS (SELECT FROM attune_schema_origin o WHERE o.origin = 'adopted')::bool AS adopted;

-- name: ReadPartitions :many
-- How far ahead partitions exist, and the missing ones, the nearest first. The bounds come from the catalog, so that
-- every partition counts, whatever its name and origin. A table without native partitions, as in an existing
-- installation, is not partitioned.
WITH want AS (
    SELECT u.name, make_interval(hours => 24 * u.step) AS step, u.ahead, to_regclass(quote_ident(u.name))::oid AS parent
    FROM (SELECT unnest(sqlc.arg(tables)::text[]) AS name, unnest(sqlc.arg(steps)::int[]) AS step,
                 unnest(sqlc.arg(aheads)::int[]) AS ahead) u
), made AS MATERIALIZED (
    SELECT i.inhparent AS parent,
           (regexp_match(pg_get_expr(c.relpartbound, c.oid), 'FROM \(''([^'']*)''\)'))[1]::timestamptz AS since,
           (regexp_match(pg_get_expr(c.relpartbound, c.oid), 'TO \(''([^'']*)''\)'))[1]::timestamptz AS until
    FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = ANY (ARRAY(SELECT w.parent FROM want w)) AND pg_get_expr(c.relpartbound, c.oid) <> 'DEFAULT'
), days AS (
    SELECT w.name, w.step, w.parent, g.at,
           EXISTS (SELECT FROM made m WHERE m.parent = w.parent
                   AND coalesce(m.since <= g.at, true) AND coalesce(m.until >= g.at + w.step, true)) AS there
    FROM want w, LATERAL (SELECT generate_series(date_bin(w.step, now(), '2000-01-03 00:00:00+00'),
                                                 now() + make_interval(hours => 24 * w.ahead), w.step) AS at) g
)
SELECT d.name::text AS name, (p.partrelid IS NOT NULL)::bool AS partitioned,
       coalesce(nullif(p.partdefid, 0)::regclass::text, '')::text AS "default",
       CASE WHEN p.partrelid IS NULL THEN 0
            ELSE extract(epoch FROM greatest(coalesce(min(d.at) FILTER (WHERE NOT d.there), max(d.at) + d.step) - now(), '0'))
       END::float8 AS ahead,
       coalesce(array_agg(d.name || '_p' || to_char(d.at AT TIME ZONE 'UTC', 'YYYYMMDD') ORDER BY d.at)
                FILTER (WHERE NOT d.there AND p.partrelid IS NOT NULL), '{}')::text[] AS missing,
       coalesce(array_agg(d.at ORDER BY d.at) FILTER (WHERE NOT d.there AND p.partrelid IS NOT NULL), '{}')::timestamptz[] AS since,
       coalesce(array_agg(d.at + d.step ORDER BY d.at) FILTER (WHERE NOT d.there AND p.partrelid IS NOT NULL), '{}')::timestamptz[] AS until
FROM days d LEFT JOIN pg_catalog.pg_partitioned_table p ON p.partrelid = d.parent
GROUP BY d.name, d.step, p.partrelid, p.partdefid
ORDER BY d.name;

-- name: OldPartitions :many
-- The partitions that end before the retention period, the oldest first. regclass quotes the names.
SELECT o.child::text AS child FROM (
    SELECT i.inhrelid::regclass AS child,
           (regexp_match(pg_get_expr(k.relpartbound, k.oid), 'TO \(''([^'']*)''\)'))[1]::timestamptz AS until
    FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class k ON k.oid = i.inhrelid
    JOIN pg_catalog.pg_partitioned_table p ON p.partrelid = i.inhparent
    WHERE i.inhparent = to_regclass(quote_ident(sqlc.arg(name)::text)) AND NOT i.inhdetachpending) o
WHERE o.until <= now() - make_interval(secs => sqlc.arg(older)::float8) ORDER BY o.until;
