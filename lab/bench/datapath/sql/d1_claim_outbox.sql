DELETE FROM outbox WHERE id = ANY (ARRAY(
    SELECT id FROM outbox WHERE last_error = 'd1' ORDER BY id LIMIT 100 FOR UPDATE SKIP LOCKED))
RETURNING message_ids[1], routing_keys[1], bodies[1]
