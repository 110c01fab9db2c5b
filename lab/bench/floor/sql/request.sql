-- Executions and the row of their messages; a body is its two parts around the id.
WITH e AS (
    INSERT INTO execution (action, action_ref)
    SELECT $1::bigint, $2::text FROM generate_series(1, cardinality($3::text[]))
    RETURNING id
), o AS (
    INSERT INTO outbox (message_ids, exchanges, routing_keys, message_types, bodies, traces)
    SELECT $3::text[], array_agg($4::text), array_agg($5::text), array_agg($6::text),
           array_agg(convert_to($7::text || e.id || $8::text, 'UTF8') ORDER BY e.id), array_agg(''::text)
    FROM e
    RETURNING id
)
SELECT e.id, o.id FROM e CROSS JOIN o ORDER BY e.id
