-- Measures of alert rules, and the alerts themselves. Every measure is a bounded read through an
-- index. Only alerts are written; nothing is locked.

-- name: AlertLive :one
-- Of the oldest and the newest unfinished executions: how many have been scheduled for longer than
-- they may, and since when the oldest scheduled one is.
WITH live AS MATERIALIZED (
    (SELECT e.id, e.status, e.updated, e.action FROM execution e
     WHERE e.finished_status IS NULL ORDER BY e.id LIMIT sqlc.arg(bound)::bigint)
    UNION
    (SELECT e.id, e.status, e.updated, e.action FROM execution e
     WHERE e.finished_status IS NULL ORDER BY e.id DESC LIMIT sqlc.arg(bound)::bigint)
), scheduled AS (
    SELECT l.id, l.updated, l.updated < now() - make_interval(secs => coalesce(
               (SELECT a.scheduled_timeout_seconds FROM action a WHERE a.id = l.action)::float8, sqlc.arg(timeout)::float8)) AS overdue
    FROM live l WHERE l.status = 'scheduled'
)
SELECT count(*) FILTER (WHERE s.overdue) AS overdue,
       coalesce(extract(epoch FROM now() - min(s.updated)), 0)::float8 AS longest,
       coalesce((SELECT o.id FROM scheduled o ORDER BY o.updated, o.id LIMIT 1), 0)::bigint AS execution
FROM scheduled s;

-- name: AlertLostWork :many
-- Executions that ended within the last minute because they were not started or not ended in time,
-- by worker. activity_minute has the executions that ended as timeouts.
SELECT l.cause, coalesce(w.name, '')::text AS worker, count(*) AS n
FROM lost_work l LEFT JOIN worker w ON w.id = l.worker
WHERE l.at > now() - interval '1 minute' AND l.cause IN ('scheduled_timeout', 'action_timeout', 'dead_letter') AND l.outcome NOT IN ('moved', 'timeout')
GROUP BY 1, 2 ORDER BY n DESC, 1, 2 LIMIT 100;

-- name: AlertWorkers :many
-- Workers that are present, or were until the engine marked them inactive within a day. Without any
-- heartbeat silence counts from the registration.
SELECT w.id, w.name, (w.worker_role::text = 'sensor')::bool AS sensor, (w.status::text NOT IN ('inactive', 'error'))::bool AS active,
       (w.cordoned OR w.draining)::bool AS kept, (now() - w.suspect_since)::interval AS suspect, coalesce(w.suspect_reason, '') AS suspect_why,
       (now() - coalesce(w.heartbeat_seen, w.created))::interval AS silence, (w.heartbeat_seen IS NULL)::bool AS never,
       coalesce(l.assigned, 0)::bigint AS assigned,
       (w.status::text = 'inactive' AND coalesce(w.deactivated_at > now() - interval '5 minutes', false))::bool AS vanished,
       coalesce(p.health, '')::text AS health, coalesce(p.ready, -1)::bigint AS ready
FROM worker w
LEFT JOIN worker_load l ON l.worker = w.id
LEFT JOIN worker_probe p ON p.worker = w.id AND p.at > now() - make_interval(secs => sqlc.arg(probed_within)::float8)
WHERE w.status::text <> 'inactive' OR w.deactivated_at > now() - interval '1 day'
ORDER BY w.id LIMIT sqlc.arg(bound)::bigint;

-- name: AlertUnplaced :one
-- Queues with a free slot whose head no live worker can run, now or when one is free. until is when
-- the first of them fails; epoch if none does.
SELECT count(*) AS n, coalesce((array_agg(b.reason ORDER BY b.until, b.reason))[1], '')::text AS reason, coalesce(min(b.until), 'epoch')::timestamptz AS until
FROM (SELECT x.reason, x.state_id, x.until FROM admission_blocked x WHERE x.scope_id IS NULL LIMIT sqlc.arg(bound)::bigint) b
JOIN execution_admission_state s ON s.id = b.state_id
WHERE s.queued_count > 0 AND NOT s.paused AND coalesce(b.reason, '') NOT LIKE 'waiting for a worker: % busy';

-- name: AlertOutbox :one
-- How long the oldest message waits, and why the broker did not take it; zero without one.
SELECT coalesce(extract(epoch FROM now() - o.created), 0)::float8 AS oldest, coalesce(o.last_error, '')::text AS reason
FROM (SELECT) one LEFT JOIN (SELECT created, last_error FROM outbox ORDER BY id LIMIT 1) o ON true;

-- name: AlertRules :many
-- Rules that failed in the last 15 minutes, of a bounded number of the newest enforcements and
-- matched events: how often, and the newest reason. A failed rule was not carried out, or has
-- conditions that cannot be evaluated.
SELECT f.rule_ref::text AS rule, count(*)::bigint AS n, (array_agg(left(f.reason, 300) ORDER BY f.at DESC))[1]::text AS reason, min(f.at)::timestamptz AS since
FROM (
    SELECT n.rule_ref, coalesce(n.error, '') AS reason, n.created AS at
    FROM (SELECT e.rule_ref, e.error, e.created, e.status FROM enforcement e ORDER BY e.id DESC LIMIT sqlc.arg(most)::int) n
    WHERE n.status = 'disabled' AND n.created > now() - interval '15 minutes'
    UNION ALL
    SELECT substring(x.line FROM '^rule ([^ ]+): '), x.line, m.at
    FROM (SELECT d.failures, d.at FROM event_matched d ORDER BY d.event DESC LIMIT sqlc.arg(most)::int) m
    CROSS JOIN LATERAL unnest(m.failures) x (line)
    WHERE m.at > now() - interval '15 minutes'
) f
WHERE f.rule_ref IS NOT NULL
GROUP BY f.rule_ref
ORDER BY count(*) DESC, f.rule_ref
LIMIT 100;

-- name: AlertRuleRates :many
-- The enforcements of each rule per minute, of a bounded number of the newest ones of the last
-- minute. If the bound is reached, the rate is computed over the time that these span.
WITH newest AS MATERIALIZED (
    SELECT e.rule_ref, e.created FROM enforcement e ORDER BY e.id DESC LIMIT sqlc.arg(most)::int
), span AS (
    SELECT CASE WHEN count(*) < sqlc.arg(most)::int THEN 60
                ELSE least(greatest(extract(epoch FROM now() - min(n.created)), 1), 60) END::float8 AS seconds
    FROM newest n
)
SELECT n.rule_ref::text AS rule, (count(*) * 60 / s.seconds)::float8 AS rate
FROM newest n CROSS JOIN span s
WHERE n.created >= now() - make_interval(secs => s.seconds)
GROUP BY n.rule_ref, s.seconds
ORDER BY count(*) DESC, n.rule_ref
LIMIT 100;

-- name: AlertRetries :one
-- How many of the newest executions of the last 15 minutes repeat another.
SELECT count(*) AS requested, count(*) FILTER (WHERE c.retry_count > 0) AS repeated
FROM (SELECT e.created, e.retry_count FROM execution e ORDER BY e.id DESC LIMIT sqlc.arg(bound)::bigint) c
WHERE c.created > now() - interval '15 minutes';

-- name: RaiseAlerts :many
-- Opens the alerts of true conditions, and stores their newest values. An alert fires once its
-- condition has held for as long as its rule says. news is true when it begins to fire.
INSERT INTO alert AS a (rule, target, severity, summary, hint, value, fired)
SELECT n.rule, n.target, n.severity, n.summary, n.hint, n.value, CASE WHEN n.held <= 0 THEN now() END
FROM (SELECT unnest(sqlc.arg(rules)::text[]) AS rule, unnest(sqlc.arg(targets)::text[]) AS target,
             unnest(sqlc.arg(severities)::text[]) AS severity, unnest(sqlc.arg(summaries)::text[]) AS summary,
             unnest(sqlc.arg(hints)::text[]) AS hint, unnest(sqlc.arg(values)::float8[]) AS value,
             unnest(sqlc.arg(helds)::float8[]) AS held) n
ORDER BY n.rule, n.target
ON CONFLICT (rule, target) WHERE cleared IS NULL DO UPDATE SET
    severity = excluded.severity, summary = excluded.summary, hint = excluded.hint, value = excluded.value, seen = now(),
    fired = coalesce(a.fired, CASE WHEN now() - a.since >= make_interval(secs => (sqlc.arg(helds)::float8[])[
        array_position(sqlc.arg(keys)::text[], excluded.rule || chr(31) || excluded.target)]) THEN now() END)
RETURNING a.rule, a.target, a.severity, a.summary, a.value, a.since, (a.fired IS NOT DISTINCT FROM now())::bool AS news;

-- name: OpenAlerts :many
SELECT a.id, a.rule, a.target, (a.fired IS NOT NULL)::bool AS fired FROM alert a
WHERE a.cleared IS NULL ORDER BY a.id LIMIT sqlc.arg(bound)::bigint;

-- name: AlertsWrittenSince :one
-- Whether any replica has evaluated the rules since a time, as far as that left a row.
SELECT (EXISTS (SELECT FROM alert a WHERE a.cleared IS NULL AND a.seen > sqlc.arg(at)::timestamptz)
     OR EXISTS (SELECT FROM alert c WHERE c.cleared > sqlc.arg(at)::timestamptz))::bool AS written;

-- name: ClearAlerts :many
-- Ends alerts whose condition is no longer true.
UPDATE alert a SET cleared = now(), seen = now()
WHERE a.id = ANY (sqlc.arg(ids)::bigint[]) AND a.cleared IS NULL AND a.fired IS NOT NULL
RETURNING a.rule, a.target, a.severity, a.summary, a.value, a.since, extract(epoch FROM now() - a.fired)::float8 AS lasted;

-- name: ForgetAlerts :execrows
-- Deletes alerts whose condition ended before they fired.
DELETE FROM alert a WHERE a.id = ANY (sqlc.arg(ids)::bigint[]) AND a.cleared IS NULL AND a.fired IS NULL;

-- name: CountFiring :many
SELECT a.rule, a.severity, count(*) AS n FROM alert a
WHERE a.cleared IS NULL AND a.fired IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2 LIMIT 500;

-- name: ListAlerts :many
-- Open alerts, the worst and oldest first.
SELECT a.*, (CASE WHEN a.fired IS NULL THEN 'pending' ELSE 'firing' END)::text AS state FROM alert a
WHERE a.cleared IS NULL
ORDER BY (a.fired IS NULL), CASE a.severity WHEN 'critical' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END, a.since, a.id
LIMIT sqlc.arg(bound)::bigint;

-- name: ListPastAlerts :many
-- Cleared alerts, among the newest.
SELECT r.*, 'cleared'::text AS state
FROM (SELECT a.* FROM alert a ORDER BY a.since DESC LIMIT 2000) r
WHERE r.cleared IS NOT NULL AND r.fired IS NOT NULL
ORDER BY r.cleared DESC, r.id DESC LIMIT sqlc.arg(bound)::bigint;

-- name: FindQuiet :one
-- When the last alert cleared, among the newest; the epoch if none has fired.
SELECT coalesce(max(r.cleared) FILTER (WHERE r.fired IS NOT NULL), 'epoch')::timestamptz AS since
FROM (SELECT a.fired, a.cleared FROM alert a ORDER BY a.since DESC LIMIT 2000) r;

-- name: AlertMarks :one
-- The newest rows, from which counting continues.
SELECT coalesce((SELECT max(l.id) FROM lost_work l), 0)::bigint AS lost, coalesce((SELECT max(d.id) FROM dead_letter d), 0)::bigint AS dead_letters;

-- name: CountLostWorkSince :many
-- Decisions since a row, by cause and outcome. The last seconds are left to the next read, because
-- a transaction with a smaller id may still commit.
SELECT l.cause, l.outcome, count(*) AS n, max(l.id)::bigint AS last
FROM (SELECT x.id, x.cause, x.outcome FROM lost_work x
      WHERE x.id > sqlc.arg(after)::bigint AND x.at < now() - interval '5 seconds' ORDER BY x.id LIMIT sqlc.arg(bound)::bigint) l
GROUP BY 1, 2 ORDER BY 1, 2;

-- name: CountAlertTimes :many
-- How often each alert fired within a day, among the newest.
SELECT r.rule, r.target, count(*) AS n
FROM (SELECT a.rule, a.target, a.fired FROM alert a
      WHERE a.since > now() - interval '1 day' ORDER BY a.since DESC LIMIT sqlc.arg(bound)::bigint) r
WHERE r.fired IS NOT NULL
GROUP BY 1, 2 ORDER BY n DESC, 1, 2 LIMIT sqlc.arg(bound)::bigint;
