-- Events and the rules that they fire.

-- name: ReadEvents :many
-- The time bounds the partitions that are searched for an id. before_matching is set for an event
-- that another engine may have matched.
SELECT e.id, e.trigger_ref, e.payload, e.rule, coalesce(e.rule_ref, '')::text AS rule_ref, e.created,
       coalesce(e.created < (SELECT m.since FROM event_matching m WHERE m.one), false)::bool AS before_matching,
       coalesce(o.depth, 0)::int AS depth, coalesce(o.execution, 0)::bigint AS origin
FROM event e
LEFT JOIN event_origin o ON o.event = e.id
WHERE e.id = ANY (sqlc.arg(ids)::bigint[]) AND e.created > now() - make_interval(secs => sqlc.arg(within)::float8)
ORDER BY e.id;

-- name: DeletedIDs :many
-- The ids of a table without a row that had one: the sequence is past them.
SELECT i.id::bigint AS id FROM (SELECT unnest(sqlc.arg(ids)::bigint[]) AS id) i
WHERE i.id <= coalesce(pg_sequence_last_value(pg_get_serial_sequence(sqlc.arg(of)::text, 'id')::regclass), 0);

-- name: FindRules :many
-- Rules that events of these triggers, or events for these rules, may fire. now is the time of
-- matching. On an adopted schema a disabled trigger fires its rules, as the published executor does.
SELECT r.id, r.ref, r.pack, r.action, r.action_ref, r.trigger_ref, r.conditions, r.action_params, r.created, now()::timestamptz AS now
FROM rule r
WHERE r.id = ANY (ARRAY(
        SELECT x.id FROM rule x WHERE x.trigger_ref = ANY (sqlc.arg(trigger_refs)::text[])
        UNION SELECT y.id FROM rule y WHERE y.id = ANY (sqlc.arg(ids)::bigint[])
        UNION SELECT z.id FROM rule z WHERE z.ref = ANY (sqlc.arg(refs)::text[])))
  AND r.enabled AND coalesce((SELECT t.enabled OR NOT attune_honours('origin') FROM trigger t WHERE t.ref = r.trigger_ref), true)
ORDER BY r.id;

-- name: RuleActions :many
SELECT a.id, a.ref, a.param_schema FROM action a
WHERE a.id = ANY (ARRAY(
    SELECT x.id FROM action x WHERE x.id = ANY (sqlc.arg(ids)::bigint[])
    UNION SELECT y.id FROM action y WHERE y.ref = ANY (sqlc.arg(refs)::text[])));

-- name: RulePacks :many
SELECT p.id, p.ref, p.config, p.conf_schema FROM pack p WHERE p.id = ANY (sqlc.arg(ids)::bigint[]);

-- name: MarkEventsMatched :many
-- Marks events as matched and returns the newly marked ones. In order, so that replicas with the
-- same events wait for each other without a deadlock.
INSERT INTO event_matched (event, rules, matched, failures)
SELECT m.event, m.rules, m.matched, CASE WHEN m.failures = '' THEN '{}' ELSE string_to_array(m.failures, E'\n') END
FROM (
    SELECT unnest(sqlc.arg(events)::bigint[]) AS event, unnest(sqlc.arg(rules)::int[]) AS rules,
           unnest(sqlc.arg(matched)::int[]) AS matched, unnest(sqlc.arg(failures)::text[]) AS failures
) m
ORDER BY m.event
ON CONFLICT (event) DO NOTHING
RETURNING event;

-- name: InsertEnforcements :many
-- One enforcement for a rule and an event, whatever program creates it. A deleted rule gets none.
-- payloads has one entry an event, to which position points.
INSERT INTO enforcement (rule, rule_ref, trigger_ref, config, event, status, payload, condition, conditions, resolved_at, error, note)
SELECT r.id, r.ref, r.trigger_ref, m.config::jsonb, m.event, CASE WHEN m.error = '' THEN 'created' ELSE 'disabled' END::enforcement_status_enum,
       (sqlc.arg(payloads)::text[])[m.position]::jsonb, m.condition::enforcement_condition_enum, r.conditions,
       CASE WHEN m.error <> '' THEN now() END, nullif(m.error, ''), nullif(m.note, '')
FROM (
    SELECT unnest(sqlc.arg(events)::bigint[]) AS event, unnest(sqlc.arg(rules)::bigint[]) AS rule,
           unnest(sqlc.arg(positions)::int[]) AS position, unnest(sqlc.arg(configs)::text[]) AS config,
           unnest(sqlc.arg(conditions)::text[]) AS condition, unnest(sqlc.arg(errors)::text[]) AS error,
           unnest(sqlc.arg(notes)::text[]) AS note
) m
JOIN rule r ON r.id = m.rule
ORDER BY m.event, m.rule
ON CONFLICT (rule, event) WHERE rule IS NOT NULL AND event IS NOT NULL DO NOTHING
RETURNING id, rule::bigint AS rule, event::bigint AS event, status;

-- name: CreatedEnforcements :many
-- Pending enforcements of these events.
SELECT f.id, f.rule, f.rule_ref, f.event::bigint AS event, f.trigger_ref, now()::timestamptz AS now
FROM enforcement f
WHERE f.event = ANY (sqlc.arg(events)::bigint[]) AND f.status = 'created'
ORDER BY f.id;

-- name: FindForgottenEvents :one
-- Events that were never matched, one window of ids at a time. recent is the smallest id in the
-- window that is younger than settle seconds, 0 for none. An event from before matching began,
-- whose matching another engine did not record, has lost its message if it has no enforcement
-- although a rule existed for it then. If such a rule has changed since, that is undecidable, and
-- the event is left alone.
WITH w AS MATERIALIZED (
    SELECT e.id, e.trigger_ref, e.created, e.created < (SELECT m.since FROM event_matching m WHERE m.one) AS before
    FROM event e
    WHERE e.id > sqlc.arg(after)::bigint
      AND e.created > now() - make_interval(secs => sqlc.arg(horizon)::float8)
      AND e.created < now() - make_interval(secs => sqlc.arg(older)::float8)
    ORDER BY e.id
    LIMIT sqlc.arg(window_size)::int
)
SELECT coalesce(max(w.id), 0)::bigint AS last, count(*)::int AS scanned,
       coalesce(min(w.id) FILTER (WHERE w.created > now() - make_interval(secs => sqlc.arg(settle)::float8)), 0)::bigint AS recent,
       coalesce(array_agg(w.id ORDER BY w.id) FILTER (
           WHERE NOT EXISTS (SELECT FROM event_matched d WHERE d.event = ANY (ARRAY[w.id]))
             AND (NOT w.before
                  OR NOT EXISTS (SELECT FROM enforcement f WHERE f.event = w.id)
                     AND coalesce((SELECT bool_and(r.updated <= w.created) FROM rule r
                                   WHERE r.trigger_ref = w.trigger_ref AND r.enabled AND r.created <= w.created), false))), '{}')::bigint[] AS ids
FROM w;

-- name: CountLateEvents :one
-- Unmatched events with a rule that are no longer matched: they are too old, or they are from
-- before matching began and their rule has changed since. Bounded; keep is how far back matching is
-- recorded.
SELECT count(*)::int AS events, coalesce(min(x.id), 0)::bigint AS first, coalesce(max(x.id), 0)::bigint AS last
FROM (
    SELECT e.id
    FROM (
        SELECT v.id, v.created, v.trigger_ref FROM event v
        WHERE v.created > now() - make_interval(secs => sqlc.arg(keep)::float8)
          AND v.created < now() - make_interval(secs => sqlc.arg(older)::float8)
        ORDER BY v.id DESC LIMIT sqlc.arg(bound)::int
    ) e
    CROSS JOIN LATERAL (
        SELECT bool_and(r.updated <= e.created) AS unchanged FROM rule r
        WHERE r.trigger_ref = e.trigger_ref AND r.enabled AND r.created <= e.created
    ) k
    WHERE k.unchanged IS NOT NULL
      AND (e.created < now() - make_interval(secs => sqlc.arg(horizon)::float8)
           OR NOT k.unchanged AND e.created < (SELECT m.since FROM event_matching m WHERE m.one))
      AND NOT EXISTS (SELECT FROM event_matched d WHERE d.event = ANY (ARRAY[e.id]))
      AND NOT EXISTS (SELECT FROM enforcement f WHERE f.event = e.id)
) x;

-- name: FindForgottenEnforcements :many
-- Of any age: each has one execution at most, whatever program created it.
SELECT f.id
FROM enforcement f
WHERE f.status = 'created' AND f.id > sqlc.arg(after)::bigint
  AND f.created < now() - make_interval(secs => sqlc.arg(older)::float8)
ORDER BY f.id
LIMIT sqlc.arg(page)::int;

-- name: PruneEventMatched :execrows
-- Ids of events grow with time: the oldest are read, up to the first that is young enough.
DELETE FROM event_matched m
WHERE m.event = ANY (ARRAY(
        SELECT t.event FROM (SELECT o.event, o.at < now() - make_interval(secs => sqlc.arg(older)::float8) AS old
                             FROM event_matched o ORDER BY o.event LIMIT sqlc.arg(page)::int) t
        WHERE t.old));

-- name: PruneEventOrigins :execrows
-- Deletes the origins of events before the oldest one that is still marked as matched.
DELETE FROM event_origin o
WHERE o.event = ANY (ARRAY(
        SELECT x.event FROM event_origin x
        WHERE x.event < (SELECT min(t.event) FROM event_matched t)
        ORDER BY x.event LIMIT sqlc.arg(page)::int));

-- name: RecordEventOrigins :exec
-- Events that executions have emitted are one rule deeper than the event that caused the execution.
-- An execution is caused by the enforcement of its own row, or of the execution that it repeats or
-- is a part of.
WITH RECURSIVE up AS (
    SELECT m.event, e.id AS origin, e.enforcement, coalesce(e.original_execution, e.parent) AS above, 1 AS n
    FROM (SELECT unnest(sqlc.arg(events)::bigint[]) AS event, unnest(sqlc.arg(executions)::bigint[]) AS execution) m
    JOIN execution e ON e.id = m.execution
    UNION ALL
    SELECT u.event, u.origin, p.enforcement, coalesce(p.original_execution, p.parent), u.n + 1
    FROM up u JOIN execution p ON p.id = u.above
    WHERE u.enforcement IS NULL AND u.n < 100
)
INSERT INTO event_origin (event, execution, depth)
SELECT u.event, u.origin, max(CASE WHEN f.id IS NULL THEN 0 ELSE coalesce(o.depth, 0) + 1 END)
FROM up u
LEFT JOIN enforcement f ON f.id = u.enforcement
LEFT JOIN event_origin o ON o.event = f.event
GROUP BY u.event, u.origin
ON CONFLICT (event) DO NOTHING;

-- name: TriggersByRef :many
SELECT t.id, t.ref, (t.enabled OR NOT attune_honours('origin'))::bool AS enabled, t.out_schema FROM trigger t WHERE t.ref = ANY (sqlc.arg(refs)::text[]) ORDER BY t.id;

-- name: RuleByRef :one
SELECT r.id, r.trigger_ref FROM rule r WHERE r.ref = sqlc.arg(ref);

-- name: InsertEvents :many
-- The rows get ascending ids in the order of the arrays. An empty payload is stored as NULL, and so
-- is rule 0.
INSERT INTO event (trigger, trigger_ref, payload, source_ref, rule, rule_ref)
SELECT m.trigger, m.ref, nullif(m.payload, '')::jsonb, sqlc.arg(source_ref)::text, nullif(m.rule, 0), nullif(m.rule_ref, '')
FROM (
    SELECT unnest(sqlc.arg(triggers)::bigint[]) AS trigger, unnest(sqlc.arg(refs)::text[]) AS ref,
           unnest(sqlc.arg(payloads)::text[]) AS payload, unnest(sqlc.arg(rules)::bigint[]) AS rule,
           unnest(sqlc.arg(rule_refs)::text[]) AS rule_ref
) m
RETURNING id, created;
