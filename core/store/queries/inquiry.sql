-- Inquiries. Executions are locked in order of id before their inquiries. Every change of an
-- inquiry repeats that it is pending and, by the database's clock, in time or not, so that an
-- answer and an expiry exclude each other (invariant S16).

-- name: FindAsking :many
-- Executions whose result opens an inquiry that does not exist yet. Ended workflows open none.
SELECT e.id, attune_inquiry_of(e.result)::jsonb AS question
FROM execution e
WHERE e.id = ANY (sqlc.arg(ids)::bigint[]) AND e.status = 'completed' AND attune_inquiry_of(e.result) IS NOT NULL
  AND NOT EXISTS (SELECT FROM inquiry i WHERE i.execution = e.id)
  AND NOT EXISTS (SELECT FROM inquiry_fault f WHERE f.execution = e.id)
  AND NOT EXISTS (SELECT FROM execution p WHERE p.id = e.parent AND attune_terminal(p.status))
ORDER BY e.id;

-- name: ReadBeginningQuestions :many
-- Requested executions of the inquiry action, in workflows or not.
SELECT e.id, coalesce(e.config, 'null')::jsonb AS config, coalesce(attune_task_timeout(e.workflow_task), 0)::float8 AS timeout_seconds,
       coalesce((SELECT p.status IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned') FROM execution p WHERE p.id = e.parent),
                jsonb_typeof(e.workflow_task) IS NOT DISTINCT FROM 'object')::bool AS over,
       coalesce(jsonb_typeof(e.workflow_task) = 'object', false)::bool AS task
FROM execution e
WHERE e.id = ANY (sqlc.arg(ids)::bigint[]) AND e.action_ref = sqlc.arg(action)::text AND e.status = 'requested'
ORDER BY e.id;

-- name: BeginQuestions :exec
WITH begun AS (
    UPDATE execution e SET status = 'running', started_at = now(), result = r.result::jsonb
    FROM (SELECT unnest(sqlc.arg(ids)::bigint[]) AS id, unnest(sqlc.arg(results)::text[]) AS result) r
    WHERE e.id = ANY (ARRAY[r.id]) AND e.status = 'requested' AND e.worker IS NULL
      AND NOT EXISTS (SELECT FROM execution_holder h WHERE h.execution = ANY (ARRAY[e.id]))
    RETURNING e.id
)
SELECT attune_expect((SELECT count(*) FROM begun), cardinality(sqlc.arg(ids)::bigint[])::bigint, 'executions that begin to ask');

-- name: KnownIdentities :many
SELECT i.id FROM identity i WHERE i.id = ANY (sqlc.arg(ids)::bigint[]);

-- name: OpenInquiries :exec
-- Takes one object for each inquiry. An execution that has an inquiry already, or is gone, rolls
-- the transaction back.
WITH opened AS (
    INSERT INTO inquiry (id, execution, prompt, response_schema, assigned_to, timeout_at)
    SELECT (q.v ->> 'id')::bigint, (q.v ->> 'execution')::bigint, q.v ->> 'prompt', nullif(q.v -> 'schema', 'null'::jsonb),
           (SELECT k.id FROM identity k WHERE k.id = (q.v ->> 'assigned_to')::bigint),
           now() + make_interval(secs => (q.v ->> 'seconds')::float8)
    FROM jsonb_array_elements(sqlc.arg(questions)::jsonb) AS q (v)
    ORDER BY 1
    RETURNING id
)
SELECT attune_expect((SELECT count(*) FROM opened), jsonb_array_length(sqlc.arg(questions)::jsonb)::bigint, 'opened inquiries');

-- name: RecordInquiryFaults :exec
INSERT INTO inquiry_fault (execution, reason)
SELECT r.execution, r.reason
FROM (SELECT unnest(sqlc.arg(executions)::bigint[]) AS execution, unnest(sqlc.arg(reasons)::text[]) AS reason) r
ORDER BY r.execution
ON CONFLICT DO NOTHING;

-- name: InquiryExecutions :many
-- The executions of inquiries, to lock before them.
SELECT i.id, i.execution FROM inquiry i WHERE i.id = ANY (sqlc.arg(ids)::bigint[]) ORDER BY i.execution;

-- name: LockAboveAsking :exec
-- Locks the workflows that wait for an answer: the workflow of which the execution is a task, the
-- workflow of which that one is a task, and so on. They neither end nor begin to be cancelled
-- before the commit. Several answers may hold them at once.
WITH RECURSIVE above AS (
    SELECT e.parent AS id, 1 AS n FROM execution e WHERE e.id = sqlc.arg(execution)::bigint AND e.parent IS NOT NULL
    UNION ALL
    SELECT e.parent, a.n + 1 FROM above a JOIN execution e ON e.id = ANY (ARRAY[a.id])
    WHERE e.parent IS NOT NULL AND jsonb_typeof(e.workflow_task) = 'object' AND a.n < 32
)
SELECT x.id FROM execution x WHERE x.id = ANY (ARRAY(SELECT a.id FROM above a)) ORDER BY x.id FOR SHARE OF x;

-- name: StoppedAboveAsking :many
-- The ended or cancelled executions among an asking execution's parent workflows and the execution
-- itself, the nearest first. The end of the execution itself does not count.
WITH RECURSIVE above AS (
    SELECT e.id, e.parent, true AS task, 0 AS n FROM execution e WHERE e.id = sqlc.arg(execution)::bigint
    UNION ALL
    SELECT e.id, e.parent, coalesce(jsonb_typeof(e.workflow_task) = 'object', false), a.n + 1
    FROM above a JOIN execution e ON e.id = ANY (ARRAY[a.parent])
    WHERE a.task AND a.n < 32
)
SELECT x.id, x.status, a.n::int AS height
FROM above a JOIN execution x ON x.id = ANY (ARRAY[a.id])
WHERE a.n > 0 AND attune_terminal(x.status)
   OR NOT attune_terminal(x.status) AND (x.status = 'canceling' OR EXISTS (SELECT FROM execution_cancel c WHERE c.execution = x.id))
ORDER BY a.n;

-- name: InquiryFacts :one
-- The inputs of an answer, read under the lock of the execution. only_asks is set if the execution
-- does nothing else, and ends with the answer; asked if the engine opened the inquiry for it. Other
-- inquiries came through the API about an execution that neither waits for the answer nor changes
-- by it.
SELECT i.id, i.execution, i.status, i.prompt, coalesce(i.response_schema, 'null')::jsonb AS response_schema, i.assigned_to,
       coalesce(k.login, '')::text AS assignee, i.timeout_at, i.responded_at, coalesce(i.responder, r.login, '')::text AS responder,
       e.status AS execution_status, e.action_ref,
       (e.status = 'running' AND e.worker IS NULL AND NOT EXISTS (SELECT FROM workflow_execution x WHERE x.execution = e.id))::bool AS only_asks,
       (e.worker IS NULL AND e.action_ref = sqlc.arg(action)::text OR attune_inquiry_of(e.result) IS NOT NULL)::bool AS asked,
       coalesce(i.timeout_at <= clock_timestamp(), false)::bool AS late, clock_timestamp()::timestamptz AS now
FROM inquiry i
JOIN execution e ON e.id = i.execution
LEFT JOIN identity k ON k.id = i.assigned_to
LEFT JOIN identity r ON r.id = i.responded_by
WHERE i.id = sqlc.arg(id)::bigint
FOR UPDATE OF i;

-- name: FindIdentity :one
SELECT i.id, i.login, i.frozen FROM identity i WHERE i.login = sqlc.arg(login)::text;

-- name: RespondInquiry :execrows
UPDATE inquiry i
SET status = 'responded', response = sqlc.arg(response)::jsonb, responded_at = clock_timestamp(), updated = now(),
    responded_by = nullif(sqlc.arg(responded_by)::bigint, 0), responder = nullif(sqlc.arg(responder)::text, '')
WHERE i.id = sqlc.arg(id)::bigint AND i.status = 'pending' AND (i.timeout_at IS NULL OR i.timeout_at > clock_timestamp());

-- name: FindExpiredInquiries :many
-- Pending inquiries after their timeout, the oldest first.
SELECT i.id, i.execution FROM inquiry i
WHERE i.status = 'pending' AND i.timeout_at <= now()
ORDER BY i.timeout_at
LIMIT sqlc.arg(page)::int;

-- name: ExpireInquiries :exec
UPDATE inquiry i SET status = 'timeout', updated = now()
WHERE i.id = ANY (sqlc.arg(ids)::bigint[]) AND i.status = 'pending' AND i.timeout_at <= now();

-- name: CancelInquiries :exec
UPDATE inquiry i SET status = 'cancelled', updated = now()
WHERE i.id = ANY (sqlc.arg(ids)::bigint[]) AND i.status = 'pending';

-- name: FindUnsettledInquiries :many
-- Ended inquiries that are not processed yet.
SELECT i.id, i.execution FROM inquiry i
WHERE i.status <> 'pending' AND NOT i.settled
ORDER BY i.id
LIMIT sqlc.arg(page)::int;

-- name: FindStrayInquiries :one
-- One window of pending inquiries. stray are inquiries of the engine that no execution waits for:
-- their execution ended without completing, or its parent ended. An inquiry from the API stays open
-- until it is answered or times out, whatever happens to its execution.
SELECT coalesce(max(w.id), 0)::bigint AS last, count(*)::int AS scanned,
       coalesce(array_agg(w.id ORDER BY w.id) FILTER (WHERE w.stray), '{}')::bigint[] AS ids
FROM (
    SELECT i.id, (x.asked AND x.ended AND (x.status <> 'completed' OR x.above))::bool AS stray
    FROM inquiry i
    CROSS JOIN LATERAL (
        SELECT e.status, attune_terminal(e.status) AS ended,
               e.worker IS NULL AND e.action_ref = sqlc.arg(action)::text OR attune_inquiry_of(e.result) IS NOT NULL AS asked,
               coalesce((SELECT attune_terminal(p.status) FROM execution p WHERE p.id = e.parent), false) AS above
        FROM execution e WHERE e.id = i.execution OFFSET 0
    ) x
    WHERE i.status = 'pending' AND i.id > sqlc.arg(after)::bigint
    ORDER BY i.id
    LIMIT sqlc.arg(window_size)::int
) w;

-- name: LockUnsettledInquiries :many
-- Unprocessed inquiries, locked so that no answer arrives between this statement and the next. For
-- answers with possible secrets also the schema and the answer.
SELECT u.id, u.execution,
       CASE WHEN u.marked THEN u.response_schema ELSE 'null'::jsonb END::jsonb AS response_schema,
       CASE WHEN u.marked THEN u.response ELSE 'null'::jsonb END::jsonb AS response, u.marked
FROM (
    SELECT i.id, i.execution, i.response_schema, i.response,
           coalesce(i.status = 'responded' AND i.response IS NOT NULL AND strpos(i.response_schema::text, '"secret"') > 0, false)::bool AS marked
    FROM inquiry i
    WHERE i.id = ANY (sqlc.arg(ids)::bigint[]) AND NOT i.settled
    ORDER BY i.id
    FOR NO KEY UPDATE OF i
) u
ORDER BY u.id;

-- name: EndAskingExecutions :many
-- Ends executions that only asked, as their inquiry ended. It leaves executions that ended
-- otherwise, that a worker runs, or that are workflows. sealed are answers that are stored without
-- their secrets.
UPDATE execution e
SET status = (CASE i.status WHEN 'responded' THEN 'completed' WHEN 'timeout' THEN 'timeout' ELSE 'cancelled' END)::execution_status_enum,
    result = CASE i.status
        WHEN 'responded' THEN jsonb_build_object('response', coalesce(s.response::jsonb, i.response), '__inquiry_id', i.id, '__inquiry_created_published', true)
        WHEN 'timeout' THEN jsonb_build_object('error', 'inquiry timed out', '__inquiry_id', i.id)
        ELSE jsonb_build_object('error', 'inquiry cancelled', '__inquiry_id', i.id) END,
    workflow_task = CASE WHEN i.status = 'timeout' AND jsonb_typeof(e.workflow_task) = 'object'
        THEN e.workflow_task || jsonb_build_object('timed_out', true, 'completed_at', now()) ELSE e.workflow_task END
FROM inquiry i
LEFT JOIN (SELECT unnest(sqlc.arg(sealed)::bigint[]) AS id, unnest(sqlc.arg(responses)::text[]) AS response) s ON s.id = i.id
WHERE i.id = ANY (sqlc.arg(ids)::bigint[]) AND i.status <> 'pending' AND NOT i.settled
  AND e.id = i.execution AND e.status = 'running' AND e.worker IS NULL
  AND NOT EXISTS (SELECT FROM workflow_execution x WHERE x.execution = e.id)
RETURNING e.id;

-- name: SettleInquiries :many
-- Marks inquiries as processed and returns them: only these are announced. sealed are answers that
-- are stored without their secrets.
UPDATE inquiry i
SET settled = true, response = coalesce((
        SELECT s.response::jsonb
        FROM (SELECT unnest(sqlc.arg(sealed)::bigint[]) AS id, unnest(sqlc.arg(responses)::text[]) AS response) s
        WHERE s.id = i.id), i.response)
WHERE i.id = ANY (sqlc.arg(ids)::bigint[]) AND i.status <> 'pending' AND NOT i.settled
RETURNING i.id, i.execution, i.status;

-- name: NoteResponders :exec
-- Stores the responder that a message of another service names.
UPDATE inquiry i SET responded_by = r.identity
FROM (SELECT unnest(sqlc.arg(ids)::bigint[]) AS id, unnest(sqlc.arg(identities)::bigint[]) AS identity) r
WHERE i.id = r.id AND i.status = 'responded' AND i.responded_by IS NULL AND i.responder IS NULL;

-- name: CountOpenInquiries :one
-- The number of open inquiries up to a bound, the age of the oldest, and the number that have used
-- up most of their time.
SELECT (SELECT count(*) FROM (SELECT FROM inquiry a WHERE a.status = 'pending' LIMIT sqlc.arg(bound)::bigint) n)::bigint AS open,
       coalesce((SELECT extract(epoch FROM now() - o.created) FROM inquiry o WHERE o.status = 'pending' ORDER BY o.id LIMIT 1), 0)::float8 AS oldest_seconds,
       (SELECT count(*) FROM (SELECT FROM inquiry l WHERE l.status = 'pending' AND l.timeout_at < now() + interval '30 days'
                              AND now() > l.created + (l.timeout_at - l.created) * 0.8 LIMIT sqlc.arg(bound)::bigint) n)::bigint AS late;

-- name: ViewInquiryIDs :one
-- A page of ids. Open ones start at the longest waiting one above after; ended ones go down from
-- the newest below before. Returns the number of rows read; a search continues at last. An
-- execution is the asking one, or the workflow of which it is a task.
WITH scanned AS MATERIALIZED (
    (SELECT i.id, i.status, i.execution, i.assigned_to, i.created, i.timeout_at FROM inquiry i
     WHERE sqlc.arg(open)::bool AND sqlc.arg(execution)::bigint = 0 AND i.status = 'pending' AND i.id > sqlc.arg(after)::bigint
     ORDER BY i.id LIMIT sqlc.arg(scan)::bigint)
    UNION ALL
    (SELECT i.id, i.status, i.execution, i.assigned_to, i.created, i.timeout_at FROM inquiry i
     WHERE NOT sqlc.arg(open)::bool AND sqlc.arg(execution)::bigint = 0 AND i.status <> 'pending' AND i.id < sqlc.arg(before)::bigint
     ORDER BY i.id DESC LIMIT sqlc.arg(scan)::bigint)
    UNION ALL
    (SELECT i.id, i.status, i.execution, i.assigned_to, i.created, i.timeout_at
     FROM (SELECT sqlc.arg(execution)::bigint AS id WHERE sqlc.arg(execution)::bigint <> 0
           UNION ALL (SELECT c.id FROM execution c WHERE sqlc.arg(execution)::bigint <> 0 AND c.parent = sqlc.arg(execution)::bigint LIMIT 100000)) x
     JOIN inquiry i ON i.execution = x.id
     WHERE (i.status = 'pending') = sqlc.arg(open)::bool
       AND CASE WHEN sqlc.arg(open)::bool THEN i.id > sqlc.arg(after)::bigint ELSE i.id < sqlc.arg(before)::bigint END
     ORDER BY CASE WHEN sqlc.arg(open)::bool THEN i.id ELSE -i.id END LIMIT sqlc.arg(scan)::bigint)
), hit AS (
    SELECT s.id FROM scanned s
    WHERE (cardinality(sqlc.arg(statuses)::text[]) = 0 OR s.status::text = ANY (sqlc.arg(statuses)::text[]))
      AND (sqlc.arg(assigned_to)::bigint = 0 OR s.assigned_to = sqlc.arg(assigned_to)::bigint)
      AND (sqlc.arg(pattern)::text = '' OR EXISTS (
            SELECT FROM execution e WHERE e.id = ANY (ARRAY[s.execution]) AND (e.action_ref ILIKE sqlc.arg(pattern)::text
                OR EXISTS (SELECT FROM execution p WHERE p.id = ANY (ARRAY[e.parent]) AND p.action_ref ILIKE sqlc.arg(pattern)::text))))
      AND (cardinality(sqlc.arg(ids)::bigint[]) = 0 OR s.id = ANY (sqlc.arg(ids)::bigint[]))
      AND (cardinality(sqlc.arg(assignees)::bigint[]) = 0 OR s.assigned_to = ANY (sqlc.arg(assignees)::bigint[]))
      AND NOT (coalesce(s.assigned_to, 0) = ANY (sqlc.arg(not_assignees)::bigint[]))
      AND (sqlc.arg(assigned)::text = '' OR (sqlc.arg(assigned)::text = 'any') = (s.assigned_to IS NOT NULL))
      AND (sqlc.arg(max_age)::float8 = 0 OR s.created >= now() - make_interval(secs => sqlc.arg(max_age)::float8))
      AND (sqlc.arg(min_age)::float8 = 0 OR s.created < now() - make_interval(secs => sqlc.arg(min_age)::float8))
      AND (sqlc.arg(max_left)::float8 = 0 OR s.status = 'pending' AND s.timeout_at < now() + make_interval(secs => sqlc.arg(max_left)::float8))
      AND (sqlc.arg(min_left)::float8 = 0 OR s.status = 'pending' AND (s.timeout_at IS NULL OR s.timeout_at >= now() + make_interval(secs => sqlc.arg(min_left)::float8)))
      AND (NOT sqlc.arg(trouble)::bool OR s.status = 'timeout' OR s.status = 'pending' AND CASE WHEN s.timeout_at IS NULL
           THEN s.created < now() - make_interval(secs => sqlc.arg(unanswered_seconds)::float8) ELSE s.timeout_at - now() < (s.timeout_at - s.created) / 5 END)
      AND (NOT sqlc.arg(worded)::bool OR EXISTS (
            SELECT FROM inquiry q
            JOIN execution e ON e.id = ANY (ARRAY[q.execution])
            LEFT JOIN LATERAL (SELECT x.action_ref FROM execution x WHERE x.id = e.parent OFFSET 0) p ON true
            CROSS JOIN LATERAL (SELECT left(q.prompt, 300) AS prompt, coalesce(p.action_ref, '') AS flow, coalesce(e.workflow_task ->> 'task_name', '') AS task) t
            WHERE q.id = ANY (ARRAY[s.id])
              AND t.prompt ~* ALL (sqlc.arg(prompts)::text[]) AND NOT (t.prompt ~* ANY (sqlc.arg(not_prompts)::text[]))
              AND t.task ~* ALL (sqlc.arg(tasks)::text[]) AND NOT (t.task ~* ANY (sqlc.arg(not_tasks)::text[]))
              AND NOT EXISTS (SELECT FROM unnest(sqlc.arg(match)::text[]) AS m (expression) WHERE NOT (e.action_ref ~* m.expression OR t.flow ~* m.expression))
              AND NOT (e.action_ref ~* ANY (sqlc.arg(unmatch)::text[]) OR t.flow ~* ANY (sqlc.arg(unmatch)::text[]))
              AND concat_ws(' ', e.action_ref, t.flow, t.task, t.prompt) ~* ALL (sqlc.arg(texts)::text[])
              AND NOT (concat_ws(' ', e.action_ref, t.flow, t.task, t.prompt) ~* ANY (sqlc.arg(not_texts)::text[]))))
    ORDER BY CASE WHEN sqlc.arg(open)::bool THEN s.id ELSE -s.id END LIMIT sqlc.arg(page)::bigint
)
SELECT coalesce((SELECT array_agg(h.id ORDER BY CASE WHEN sqlc.arg(open)::bool THEN h.id ELSE -h.id END) FROM hit h), '{}')::bigint[] AS ids,
       count(*)::bigint AS looked_at,
       coalesce(CASE WHEN sqlc.arg(open)::bool THEN max(s.id) ELSE min(s.id) END, 0)::bigint AS last
FROM scanned s;

-- name: ViewInquiries :many
-- The inquiries of a page with their executions and assignees; prompts are cut.
SELECT i.id, i.execution, i.status::text AS status, (CASE WHEN attune_inquiry_of(e.result) IS NULL THEN 'task' ELSE 'result' END)::text AS kind,
       (now() - i.created)::interval AS age, (CASE WHEN i.status = 'pending' AND i.timeout_at IS NOT NULL THEN greatest(i.timeout_at - now(), '0') END)::interval AS "left",
       (CASE WHEN length(i.prompt) > sqlc.arg(cut)::int THEN left(i.prompt, sqlc.arg(cut)::int - 1) || '…' ELSE i.prompt END)::text AS prompt, i.created, i.timeout_at, i.responded_at,
       i.assigned_to, coalesce(k.login, '')::text AS assignee, coalesce(i.responder, r.login, '')::text AS responder, i.responded_by,
       (i.response_schema IS NOT NULL)::bool AS has_schema,
       e.action_ref, e.status::text AS execution_status, coalesce(e.workflow_task ->> 'task_name', '')::text AS task,
       e.parent AS workflow, coalesce(p.action_ref, '')::text AS workflow_ref, coalesce(p.status::text, '')::text AS workflow_status
FROM inquiry i
JOIN execution e ON e.id = ANY (ARRAY[i.execution])
LEFT JOIN LATERAL (SELECT x.action_ref, x.status FROM execution x WHERE x.id = e.parent OFFSET 0) p ON true
LEFT JOIN identity k ON k.id = i.assigned_to
LEFT JOIN identity r ON r.id = i.responded_by
WHERE i.id = ANY (sqlc.arg(ids)::bigint[])
ORDER BY array_position(sqlc.arg(ids)::bigint[], i.id);

-- name: ViewInquiryForms :many
-- Fields of a single inquiry.
SELECT i.id, coalesce(i.response_schema, 'null')::jsonb AS response_schema, coalesce(i.response, 'null')::jsonb AS response, i.updated
FROM inquiry i WHERE i.id = ANY (sqlc.arg(ids)::bigint[]);

-- name: ViewInquiryFaults :many
-- The newest questions that could not be opened.
SELECT f.execution, e.action_ref, f.at, f.reason FROM inquiry_fault f JOIN execution e ON e.id = f.execution
ORDER BY f.at DESC LIMIT sqlc.arg(bound)::bigint;

