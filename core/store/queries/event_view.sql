-- Events, rules and enforcements, for users. Every query is bounded.

-- name: ViewEvents :many
-- One page of a bounded number of events below an id, the newest first.
SELECT w.id, w.trigger_ref, coalesce(w.rule_ref, '')::text AS rule_ref, coalesce(w.source_ref, '')::text AS source, w.created, m.at AS matched,
       coalesce(m.rules, 0)::int AS compared, coalesce(m.matched, 0)::int AS fired, coalesce(m.failures, '{}')::text[] AS failures,
       (SELECT count(*) FROM enforcement f WHERE f.event = w.id AND f.status = 'disabled')::int AS disabled
FROM (
    SELECT e.id, e.trigger_ref, e.rule_ref, e.source_ref, e.created
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
SELECT e.id, e.trigger_ref, coalesce(e.rule_ref, '')::text AS rule_ref, coalesce(e.source_ref, '')::text AS source, e.created, e.payload,
       m.at AS matched, coalesce(m.rules, 0)::int AS compared, coalesce(m.matched, 0)::int AS fired, coalesce(m.failures, '{}')::text[] AS failures,
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
       (t.id IS NOT NULL AND r.trigger IS NOT NULL)::bool AS has_trigger, coalesce(t.enabled OR NOT attune_honours('origin'), false)::bool AS trigger_enabled, r.conditions, r.action_params AS params,
       r.created, r.updated, coalesce(r.label, '') AS label, coalesce(r.description, '')::text AS description, coalesce(i.login, '')::text AS owner,
       n.fired::int AS fired, n.disabled::int AS disabled, n.last_fired
FROM rule r
LEFT JOIN trigger t ON t.ref = r.trigger_ref
LEFT JOIN identity i ON i.id = r.owner_identity
CROSS JOIN LATERAL (
    SELECT count(*) AS fired, count(*) FILTER (WHERE f.status = 'disabled') AS disabled, max(f.created)::timestamptz AS last_fired
    FROM (SELECT x.status, x.created FROM enforcement x WHERE x.rule = r.id AND x.event IS NOT NULL ORDER BY x.event DESC LIMIT sqlc.arg(recent)::int) f
) n
WHERE r.ref > sqlc.arg(after)::text
  AND (sqlc.arg(trigger)::text = '' OR r.trigger_ref = sqlc.arg(trigger)::text)
  AND (sqlc.arg(ref)::text = '' OR r.ref = sqlc.arg(ref)::text)
ORDER BY r.ref
LIMIT sqlc.arg(page)::int;

-- name: ViewEnforcements :many
-- One page of enforcements, the newest first: of an event, or of a bounded number below an id.
SELECT f.id, coalesce(f.rule, 0)::bigint AS rule, f.rule_ref, f.trigger_ref, coalesce(f.event, 0)::bigint AS event, f.status::text AS status,
       coalesce(f.error, '')::text AS error, coalesce(f.note, '')::text AS note, f.created, f.resolved_at, f.config, f.condition::text AS condition, f.conditions,
       coalesce(x.id, 0)::bigint AS execution, coalesce(x.status::text, '')::text AS execution_status, coalesce(x.action_ref, '')::text AS action_ref
FROM (
    (SELECT o.id, o.rule, o.rule_ref, o.trigger_ref, o.event, o.status, o.error, o.note, o.created, o.resolved_at, o.config,
            o.condition, o.conditions
     FROM enforcement o
     WHERE sqlc.arg(event)::bigint = 0 AND o.id < sqlc.arg(before)::bigint ORDER BY o.id DESC LIMIT sqlc.arg(scan)::int)
    UNION ALL
    (SELECT o.id, o.rule, o.rule_ref, o.trigger_ref, o.event, o.status, o.error, o.note, o.created, o.resolved_at, o.config,
            o.condition, o.conditions
     FROM enforcement o WHERE sqlc.arg(event)::bigint <> 0 AND o.event = sqlc.arg(event)::bigint LIMIT sqlc.arg(scan)::int)) f
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
