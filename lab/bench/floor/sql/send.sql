INSERT INTO outbox (message_ids, exchanges, routing_keys, message_types, bodies, traces) VALUES ($1, $2, $3, $4, $5, $6) RETURNING id
