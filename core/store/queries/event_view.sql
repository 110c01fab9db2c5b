-- Events, rules and enforcements, for users. Every query is bounded.

-- name: EventSchema :one
SELECT (to_regclass('event_matched') IS NOT NULL AND to_regclass('event_matching') IS NOT NULL)::bool AS there;

-- name: ViewEvents :many
-- One page of a bounded number of events below an id, the newest first. seen is how many rows were
-- read up to this one.
SELECT w.id, w.trigger_ref, w.rule_ref, w.source_ref, w.created, w.n AS seen,
       (m.event IS NOT NULL)::bool AS done, coalesce(m.rules, 0)::int AS rules, coalesce(m.matched, 0)::int AS matched,
       coalesce(m.failures, '{}')::text[] AS failures, m.at,
       (SELECT count(*) FROM enforcement f WHERE f.event = w.id AND f.status = 'disabled')::int AS disabled
FROM (
    SELECT e.id, e.trigger_ref, coalesce(e.rule_ref, '')::text AS rule_ref, coalesce(e.source_ref, '')::text AS source_ref, e.created,
           row_number() OVER (ORDER BY e.id DESC)::bigint AS n
    FROM event e WHERE e.id < sqlc.arg(before)::bigint ORDER BY e.id DESC LIMIT sqlc.arg(scan)::int
) w
LEFT JOIN event_matched m ON m.event = w.id
WHERE (sqlc.arg(trigger)::text = '' OR w.trigger_ref = sqlc.arg(trigger)::text)
ORDER BY w.id DESC
LIMIT sqlc.arg(page)::int;

-- name: CountEventsBelow :one
-- The number of events that a page may read, and the last of them.
SELECT count(*)::int AS n, coalesce(min(w.id), 0)::bigint AS last
FROM (SELECT e.id FROM event e WHERE e.id < sqlc.arg(before)::bigint ORDER BY e.id DESC LIMIT sqlc.arg(scan)::int) w;

-- name: ViewEnforcementPayload :one
-- The payload that the rule was compared with, and the present conditions of the rule.
SELECT f.payload, f.created, coalesce(r.conditions, 'null')::jsonb AS now
FROM enforcement f LEFT JOIN rule r ON r.id = f.rule
WHERE f.id = sqlc.arg(id);

-- name: ViewEvent :one
SELECT e.id, e.trigger_ref, coalesce(e.rule_ref, '')::text AS rule_ref, coalesce(e.source_ref, '')::text AS source_ref, e.created, e.payload,
       (m.event IS NOT NULL)::bool AS done, coalesce(m.rules, 0)::int AS rules, coalesce(m.matched, 0)::int AS matched,
       coalesce(m.failures, '{}')::text[] AS failures, m.at,
       (t.id IS NOT NULL)::bool AS trigger_there, coalesce(t.enabled OR NOT attune_honours('origin'), false)::bool AS trigger_enabled,
       (e.created < (SELECT g.since FROM event_matching g WHERE g.one))::bool AS before_matching
FROM event e
LEFT JOIN event_matched m ON m.event = e.id
LEFT JOIN trigger t ON t.ref = e.trigger_ref
WHERE e.id = sqlc.arg(id)
LIMIT 1;

-- name: ViewRules :many
-- Rules by reference, with the outcomes of their newest enforcements, at most recent of them.
SELECT r.id, r.ref, r.pack_ref, r.trigger_ref, r.action_ref, r.enabled, (r.action IS NOT NULL)::bool AS has_action,
       (t.id IS NOT NULL AND r.trigger IS NOT NULL)::bool AS has_trigger, coalesce(t.enabled OR NOT attune_honours('origin'), false)::bool AS trigger_enabled, r.conditions, r.action_params,
       r.created, r.updated, coalesce(r.label, '') AS label, coalesce(r.description, '')::text AS description, i.login AS owner,
       n.fired::int AS fired, n.disabled::int AS disabled, n.last
FROM rule r
LEFT JOIN trigger t ON t.ref = r.trigger_ref
LEFT JOIN identity i ON i.id = r.owner_identity
CROSS JOIN LATERAL (
    SELECT count(*) AS fired, count(*) FILTER (WHERE f.status = 'disabled') AS disabled, coalesce(max(f.created), 'epoch')::timestamptz AS last
    FROM (SELECT x.status, x.created FROM enforcement x WHERE x.rule = r.id AND x.event IS NOT NULL ORDER BY x.event DESC LIMIT sqlc.arg(recent)::int) f
) n
WHERE r.ref > sqlc.arg(after)::text
  AND (sqlc.arg(trigger)::text = '' OR r.trigger_ref = sqlc.arg(trigger)::text)
  AND (sqlc.arg(ref)::text = '' OR r.ref = sqlc.arg(ref)::text)
ORDER BY r.ref
LIMIT sqlc.arg(page)::int;

-- name: ViewEnforcementsOfEvent :many
SELECT f.id, coalesce(f.rule, 0)::bigint AS rule, f.rule_ref, f.trigger_ref, coalesce(f.event, 0)::bigint AS event, f.status::text AS status,
       coalesce(f.error, '')::text AS error, coalesce(f.note, '')::text AS note, f.created, f.resolved_at, f.config, f.condition::text AS condition, f.conditions,
       coalesce(x.id, 0)::bigint AS execution, coalesce(x.status::text, '')::text AS execution_status, coalesce(x.action_ref, '')::text AS action_ref
FROM enforcement f
LEFT JOIN LATERAL (
    SELECT e.id, e.status, e.action_ref FROM execution e
    WHERE e.enforcement = f.id AND e.parent IS NULL AND (e.config IS NULL OR NOT (e.config ? 'retry_of')) LIMIT 1) x ON true
WHERE f.event = sqlc.arg(event)::bigint
ORDER BY f.rule_ref, f.id
LIMIT sqlc.arg(page)::int;

-- name: ViewEnforcements :many
-- One page of a bounded number of enforcements below an id, the newest first.
SELECT f.id, coalesce(f.rule, 0)::bigint AS rule, f.rule_ref, f.trigger_ref, coalesce(f.event, 0)::bigint AS event, f.status::text AS status,
       coalesce(f.error, '')::text AS error, coalesce(f.note, '')::text AS note, f.created, f.resolved_at, f.config, f.condition::text AS condition, f.conditions,
       coalesce(x.id, 0)::bigint AS execution, coalesce(x.status::text, '')::text AS execution_status, coalesce(x.action_ref, '')::text AS action_ref
FROM (SELECT o.id, o.rule, o.rule_ref, o.trigger_ref, o.event, o.status, o.error, o.note, o.created, o.resolved_at, o.config,
             o.condition, o.conditions
      FROM enforcement o WHERE o.id < sqlc.arg(before)::bigint ORDER BY o.id DESC LIMIT sqlc.arg(scan)::int) f
LEFT JOIN LATERAL (
    SELECT e.id, e.status, e.action_ref FROM execution e
    WHERE e.enforcement = f.id AND e.parent IS NULL AND (e.config IS NULL OR NOT (e.config ? 'retry_of')) LIMIT 1) x ON true
WHERE (sqlc.arg(rule)::text = '' OR f.rule_ref = sqlc.arg(rule)::text)
  AND (sqlc.arg(status)::text = '' OR f.status::text = sqlc.arg(status)::text)
ORDER BY f.id DESC
LIMIT sqlc.arg(page)::int;

-- name: CountEnforcementsBelow :one
SELECT count(*)::int AS n, coalesce(min(w.id), 0)::bigint AS last
FROM (SELECT f.id FROM enforcement f WHERE f.id < sqlc.arg(before)::bigint ORDER BY f.id DESC LIMIT sqlc.arg(scan)::int) w;
