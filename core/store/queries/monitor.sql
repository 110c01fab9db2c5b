-- Reads for users. Every query is bounded: recent windows are ranges of the primary key, unfinished
-- rows come from the partial index, and counting stops at a bound. Nothing locks.

-- name: MonitorSchema :one
-- The features of the schema: ours is true if it is migrated for the engine, history if it keeps the history of
-- executions, work_queues if it has the published tables of work queues.
SELECT now()::timestamptz AS at,
       (EXISTS (SELECT FROM pg_catalog.pg_attribute att
                WHERE att.attrelid = to_regclass('execution') AND att.attname = 'finished_at' AND NOT att.attisdropped)
        AND to_regclass('attune_schema_origin') IS NOT NULL AND to_regclass('engine_replica') IS NOT NULL
        AND to_regclass('dead_letter') IS NOT NULL AND to_regclass('operator_audit') IS NOT NULL)::boolean AS ours,
       (to_regclass('execution_history') IS NOT NULL)::boolean AS history,
       (to_regclass('work_queue') IS NOT NULL AND to_regclass('work_queue_dispatch') IS NOT NULL AND EXISTS (
           SELECT FROM pg_catalog.pg_attribute att WHERE att.attrelid = to_regclass('work_queue_item')
           AND att.attname = 'leased_execution' AND NOT att.attisdropped))::boolean AS work_queues;

-- name: Now :one
SELECT now()::timestamptz AS at;

-- name: MonitorFloor :one
-- The smallest id requested within the window, found by bisecting the range of the primary key,
-- because nothing is indexed by time. Ids and times grow together.
WITH RECURSIVE search (lo, hi) AS (
    SELECT coalesce((SELECT e.id FROM execution e ORDER BY e.id LIMIT 1), 0)::bigint,
           coalesce((SELECT e.id FROM execution e ORDER BY e.id DESC LIMIT 1), 0)::bigint + 1
    UNION ALL
    SELECT CASE WHEN p.created < now() - make_interval(secs => sqlc.arg(seconds)::float8) THEN p.id + 1 ELSE s.lo END,
           CASE WHEN p.created < now() - make_interval(secs => sqlc.arg(seconds)::float8) THEN s.hi ELSE (s.lo + s.hi) / 2 END
    FROM search s
    CROSS JOIN LATERAL (SELECT e.id, e.created FROM execution e WHERE e.id >= (s.lo + s.hi) / 2 ORDER BY e.id LIMIT 1) p
    WHERE s.lo < s.hi
)
SELECT search.hi::bigint AS floor FROM search ORDER BY search.hi, search.lo DESC LIMIT 1;

-- name: MonitorLive :many
-- The oldest unfinished rows by status, up to a bound.
SELECT c.status, count(*) AS n,
       count(*) FILTER (WHERE c.status = 'scheduled' AND c.updated < now() - make_interval(secs => sqlc.arg(stuck_seconds)::float8)) AS stuck
FROM (SELECT e.status, e.updated FROM execution e WHERE e.finished_status IS NULL ORDER BY e.id LIMIT sqlc.arg(bound)::bigint) c
GROUP BY c.status;

-- name: MonitorFailReasons :many
-- The errors of executions that ended badly in the last seconds, among a bounded number of the newest of each status;
-- with actions, by action, and 0 seconds are any. A result too large for a list is not opened.
SELECT s.status::text AS status, (CASE WHEN cardinality(sqlc.arg(actions)::text[]) > 0 THEN f.action_ref ELSE '' END)::text AS action_ref,
       coalesce(CASE WHEN pg_column_size(f.result) < 8000
             THEN left(substring(rtrim(coalesce(
                 CASE WHEN coalesce(f.result ->> 'message', f.result ->> 'error') LIKE '% exited with code %'
                      THEN nullif(btrim(coalesce(f.result ->> 'stderr_log', f.result ->> 'stderr'), E' \t\r\n'), '') END,
                 f.result ->> 'message', f.result ->> 'error', f.result ->> 'reason'), E' \t\r\n') from '[^\r\n]*$'), 80) END, '')::text AS reason, count(*) AS n
FROM unnest(ARRAY['failed', 'timeout', 'abandoned']::execution_status_enum[]) AS s (status)
CROSS JOIN LATERAL (SELECT e.finished_at, e.action_ref, e.result
                    FROM execution e
                    WHERE e.finished_status >= s.status AND e.finished_status <= s.status
                    ORDER BY e.finished_status, e.id DESC LIMIT sqlc.arg(bound)::bigint) f
WHERE (sqlc.arg(seconds)::float8 = 0 OR f.finished_at > now() - make_interval(secs => sqlc.arg(seconds)::float8))
  AND (cardinality(sqlc.arg(actions)::text[]) = 0 OR f.action_ref = ANY (sqlc.arg(actions)::text[]))
GROUP BY 1, 2, 3;

-- name: MonitorQueueTotals :one
-- Leftover queues (see ViewQueueIDs) are not counted, and slots only of queues with a holder or a
-- waiting execution.
WITH shapes AS MATERIALIZED (
    SELECT d.action_id, attune_queue_shape(d.action_id) AS shape
    FROM (SELECT DISTINCT i.action_id FROM execution_admission_state i
          WHERE i.queued_count = 0 AND i.active_count = 0
            AND (i.group_key IS NOT NULL OR (SELECT count(*) > 0 FROM policy p WHERE cardinality(p.parameters) > 0))) d
)
SELECT count(*) FILTER (
           WHERE s.queued_count > 0 OR s.active_count > 0 OR s.paused OR s.limit_override IS NOT NULL
              OR coalesce(h.shape, '{}') = CASE WHEN s.group_key ~ '^[{].*[}]$'
                   THEN ARRAY(SELECT k COLLATE "C" FROM jsonb_object_keys(s.group_key::jsonb) k ORDER BY 1) ELSE '{}' END) AS queues,
       count(*) FILTER (WHERE s.queued_count > 0 OR s.active_count > 0) AS busy,
       coalesce(sum(s.queued_count), 0)::bigint AS queued,
       coalesce(sum(s.active_count), 0)::bigint AS active,
       coalesce(sum(s.max_concurrent) FILTER (WHERE NOT s.unlimited AND (s.queued_count > 0 OR s.active_count > 0)), 0)::bigint AS slots,
       coalesce(sum(s.total_completed), 0)::bigint AS completed
FROM execution_admission_state s LEFT JOIN shapes h ON h.action_id = s.action_id;

-- name: MonitorWorkers :many
-- What only schemas of the engine record of a worker is read from the row as a whole.
SELECT w.id, w.name, w.worker_role::text AS role, coalesce(w.host, '')::text AS host, w.status::text AS status,
       coalesce((to_jsonb(w) ->> 'heartbeat_seen')::timestamptz, w.last_heartbeat) AS heartbeat,
       w.cordoned, coalesce(w.cordon_reason, '')::text AS cordon_reason, coalesce((to_jsonb(w) ->> 'draining')::bool, false)::bool AS draining,
       w.created, greatest(w.created, CASE WHEN jsonb_typeof(w.capabilities -> 'registered_at') = 'number'
           THEN to_timestamp(least(greatest((w.capabilities ->> 'registered_at')::float8, 0), 1e11)) END)::timestamptz AS registered,
       (CASE WHEN jsonb_typeof(w.capabilities -> 'max_concurrent_executions') = 'number'
             AND (w.capabilities ->> 'max_concurrent_executions')::float8 >= 0
             THEN trunc((w.capabilities ->> 'max_concurrent_executions')::float8) END)::bigint AS capacity,
       ARRAY(SELECT jsonb_array_elements_text(CASE WHEN jsonb_typeof(w.capabilities -> 'runtimes') = 'array'
             THEN w.capabilities -> 'runtimes' ELSE '[]' END))::text[] AS runtimes,
       coalesce(w.capabilities ->> 'worker_version', '')::text AS version,
       (to_jsonb(w) ->> 'suspect_since')::timestamptz AS suspect_since, coalesce(to_jsonb(w) ->> 'suspect_reason', '')::text AS suspect_reason
FROM worker w
WHERE w.worker_role::text <> 'sensor'
ORDER BY (w.status::text = 'inactive'), w.last_heartbeat NULLS FIRST, w.id LIMIT sqlc.arg(bound)::bigint;

-- name: MonitorWorkerLoads :many
SELECT l.worker, l.assigned::bigint AS assigned FROM worker_load l;

-- name: MonitorProbes :many
-- The findings of the last probes. valid is false if no replica has probed for too long; then the
-- health counts for nothing.
SELECT p.worker, p.at, p.verdict, p.reason, p.since, p.health, p.health_reason, make_interval(secs => p.rtt_ms / 1000) AS rtt,
       p.queue_exists, p.consumers, p.ready, p.oldest, p.failures, make_interval(secs => p.skew_seconds) AS skew,
       coalesce(p.details ->> 'endpoint_error', '')::text AS endpoint_error,
       (CASE WHEN jsonb_typeof(p.details -> 'endpoint_ms') = 'number' AND (p.details ->> 'endpoint_ms')::float8 >= 0
             THEN make_interval(secs => (p.details ->> 'endpoint_ms')::float8 / 1000) END)::interval AS endpoint_rtt,
       (p.at > now() - make_interval(secs => coalesce((p.details ->> 'valid_seconds')::float8, 90)))::bool AS valid
FROM worker_probe p
WHERE p.worker = ANY (sqlc.arg(workers)::bigint[]);

-- name: MonitorWorkerByName :one
SELECT w.id FROM worker w WHERE w.name = $1;

-- name: MonitorSpan :one
-- The first and the last id of a range; zeros if it is empty.
SELECT coalesce((SELECT e.id FROM execution e WHERE e.id < sqlc.arg(before)::bigint AND e.id >= sqlc.arg(floor)::bigint
                 ORDER BY e.id LIMIT 1), 0)::bigint AS first,
       coalesce((SELECT e.id FROM execution e WHERE e.id < sqlc.arg(before)::bigint AND e.id >= sqlc.arg(floor)::bigint
                 ORDER BY e.id DESC LIMIT 1), 0)::bigint AS last;

-- name: MonitorWindow :many
-- The first ids of a range in the order of the list.
(SELECT e.id FROM execution e
 WHERE NOT sqlc.arg(rising)::bool AND e.id < sqlc.arg(before)::bigint AND e.id >= sqlc.arg(floor)::bigint
 ORDER BY e.id DESC LIMIT sqlc.arg(scan)::bigint)
UNION ALL
(SELECT e.id FROM execution e
 WHERE sqlc.arg(rising)::bool AND e.id < sqlc.arg(before)::bigint AND e.id >= sqlc.arg(floor)::bigint
 ORDER BY e.id LIMIT sqlc.arg(scan)::bigint);

-- name: MonitorEnded :many
-- The first ids that ended in one of the statuses, each found in the index of ended rows. The range
-- of one value keeps the planner to that index.
SELECT t.id FROM unnest(sqlc.arg(statuses)::text[]) AS s (status)
CROSS JOIN LATERAL (
    (SELECT e.id FROM execution e
     WHERE e.finished_status >= s.status::execution_status_enum AND e.finished_status <= s.status::execution_status_enum
       AND NOT sqlc.arg(rising)::bool AND e.id < sqlc.arg(before)::bigint AND e.id >= sqlc.arg(floor)::bigint
     ORDER BY e.finished_status, e.id DESC LIMIT sqlc.arg(scan)::bigint)
    UNION ALL
    (SELECT e.id FROM execution e
     WHERE e.finished_status >= s.status::execution_status_enum AND e.finished_status <= s.status::execution_status_enum
       AND sqlc.arg(rising)::bool AND e.id < sqlc.arg(before)::bigint AND e.id >= sqlc.arg(floor)::bigint
     ORDER BY e.finished_status DESC, e.id LIMIT sqlc.arg(scan)::bigint)) t
ORDER BY CASE WHEN sqlc.arg(rising)::bool THEN t.id ELSE -t.id END LIMIT sqlc.arg(scan)::bigint;

-- name: MonitorUnendedWindow :many
-- The first unfinished ids in the order of the list, whatever their status.
(SELECT e.id FROM execution e
 WHERE NOT sqlc.arg(rising)::bool AND e.finished_status IS NULL AND e.id < sqlc.arg(before)::bigint AND e.id >= sqlc.arg(floor)::bigint
 ORDER BY e.id DESC LIMIT sqlc.arg(scan)::bigint)
UNION ALL
(SELECT e.id FROM execution e
 WHERE sqlc.arg(rising)::bool AND e.finished_status IS NULL AND e.id < sqlc.arg(before)::bigint AND e.id >= sqlc.arg(floor)::bigint
 ORDER BY e.id LIMIT sqlc.arg(scan)::bigint);

-- name: MonitorChildIDs :many
SELECT e.id FROM execution e
WHERE e.parent = sqlc.arg(parent)::bigint AND e.id < sqlc.arg(before)::bigint AND e.id >= sqlc.arg(floor)::bigint
  AND (cardinality(sqlc.arg(statuses)::text[]) = 0 OR e.status::text = ANY (sqlc.arg(statuses)::text[]))
ORDER BY CASE WHEN sqlc.arg(rising)::bool THEN e.id ELSE -e.id END LIMIT sqlc.arg(page)::bigint;

-- name: MonitorSift :many
-- The first of a bounded number of ids, in order, whose rows match conditions without an index.
-- Each row is read by its id, however few rows exist besides.
SELECT e.id FROM unnest(sqlc.arg(ids)::bigint[]) AS wanted(id)
CROSS JOIN LATERAL (
    SELECT x.id, x.status, x.action_ref, x.worker, x.retry_count, x.parent, x.result, x.action, x.config FROM execution x WHERE x.id = wanted.id OFFSET 0
) e
WHERE (cardinality(sqlc.arg(statuses)::text[]) = 0 OR e.status::text = ANY (sqlc.arg(statuses)::text[]))
  AND (sqlc.arg(pattern)::text = '' OR e.action_ref ILIKE sqlc.arg(pattern)::text)
  AND e.action_ref ~* ALL (sqlc.arg(match)::text[])
  AND NOT (e.action_ref ~* ANY (sqlc.arg(unmatch)::text[]))
  AND (cardinality(sqlc.arg(workers)::bigint[]) = 0 OR e.worker = ANY (sqlc.arg(workers)::bigint[]))
  AND NOT (coalesce(e.worker, 0) = ANY (sqlc.arg(not_workers)::bigint[]))
  AND e.retry_count >= sqlc.arg(min_tries)::bigint AND e.retry_count <= sqlc.arg(max_tries)::bigint
  AND (sqlc.arg(parent)::bigint = 0 OR e.parent = sqlc.arg(parent)::bigint)
  AND (sqlc.arg(parented)::text = '' OR (sqlc.arg(parented)::text = 'any') = (e.parent IS NOT NULL))
  AND (cardinality(sqlc.arg(reasons)::text[]) + cardinality(sqlc.arg(not_reasons)::text[]) = 0 OR (
       SELECT r.reason ~* ALL (sqlc.arg(reasons)::text[]) AND NOT (r.reason ~* ANY (sqlc.arg(not_reasons)::text[]))
       FROM (SELECT coalesce(CASE WHEN e.status IN ('failed', 'cancelled', 'timeout', 'abandoned') AND pg_column_size(e.result) < 8000
             THEN left(substring(rtrim(coalesce(
                 CASE WHEN coalesce(e.result ->> 'message', e.result ->> 'error') LIKE '% exited with code %'
                      THEN nullif(btrim(coalesce(e.result ->> 'stderr_log', e.result ->> 'stderr'), E' \t\r\n'), '') END,
                 e.result ->> 'message', e.result ->> 'error', e.result ->> 'reason'), E' \t\r\n') from '[^\r\n]*$'), 300) END, '') AS reason) r))
  AND (cardinality(sqlc.arg(params)::text[]) = 0 OR NOT EXISTS (
       SELECT FROM (SELECT string_to_array(unnest(sqlc.arg(params)::text[]), '.') AS path, unnest(sqlc.arg(param_match)::text[]) AS match,
                           unnest(sqlc.arg(param_not)::bool[]) AS turned) p
       WHERE p.turned = coalesce(CASE
           WHEN pg_column_size(e.config) > sqlc.arg(cut)::int THEN NULL
           WHEN e.config #> p.path[:cardinality(p.path) - 1] -> '$attune_secret' IS NOT NULL THEN NULL
           WHEN EXISTS (SELECT FROM (SELECT unnest(sqlc.arg(secret_actions)::text[]) AS ref, unnest(sqlc.arg(secret_params)::text[]) AS param) h
                        WHERE h.ref = e.action_ref AND string_to_array(h.param, '.') = p.path) THEN NULL
           WHEN jsonb_typeof(e.config #> p.path) = 'number' THEN trim_scale((e.config #>> p.path)::numeric)::text
           WHEN jsonb_typeof(e.config #> p.path) IN ('string', 'boolean')
                THEN regexp_replace(e.config #>> p.path, '(://[^/\s:@"]*:)[^/\s@"]+@', '\1@') END ~* p.match, false)))
ORDER BY CASE WHEN sqlc.arg(rising)::bool THEN e.id ELSE -e.id END LIMIT sqlc.arg(page)::bigint;

-- name: MonitorSecretSchemas :many
-- The parameter schemas that mark secrets, of the actions of a bounded number of executions.
SELECT a.ref, a.param_schema
FROM (SELECT DISTINCT e.action_ref FROM unnest(sqlc.arg(ids)::bigint[]) AS wanted(id)
      CROSS JOIN LATERAL (SELECT x.action_ref FROM execution x WHERE x.id = wanted.id OFFSET 0) e) used
JOIN action a ON a.ref = used.action_ref
WHERE a.param_schema::text LIKE '%"secret"%';

-- name: MonitorParams :many
-- The parameters of a page of executions, and the secret parameters of their actions. Parameters
-- too large for a list are not opened.
SELECT e.id, (CASE WHEN pg_column_size(e.config) < 8000 THEN e.config::text ELSE '' END)::text AS config,
       (CASE WHEN a.param_schema::text LIKE '%"secret"%' THEN a.param_schema::text ELSE '' END)::text AS param_schema
FROM execution e LEFT JOIN action a ON a.ref = e.action_ref
WHERE e.id = ANY (sqlc.arg(ids)::bigint[]) AND e.config IS NOT NULL;

-- name: MonitorExecutionsByID :many
-- The rows of a page. A result too large for a list is not opened.
SELECT e.id, e.action_ref, e.status::text AS status, e.worker AS worker_id, coalesce(w.name, '')::text AS worker_name, e.parent, e.created, e.updated,
       e.started_at, e.finished_at, e.retry_count, e.max_retries,
       coalesce(CASE WHEN attune_terminal(e.status) AND e.status <> 'completed' AND pg_column_size(e.result) < 8000
             THEN left(substring(rtrim(coalesce(
                 CASE WHEN coalesce(e.result ->> 'message', e.result ->> 'error') LIKE '% exited with code %'
                      THEN nullif(btrim(coalesce(e.result ->> 'stderr_log', e.result ->> 'stderr'), E' \t\r\n'), '') END,
                 e.result ->> 'message', e.result ->> 'error', e.result ->> 'reason'), E' \t\r\n') from '[^\r\n]*$'), 300) END, '')::text AS reason,
       coalesce(CASE WHEN attune_terminal(e.status) AND e.status <> 'completed' THEN coalesce(
           (SELECT r.execution FROM execution_retry r WHERE r.failed = e.id),
           (SELECT x.id FROM execution x
            WHERE x.original_execution = coalesce(e.original_execution, e.id) AND (x.retry_count, x.id) > (e.retry_count, e.id)
            ORDER BY x.retry_count, x.id LIMIT 1)) END, 0)::bigint AS repeated_by
FROM execution e LEFT JOIN worker w ON w.id = e.worker
WHERE e.id = ANY (sqlc.arg(ids)::bigint[])
ORDER BY e.id DESC;

-- name: MonitorTaskNames :many
-- The tasks of workflows among a bounded number of executions, with their names.
SELECT e.id, coalesce(e.workflow_task ->> 'task_name', '')::text AS task, coalesce(e.workflow_task ->> 'task_index', '')::text AS item
FROM execution e
WHERE e.id = ANY (sqlc.arg(ids)::bigint[]) AND jsonb_typeof(e.workflow_task) = 'object';

-- name: MonitorExecutionRest :one
-- Fields of the page of a single execution. Documents are cut, and their whole sizes told. The published schema has no
-- attempt: there the unqualified name means absent.
SELECT e.action AS action_id, e.enforcement, e.original_execution AS original, coalesce(e.retry_reason, '')::text AS retry_reason,
       (SELECT attempt FROM execution x WHERE x.id = e.id) AS attempt,
       coalesce(left(d.config, m.cut), '')::text AS config, (CASE WHEN length(d.config) > m.cut THEN octet_length(d.config) ELSE 0 END)::bigint AS config_bytes,
       coalesce(left(d.env_vars, m.cut), '')::text AS env, (CASE WHEN length(d.env_vars) > m.cut THEN octet_length(d.env_vars) ELSE 0 END)::bigint AS env_bytes,
       coalesce(left(d.result, m.cut), '')::text AS result, (CASE WHEN length(d.result) > m.cut THEN octet_length(d.result) ELSE 0 END)::bigint AS result_bytes,
       (SELECT count(*) FROM (SELECT 1 FROM execution c WHERE c.parent = e.id LIMIT 1000) k)::bigint AS child_count
FROM (SELECT NULL::integer AS attempt) absent CROSS JOIN (SELECT sqlc.arg(cut)::int AS cut) m CROSS JOIN execution e
CROSS JOIN LATERAL (SELECT e.config::text, e.env_vars::text, e.result::text OFFSET 0) d (config, env_vars, result)
WHERE e.id = sqlc.arg(id)::bigint;

-- name: MonitorTimeline :many
-- The steps of one execution. Rows older than it are not searched.
SELECT h."time" AS at, h.changed_fields, coalesce(h.new_values ->> 'status', '')::text AS status,
       coalesce(h.new_values ->> 'worker', '')::text AS worker
FROM execution_history h
WHERE h.entity_id = sqlc.arg(id)::bigint AND h."time" >= sqlc.arg(created)::timestamptz - interval '1 minute'
ORDER BY h."time" LIMIT 200;

-- name: MonitorLedgerGroups :many
-- Dead letters of the last day by reason and decision, each with the total.
SELECT coalesce(r.reason, '-')::text AS reason, coalesce(r.decision, 'waiting')::text AS decision, count(*) AS count, max(r.created)::timestamptz AS newest,
       (sum(count(*)) OVER ())::bigint AS total
FROM (SELECT d.reason, d.decision, d.created FROM dead_letter d ORDER BY d.id DESC LIMIT sqlc.arg(bound)::bigint) r
WHERE r.created > now() - interval '24 hours'
GROUP BY 1, 2 ORDER BY count(*) DESC, 1, 2 LIMIT 20;

-- The same questions for a schema that has only what Attune publishes. There
-- the statuses are indexed, and the waiting are counted per action.

-- name: MonitorPublishedCounts :many
SELECT s.status::text AS status,
       (SELECT count(*) FROM (SELECT 1 FROM execution e WHERE e.status = s.status AND e.id >= s.floor LIMIT sqlc.arg(bound)::bigint) c)::bigint AS n
FROM (SELECT u.status, CASE WHEN u.status IN ('requested', 'scheduling', 'scheduled', 'running', 'canceling') THEN 0
             ELSE sqlc.arg(floor)::bigint END AS floor
      FROM unnest(enum_range(NULL::execution_status_enum)) AS u (status)) s;

-- name: MonitorPublishedStuck :one
SELECT count(*) FROM (SELECT 1 FROM execution e WHERE e.status = 'scheduled'
    AND e.updated < now() - make_interval(secs => sqlc.arg(stuck_seconds)::float8) LIMIT sqlc.arg(bound)::bigint) c;

-- name: MonitorPublishedQueues :many
SELECT q.action_id AS id, q.action_id, a.ref AS action_ref, q.queue_length AS queued, q.active_count AS active, q.max_concurrent AS "limit",
       q.oldest_enqueued_at AS oldest, q.total_enqueued AS enqueued, q.total_completed AS completed
FROM queue_stats q JOIN action a ON a.id = q.action_id
WHERE sqlc.arg(pattern)::text = '' OR a.ref ILIKE sqlc.arg(pattern)::text
ORDER BY q.queue_length DESC, q.active_count DESC, q.action_id LIMIT sqlc.arg(bound)::bigint;

-- name: MonitorPublishedTotals :one
SELECT count(*) AS queues, count(*) FILTER (WHERE q.queue_length > 0 OR q.active_count > 0) AS busy,
       coalesce(sum(q.queue_length), 0)::bigint AS queued, coalesce(sum(q.active_count), 0)::bigint AS active,
       coalesce(sum(q.max_concurrent), 0)::bigint AS slots, coalesce(sum(q.total_completed), 0)::bigint AS completed
FROM queue_stats q;

-- name: MonitorPublishedByID :many
SELECT e.id, e.action_ref, e.status::text AS status, e.worker AS worker_id, coalesce(w.name, '')::text AS worker_name, e.parent, e.created, e.updated,
       e.started_at, NULL::timestamptz AS finished_at, e.retry_count, e.max_retries,
       coalesce(CASE WHEN e.status IN ('failed', 'cancelled', 'timeout', 'abandoned') AND pg_column_size(e.result) < 8000
             THEN left(substring(rtrim(coalesce(
                 CASE WHEN coalesce(e.result ->> 'message', e.result ->> 'error') LIKE '% exited with code %'
                      THEN nullif(btrim(coalesce(e.result ->> 'stderr_log', e.result ->> 'stderr'), E' \t\r\n'), '') END,
                 e.result ->> 'message', e.result ->> 'error', e.result ->> 'reason'), E' \t\r\n') from '[^\r\n]*$'), 300) END, '')::text AS reason,
       0::bigint AS repeated_by
FROM execution e LEFT JOIN worker w ON w.id = e.worker
WHERE e.id = ANY (sqlc.arg(ids)::bigint[])
ORDER BY e.id DESC;
