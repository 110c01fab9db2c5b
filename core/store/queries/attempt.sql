-- Retries of ended executions.

-- name: RepeatExecutions :many
-- Creates the next attempt of each execution: a new row, so that late writes about the old attempt
-- meet a closed row. An execution is repeated once; a second caller gets no row. The engine does
-- not repeat an execution whose end was requested since it was read. The new row copies everything
-- needed to run, with secrets, but not the enforcement, which has one execution: it is found
-- through the original. A workflow task that waits for the old row then waits for the new one.
WITH wanted AS (
    SELECT unnest(sqlc.arg(failed)::bigint[]) AS failed, unnest(sqlc.arg(reasons)::text[]) AS reason,
           unnest(sqlc.arg(delays)::float8[]) AS delay
), claimed AS (
    INSERT INTO execution_retry (failed, execution, reason, requested_by, due, avoid)
    SELECT e.id, nextval(pg_get_serial_sequence('execution', 'id')), w.reason, sqlc.narg(requested_by)::text,
           now() + make_interval(secs => w.delay),
           CASE WHEN e.worker IS NULL OR e.worker = ANY (coalesce(p.avoid, '{}')) THEN coalesce(p.avoid, '{}')
                ELSE coalesce(p.avoid, '{}') || e.worker END
    FROM wanted w
    CROSS JOIN LATERAL (SELECT x.id, x.worker, x.status FROM execution x WHERE x.id = w.failed OFFSET 0) e
    LEFT JOIN LATERAL (SELECT t.avoid FROM execution_retry t WHERE t.execution = w.failed OFFSET 0) p ON true
    WHERE e.status IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned')
      AND (sqlc.narg(requested_by)::text IS NOT NULL OR NOT EXISTS (
          SELECT FROM execution_cancel c WHERE c.execution = ANY (ARRAY[w.failed])))
    ORDER BY w.failed
    ON CONFLICT (failed) DO NOTHING
    RETURNING failed, execution, reason, due
), secrets AS (
    INSERT INTO execution_secret_value (entity_type, entity_id, json_path, source_kind, source_ref, encrypted_value, encryption_key_hash)
    SELECT s.entity_type, c.execution, s.json_path, s.source_kind, s.source_ref, s.encrypted_value, s.encryption_key_hash
    FROM claimed c
    CROSS JOIN LATERAL (
        SELECT v.entity_type, v.json_path, v.source_kind, v.source_ref, v.encrypted_value, v.encryption_key_hash
        FROM execution_secret_value v WHERE v.entity_type = 'execution_config' AND v.entity_id = c.failed OFFSET 0) s
), tasks AS (
    UPDATE workflow_task_dispatch d SET execution_id = CASE WHEN d.settled THEN d.execution_id ELSE m.execution END
    FROM (SELECT c.execution, t.id FROM claimed c
          CROSS JOIN LATERAL (SELECT x.id FROM workflow_task_dispatch x WHERE x.execution_id = c.failed OFFSET 0) t) m
    WHERE d.id = ANY (ARRAY[m.id])
)
INSERT INTO execution (id, action, action_ref, config, env_vars, parent, executor, permission_set_refs,
                       artifact_retention_policy, artifact_retention_limit, worker_selector, worker_tolerations, worker_affinity,
                       workflow_def, workflow_task, priority, retry_count, max_retries, retry_reason, original_execution)
SELECT c.execution, e.action, e.action_ref, e.config, e.env_vars, e.parent, e.executor, e.permission_set_refs,
       e.artifact_retention_policy, e.artifact_retention_limit, e.worker_selector, e.worker_tolerations, e.worker_affinity,
       e.workflow_def, CASE WHEN jsonb_typeof(e.workflow_task) = 'object'
           THEN e.workflow_task || jsonb_build_object('retry_count', e.retry_count + 1, 'next_retry_at', c.due) ELSE e.workflow_task END, e.priority, e.retry_count + 1, e.max_retries, c.reason, coalesce(e.original_execution, e.id)
FROM claimed c
CROSS JOIN LATERAL (
    SELECT x.id, x.action, x.action_ref, x.config, x.env_vars, x.parent, x.executor, x.permission_set_refs,
           x.artifact_retention_policy, x.artifact_retention_limit, x.worker_selector, x.worker_tolerations, x.worker_affinity,
           x.workflow_def, x.workflow_task, x.priority, x.retry_count, x.max_retries, x.original_execution
    FROM execution x WHERE x.id = c.failed OFFSET 0
) e
RETURNING id, action, action_ref, config, parent, original_execution, retry_count, coalesce(retry_reason, '')::text AS retry_reason, created;

-- name: FindDueRetries :many
-- Due retries, in order of due.
SELECT execution FROM execution_retry WHERE waiting AND due <= now() ORDER BY due LIMIT sqlc.arg(page)::int;

-- name: CloseEndedRetries :exec
-- Closes retries that another program ended or deleted before they were due.
UPDATE execution_retry t SET waiting = false
WHERE t.waiting AND t.due <= now()
  AND NOT EXISTS (SELECT FROM execution e WHERE e.id = t.execution AND e.status = 'requested');

-- name: StartRetries :exec
-- Marks due retries: from here on they are executions like all others.
UPDATE execution_retry SET waiting = false WHERE execution = ANY (sqlc.arg(executions)::bigint[]);

-- name: ReadOutcomes :many
-- The outcomes of ended executions, to announce them in their worker's place.
SELECT e.id, e.action, e.action_ref, e.status, e.result, coalesce(e.finished_at, e.updated)::timestamptz AS finished_at
FROM execution e
WHERE e.id = ANY (sqlc.arg(ids)::bigint[]) AND e.status IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned')
ORDER BY e.id;

-- name: RecordContradictions :exec
-- Records reports of another end than the row's, each once.
INSERT INTO late_write (execution, old_status, refused_status, writer)
SELECT e.id, e.status, r.said::execution_status_enum, sqlc.arg(writer)::text
FROM (SELECT unnest(sqlc.arg(ids)::bigint[]) AS id, unnest(sqlc.arg(said)::text[]) AS said) r
JOIN execution e ON e.id = ANY (ARRAY[r.id])
WHERE NOT EXISTS (SELECT FROM late_write l WHERE l.execution = ANY (ARRAY[r.id]) AND l.writer = sqlc.arg(writer)::text
                  AND l.refused_status = r.said::execution_status_enum);
