INSERT INTO outbox (message_ids, exchanges, routing_keys, message_types, bodies, traces, last_error)
VALUES (ARRAY[$1::text], ARRAY[$2::text], ARRAY[$3::text], ARRAY[$4::text], ARRAY[$5::bytea], '{""}', 'd1')
