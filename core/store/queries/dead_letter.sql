-- The ledger of dead letters. Only package deadletter writes it.

-- name: RecordDeadLetter :many
-- Records one dead-lettering of one message, once however often it is delivered: an existing one
-- returns no row. A row without a decision waits for an operator.
INSERT INTO dead_letter (
    fingerprint, message_id, correlation_id, message_type, exchange, routing_key, queue, reason, died,
    x_death, headers, body, execution, execution_status, action_ref, attempt, worker,
    decision, decided_by, decided_at, detail, evidence)
VALUES (
    sqlc.arg(fingerprint)::text, sqlc.narg(message_id)::text, sqlc.narg(correlation_id)::text, sqlc.narg(message_type)::text,
    sqlc.narg(exchange)::text, sqlc.narg(routing_key)::text, sqlc.narg(queue)::text, sqlc.narg(reason)::text, sqlc.narg(died)::timestamptz,
    sqlc.narg(x_death)::jsonb, sqlc.narg(headers)::jsonb, sqlc.arg(body)::bytea,
    sqlc.narg(execution)::bigint, sqlc.narg(execution_status)::text::execution_status_enum, sqlc.narg(action_ref)::text,
    sqlc.narg(attempt)::int, sqlc.narg(worker)::bigint,
    sqlc.narg(decision)::text, sqlc.narg(decided_by)::text,
    CASE WHEN sqlc.narg(decision)::text IS NOT NULL THEN now() END, sqlc.narg(detail)::text, sqlc.arg(evidence)::jsonb)
ON CONFLICT (fingerprint) DO NOTHING
RETURNING id;

-- name: KnownDeadLetters :many
SELECT d.fingerprint::text AS fingerprint FROM dead_letter d WHERE d.fingerprint = ANY (sqlc.arg(fingerprints)::text[]);

-- name: ReadDeadLetterExecutions :many
-- The executions of dead letters, as they are.
SELECT e.id, e.status, e.attempt, coalesce(e.worker, 0)::bigint AS worker, e.action_ref, e.created, e.updated, e.started_at, e.finished_at,
       e.retry_count, EXISTS (SELECT FROM execution_holder h WHERE h.execution = ANY (ARRAY[e.id]))::bool AS holds
FROM execution e WHERE e.id = ANY (sqlc.arg(ids)::bigint[]);

-- name: ReadDeadLetterWorkers :many
-- The workers of dead letters, with the findings of the newest probe. The heartbeat age of a worker
-- without one is infinite.
SELECT w.id, w.name, coalesce(w.status::text, '')::text AS status, w.cordoned, w.draining, coalesce(w.suspect_reason, '')::text AS suspect_reason,
       coalesce(extract(epoch FROM now() - w.heartbeat_seen), 'Infinity')::float8 AS heartbeat_age,
       coalesce(p.verdict, '')::text AS verdict, coalesce(p.reason, '')::text AS reason, coalesce(p.health, '')::text AS health,
       p.consumers, p.ready, p.at AS probed
FROM worker w LEFT JOIN worker_probe p ON p.worker = w.id
WHERE w.id = ANY (sqlc.arg(ids)::bigint[]);

-- name: CountWaitingDeadLetters :one
-- Dead letters that wait for an operator, up to a bound.
SELECT count(*) FROM (SELECT 1 FROM dead_letter d WHERE d.decision IS NULL LIMIT sqlc.arg(bound)::bigint) o;

-- name: DeadLetterRouteWorkers :many
-- Workers whose queues may hold messages that die.
SELECT w.id FROM worker w
WHERE w.worker_role = 'action' AND (w.status = 'active' OR w.heartbeat_seen > now() - interval '1 hour')
ORDER BY w.id LIMIT sqlc.arg(bound)::bigint;

-- name: LockAlikeDeadLetters :exec
SELECT pg_advisory_xact_lock(hashtextextended('attune dead letters ' || sqlc.arg(print)::text, 0));

-- name: CountAlikeDeadLetters :execrows
-- Counts dead letters at the open row that represents them, and names the first executions. A
-- decided row represents no more.
WITH freed AS (
    UPDATE dead_letter d SET fingerprint = d.fingerprint || ' ' || d.id
    WHERE d.fingerprint = sqlc.arg(print)::text AND d.decision IS NOT NULL
)
UPDATE dead_letter d
SET evidence = coalesce(d.evidence, '{}') || jsonb_build_object('alike', jsonb_build_object(
    'count', coalesce((d.evidence->'alike'->>'count')::bigint, 1) + sqlc.arg(n)::bigint,
    'executions', CASE WHEN jsonb_array_length(coalesce(d.evidence->'alike'->'executions', '[]')) < 1000
        THEN coalesce(d.evidence->'alike'->'executions', '[]') || to_jsonb(sqlc.arg(executions)::bigint[])
        ELSE d.evidence->'alike'->'executions' END))
WHERE d.fingerprint = sqlc.arg(print)::text AND d.decision IS NULL;

-- name: LockDeadLetter :one
-- ViewDeadLetters counts all deaths in the same way.
SELECT d.id, coalesce(d.message_id, '')::text AS message_id, coalesce(d.message_type, '')::text AS message_type,
       coalesce(d.exchange, '')::text AS exchange, coalesce(d.routing_key, '')::text AS routing_key,
       coalesce(d.body, '')::bytea AS body, coalesce(d.execution, 0)::bigint AS execution, coalesce(d.worker, 0)::bigint AS worker,
       coalesce(d.decision, '')::text AS decision, coalesce(d.decided_by, '')::text AS decided_by, d.decided_at,
       coalesce(d.evidence->'body'->>'cut' = 'true', false)::bool AS cut,
       coalesce(d.evidence->'message'->>'amqp', '')::text AS properties,
       coalesce(d.queue, '')::text AS queue, coalesce(d.reason, '')::text AS reason, d.died,
       coalesce(d.evidence->'taken'->>'queue', '')::text AS taken_from, coalesce(d.evidence->'message'->>'given_up', '')::text AS said,
       coalesce(CASE WHEN d.x_death->0->>'count' ~ '^[0-9]{1,9}$' THEN (d.x_death->0->>'count')::int END, 0)::int AS deaths,
       (CASE WHEN d.reason = 'taken' THEN 0 WHEN d.x_death->0->>'count' ~ '^[1-9][0-9]{0,5}$' THEN (d.x_death->0->>'count')::int ELSE 1 END
        + CASE WHEN d.headers->>'x-attune-deaths' ~ '^[0-9]{1,6}$' THEN (d.headers->>'x-attune-deaths')::int
               WHEN d.headers ? 'x-attune-requeued-from' THEN 1 ELSE 0 END
        + (SELECT count(*) FROM jsonb_array_elements(CASE WHEN jsonb_typeof(d.evidence->'decisions') = 'array' THEN d.evidence->'decisions' ELSE '[]' END) past
           WHERE past->>'decision' = 'reopened' AND past->>'before' IN ('requeued', 'sent')))::bigint AS all_deaths
FROM dead_letter d WHERE d.id = sqlc.arg(id) FOR UPDATE;

-- name: ForgetDeadLetterPrint :exec
-- A message that returns from the ledger to a queue is another dead letter when it dies again.
UPDATE dead_letter d
SET fingerprint = NULL, evidence = coalesce(d.evidence, '{}') || jsonb_build_object('fingerprint', d.fingerprint)
WHERE d.id = sqlc.arg(id);

-- name: DecideDeadLetters :many
-- Stores an operator's decision about dead letters with one of these decisions, empty for open ones; without any, about
-- all. 'reopened' opens them. The earlier decision is kept with the evidence.
UPDATE dead_letter d
SET decision = nullif(sqlc.arg(decision)::text, 'reopened'),
    decided_by = CASE WHEN sqlc.arg(decision)::text <> 'reopened' THEN sqlc.arg(decided_by)::text END,
    decided_at = CASE WHEN sqlc.arg(decision)::text <> 'reopened' THEN now() END,
    evidence = coalesce(d.evidence, '{}') || jsonb_build_object('decisions', coalesce(d.evidence->'decisions', '[]') || jsonb_strip_nulls(jsonb_build_object(
        'decision', sqlc.arg(decision)::text, 'by', sqlc.arg(decided_by)::text, 'at', now(), 'note', nullif(sqlc.arg(note)::text, ''),
        'before', d.decision, 'before_by', d.decided_by, 'before_at', d.decided_at)))
WHERE d.id IN (SELECT o.id FROM dead_letter o WHERE o.id = ANY (sqlc.arg(ids)::bigint[]) ORDER BY o.id FOR UPDATE)
  AND (cardinality(sqlc.arg(among)::text[]) = 0 OR coalesce(d.decision, '') = ANY (sqlc.arg(among)::text[]))
RETURNING d.id;

-- name: DetailDeadLetter :exec
-- Says why a dead letter waits again. Operators reopen dead letters without the right to this.
UPDATE dead_letter SET detail = sqlc.arg(detail)::text WHERE id = sqlc.arg(id);
