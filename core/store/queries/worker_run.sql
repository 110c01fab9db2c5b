-- Writes of a worker: itself, and the executions that it runs. Every statement is one transaction
-- of its own; rows of executions are locked in order of id.
--
-- A worker may write its row only while the row has its incarnation, so a process whose name was
-- taken stops by itself.

-- name: ReadIncarnation :one
-- The process that has a name, as its row says. silent is the time since its newest heartbeat or
-- its registration, by the database's clock. process is JSON null for a process that has stopped,
-- and for other programs.
SELECT w.id, coalesce(w.incarnation, '00000000-0000-0000-0000-000000000000')::uuid AS incarnation, coalesce(w.host, '')::text AS host,
       coalesce(w.status::text, '')::text AS status, w.draining, (w.deactivated_at IS NOT NULL)::bool AS deactivated, w.heartbeat_seen,
       coalesce(w.capabilities -> 'process', 'null')::jsonb AS process,
       coalesce(extract(epoch FROM now() - greatest(w.heartbeat_seen,
           CASE WHEN jsonb_typeof(w.capabilities -> 'registered_at') = 'number'
                THEN to_timestamp((w.capabilities ->> 'registered_at')::float8) END)), 'Infinity')::float8 AS silent
FROM worker w WHERE w.name = sqlc.arg(name)::text;

-- name: EnrolWorker :one
-- Finds the worker by name: a known name keeps its id and its cordon. The worker receives no work
-- before ActivateWorker, which it calls when it consumes. registered_at, in seconds since 1970,
-- tells readers which observations belong to an earlier process. No row: another process has taken
-- the name, or the one that has it has sent a heartbeat, since ReadIncarnation.
INSERT INTO worker (name, worker_type, worker_role, host, port, capabilities, status, draining, incarnation)
VALUES (sqlc.arg(name), sqlc.arg(worker_type), 'action', sqlc.narg(host), sqlc.narg(port),
        sqlc.arg(capabilities)::jsonb || jsonb_build_object('registered_at', extract(epoch FROM now())::float8),
        'inactive', false, sqlc.arg(incarnation)::uuid)
ON CONFLICT (name) DO UPDATE SET
    worker_type = excluded.worker_type, worker_role = 'action', host = excluded.host, port = excluded.port,
    capabilities = excluded.capabilities, status = 'inactive', draining = false,
    incarnation = excluded.incarnation
WHERE worker.incarnation IS NOT DISTINCT FROM nullif(sqlc.arg(before)::uuid, '00000000-0000-0000-0000-000000000000')
  AND worker.heartbeat_seen IS NOT DISTINCT FROM sqlc.narg(seen)::timestamptz
RETURNING id, cordoned;

-- name: HasIncarnation :one
-- Whether the name still belongs to this process.
SELECT EXISTS (SELECT FROM worker w WHERE w.id = sqlc.arg(id) AND w.incarnation = sqlc.arg(incarnation)::uuid)::bool AS has;

-- name: AnnounceInterpreters :execrows
-- Writes only if they differ: every change is a row of worker_history.
UPDATE worker SET capabilities = capabilities || sqlc.arg(announced)::jsonb
WHERE id = sqlc.arg(id) AND incarnation = sqlc.arg(incarnation)::uuid
  AND jsonb_typeof(capabilities) = 'object' AND capabilities || sqlc.arg(announced)::jsonb <> capabilities;

-- name: ActivateWorker :execrows
-- Enrolling has ended an earlier drain; a drain that was requested since stays.
UPDATE worker SET status = 'active', last_heartbeat = now()
WHERE id = sqlc.arg(id) AND incarnation = sqlc.arg(incarnation)::uuid;

-- name: BeatWorker :one
-- A worker that another program marked inactive becomes active with its next beat. A worker that
-- cannot consume reports the status error: it is alive and its work continues, but it must receive
-- no more. A leaving worker reports inactive. No row: another process has taken the name. The
-- result is whether an operator has requested a drain.
UPDATE worker SET last_heartbeat = now(), status = sqlc.arg(status)::text::worker_status_enum
WHERE id = sqlc.arg(id) AND incarnation = sqlc.arg(incarnation)::uuid
RETURNING draining;

-- name: LeaveWorker :execrows
-- The worker receives no new work; draining tells the engine that its executions still run although
-- it is not active. The heartbeat monitor does not reactivate a worker that leaves by itself. The
-- heartbeat records when it left. Without draining the process has ended, and another one may have the name.
UPDATE worker SET draining = sqlc.arg(draining), status = 'inactive', deactivated_at = NULL, last_heartbeat = now(),
    capabilities = CASE WHEN sqlc.arg(draining)::bool OR jsonb_typeof(capabilities) <> 'object' THEN capabilities
                        ELSE capabilities - 'process' END
WHERE id = sqlc.arg(id) AND incarnation = sqlc.arg(incarnation)::uuid;

-- name: ReadHeldRuns :many
-- The executions that run at this worker according to their rows, and the time of that.
SELECT e.id, now()::timestamptz AS at FROM execution e
WHERE e.id = ANY (ARRAY(SELECT attune_handed_to(sqlc.arg(worker))))
  AND e.worker = sqlc.arg(worker) AND e.status IN ('running', 'canceling')
ORDER BY e.id;

-- name: SettleOrphans :many
-- Ends the executions that run at this worker according to their rows and that no process runs: all
-- of them when the worker starts, later the ones among ids that have not started since they were
-- read. An older process with the same name ends none: the newer one may run them.
WITH orphan AS (
    SELECT e.id FROM execution e
    WHERE e.id = ANY (ARRAY(SELECT attune_handed_to(sqlc.arg(worker))))
      AND e.worker = sqlc.arg(worker) AND e.status IN ('running', 'canceling')
      AND (sqlc.narg(ids)::bigint[] IS NULL OR e.id = ANY (sqlc.narg(ids)::bigint[]) AND (e.started_at < sqlc.narg(read_at)::timestamptz) IS NOT FALSE)
      AND EXISTS (SELECT FROM worker me WHERE me.id = sqlc.arg(worker) AND me.incarnation = sqlc.arg(incarnation)::uuid)
    ORDER BY e.id
    FOR NO KEY UPDATE OF e
)
UPDATE execution e SET
    status = CASE WHEN e.status = 'canceling' THEN 'cancelled' ELSE 'abandoned' END::execution_status_enum,
    result = CASE WHEN e.status = 'canceling' THEN attune_cancel_words(e.id) ELSE '{}' END || sqlc.arg(result)::jsonb
FROM orphan o
WHERE e.id = o.id AND e.worker = sqlc.arg(worker) AND e.status IN ('running', 'canceling')
RETURNING e.id, e.action, e.action_ref, e.status, e.finished_at, e.result;

-- name: StartExecutions :many
-- Starts executions that are still scheduled for this worker and attempt (zero means a dispatch
-- without an attempt). It returns no others (invariant S2). The ids ascend. epoch is the version of
-- the actions.
UPDATE execution e SET status = 'running', started_at = now()
FROM (SELECT unnest(sqlc.arg(ids)::bigint[]) AS id, unnest(sqlc.arg(attempts)::integer[]) AS attempt) w
WHERE e.id = ANY (ARRAY[w.id]) AND e.worker = sqlc.arg(worker) AND (w.attempt = 0 OR e.attempt = w.attempt) AND e.status = 'scheduled'
  AND EXISTS (SELECT FROM worker me WHERE me.id = sqlc.arg(worker) AND me.incarnation = sqlc.arg(incarnation)::uuid)
RETURNING e.id, e.attempt, e.status, e.action, e.action_ref, e.config, e.executor, e.workflow_task, e.finished_at, e.permission_set_refs,
    coalesce((SELECT p.action_ref FROM execution p WHERE e.workflow_task IS NOT NULL AND p.id = e.parent), '')::text AS parent_ref,
    coalesce((SELECT f.rule_ref FROM enforcement f WHERE f.id = e.enforcement), '')::text AS rule_ref,
    coalesce((SELECT f.trigger_ref FROM enforcement f WHERE f.id = e.enforcement), '')::text AS trigger_ref,
    NULL::jsonb AS words, (SELECT a.epoch FROM admission_epoch a)::bigint AS epoch;

-- name: SettleStarts :many
-- Ends executions that StartExecutions did not start because they were cancelled before, and returns
-- them. words is the result of one. With again, it also returns running rows: only for a retry after
-- this process lost the answer to StartExecutions.
WITH locked AS (
    SELECT e.id, e.status, e.started_at, e.finished_at, e.result
    FROM (SELECT unnest(sqlc.arg(ids)::bigint[]) AS id, unnest(sqlc.arg(attempts)::integer[]) AS attempt) w
    JOIN execution e ON e.id = ANY (ARRAY[w.id])
    WHERE e.worker = sqlc.arg(worker) AND (w.attempt = 0 OR e.attempt = w.attempt)
      AND EXISTS (SELECT FROM worker me WHERE me.id = sqlc.arg(worker) AND me.incarnation = sqlc.arg(incarnation)::uuid)
    ORDER BY e.id
    FOR NO KEY UPDATE OF e
), moved AS (
    UPDATE execution e SET
        status = CASE WHEN e.status = 'canceling' THEN 'cancelled' ELSE 'running' END::execution_status_enum,
        result = CASE WHEN e.status = 'canceling' THEN attune_cancel_words(e.id) || sqlc.arg(cancelled_result)::jsonb ELSE e.result END
    FROM locked l
    WHERE e.id = l.id AND e.worker = sqlc.arg(worker)
      AND (e.status = 'canceling' AND e.started_at IS NULL OR e.status IN ('running', 'canceling') AND sqlc.arg(again)::boolean)
    RETURNING e.id, e.status, e.finished_at, e.result
), taken AS (
    SELECT * FROM moved
    UNION ALL
    -- Cancelled outright while its dispatch was under way. Not every program that cancels announces
    -- that end; it is announced as the row says.
    SELECT l.id, l.status, l.finished_at, l.result FROM locked l WHERE l.status = 'cancelled' AND l.started_at IS NULL
)
SELECT t.id, e.attempt, t.status, e.action, e.action_ref, e.config, e.executor, e.workflow_task, t.finished_at, e.permission_set_refs,
       coalesce((SELECT p.action_ref FROM execution p WHERE e.workflow_task IS NOT NULL AND p.id = e.parent), '')::text AS parent_ref,
       coalesce(f.rule_ref, '')::text AS rule_ref, coalesce(f.trigger_ref, '')::text AS trigger_ref,
       CASE WHEN t.status = 'cancelled' THEN t.result END::jsonb AS words,
       (SELECT a.epoch FROM admission_epoch a)::bigint AS epoch
FROM taken t
JOIN execution e ON e.id = t.id
LEFT JOIN enforcement f ON f.id = e.enforcement
ORDER BY t.id;

-- name: ReadRunnableActions :many
-- What a worker needs of actions to run their executions, and the version of the actions.
SELECT i.id AS action_id, a.entrypoint, coalesce(a.is_adhoc, false)::boolean AS is_adhoc, a.pack_ref, a.param_schema, a.out_schema,
       a.parameter_delivery, a.parameter_format, a.output_format,
       coalesce(CASE WHEN a.timeout_seconds IS NOT NULL AND attune_honours(sqlc.arg(action_timeouts)::text) THEN a.timeout_seconds END, 0)::int
           AS timeout_seconds,
       a.runtime_version_constraint, r.name AS runtime, r.execution_config,
       (SELECT jsonb_agg(jsonb_build_object(
                   'version', v.version, 'is_default', v.is_default, 'execution_config', v.execution_config) ORDER BY v.id)
        FROM runtime_version v WHERE v.runtime = a.runtime AND v.available)::jsonb AS runtime_versions,
       (SELECT e.epoch FROM admission_epoch e)::bigint AS read_epoch
FROM (SELECT unnest(sqlc.arg(ids)::bigint[])::bigint AS id) i
LEFT JOIN action a ON a.id = i.id
LEFT JOIN runtime r ON r.id = a.runtime;

-- name: ReturnExecution :many
-- Gives back an execution of which nothing ran, because the worker could not start a process. One
-- that was cancelled meanwhile ends, and is returned.
WITH returned AS (
    UPDATE execution e SET
        status = CASE WHEN e.status = 'canceling' THEN 'cancelled' ELSE 'scheduled' END::execution_status_enum,
        started_at = NULL,
        result = CASE WHEN e.status = 'canceling' THEN attune_cancel_words(e.id) || sqlc.arg(cancelled_result)::jsonb ELSE e.result END
    WHERE e.id = ANY (ARRAY[sqlc.arg(id)::bigint]) AND e.worker = sqlc.arg(worker) AND e.attempt = sqlc.arg(attempt)
      AND e.status IN ('running', 'canceling')
    RETURNING e.id, e.status, e.action, e.action_ref, e.finished_at, e.result
)
SELECT * FROM returned r WHERE r.status = 'cancelled';

-- name: RuntimeVersions :many
-- The available versions of all runtimes, with the name of the runtime.
SELECT r.name AS runtime, v.version, v.execution_config
FROM runtime_version v JOIN runtime r ON r.id = v.runtime
WHERE v.available ORDER BY v.id;

-- name: KeysOfAction :many
-- The keystore keys of an action: of the system, then of its pack, then its own, so that the last
-- of a name wins. Call HasKeystore first.
SELECT k.ref, k.name, k.owner_type::text AS owner, k.encrypted,
       coalesce(k.encryption_key_hash, '')::text AS encryption_key_hash, k.value
FROM key k
WHERE k.owner_type = 'system'
   OR (k.owner_type = 'pack' AND k.owner_pack = (SELECT a.pack FROM action a WHERE a.id = sqlc.arg(action)::bigint))
   OR (k.owner_type = 'action' AND k.owner_action = sqlc.arg(action)::bigint)
ORDER BY CASE k.owner_type WHEN 'system' THEN 0 WHEN 'pack' THEN 1 ELSE 2 END, k.ref;

-- name: HasKeystore :one
-- A schema of our own has none.
SELECT (to_regclass('key') IS NOT NULL)::bool AS has;

-- name: FinishExecutions :many
-- Ends executions that this worker still runs in this attempt, and returns no others. The ids
-- ascend. SettleEnds is for executions with secrets in their results, and for executions that are
-- being cancelled or were.
UPDATE execution e SET status = w.status::execution_status_enum, result = w.result::jsonb
FROM (SELECT unnest(sqlc.arg(ids)::bigint[]) AS id, unnest(sqlc.arg(attempts)::integer[]) AS attempt,
             unnest(sqlc.arg(statuses)::text[]) AS status, unnest(sqlc.arg(results)::text[]) AS result) w
WHERE e.id = ANY (ARRAY[w.id]) AND e.worker = sqlc.arg(worker) AND e.attempt = w.attempt AND e.status = 'running'
RETURNING e.id, e.action, e.action_ref, e.status, e.finished_at, 'running'::execution_status_enum AS previous, NULL::jsonb AS words;

-- name: SettleEnds :many
-- Like FinishExecutions, for any end of an execution that may be about to be cancelled. Encrypted
-- secrets of results are stored apart; row i of their arrays is one, and secrets of other
-- executions are not stored. The result of a cancelled execution includes the author and the
-- reason, and is returned.
WITH locked AS (
    SELECT e.id, e.status AS previous, w.status, w.result
    FROM (
        SELECT unnest(sqlc.arg(ids)::bigint[]) AS id, unnest(sqlc.arg(attempts)::integer[]) AS attempt,
               unnest(sqlc.arg(statuses)::text[]) AS status, unnest(sqlc.arg(results)::text[]) AS result
    ) w
    JOIN execution e ON e.id = ANY (ARRAY[w.id])
    WHERE e.worker = sqlc.arg(worker) AND e.attempt = w.attempt AND e.status IN ('running', 'canceling')
    ORDER BY e.id
    FOR NO KEY UPDATE OF e
), secrets AS (
    INSERT INTO execution_secret_value (entity_type, entity_id, json_path, source_kind, source_ref, encrypted_value)
    SELECT 'execution_result', l.id, s.json_path, s.source_kind, s.source_ref, s.encrypted_value::jsonb
    FROM (
        SELECT unnest(sqlc.arg(secret_of)::bigint[]) AS id, unnest(sqlc.arg(secret_paths)::text[]) AS json_path,
               unnest(sqlc.arg(secret_kinds)::text[]) AS source_kind, unnest(sqlc.arg(secret_refs)::text[]) AS source_ref,
               unnest(sqlc.arg(secret_values)::text[]) AS encrypted_value
    ) s
    JOIN locked l ON l.id = s.id
    ORDER BY l.id, s.json_path
    ON CONFLICT (entity_type, entity_id, json_path) DO UPDATE
    SET source_kind = excluded.source_kind, source_ref = excluded.source_ref,
        encrypted_value = excluded.encrypted_value, encryption_key_hash = NULL
)
UPDATE execution e SET status = l.status::execution_status_enum,
    result = CASE WHEN l.status = 'cancelled' THEN attune_cancel_words(e.id) || l.result::jsonb ELSE l.result::jsonb END
FROM locked l
WHERE e.id = ANY (ARRAY[l.id]) AND e.status IN ('running', 'canceling')
RETURNING e.id, e.action, e.action_ref, e.status, e.finished_at, l.previous, CASE WHEN e.status = 'cancelled' THEN e.result END::jsonb AS words;

-- name: ReadRunStates :many
-- The rows behind running executions, for cancels whose message was lost and for reassigned
-- executions.
SELECT e.id, e.status, e.worker, e.attempt, e.action, e.action_ref, e.finished_at,
       CASE WHEN e.status = 'cancelled' THEN e.result END::jsonb AS words
FROM execution e
WHERE e.id = ANY (sqlc.arg(ids)::bigint[])
ORDER BY e.id;
