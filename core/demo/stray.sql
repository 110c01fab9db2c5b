-- Another service requests an action that it knows by its ref only.
INSERT INTO execution (action_ref, status, config) VALUES ($1, 'requested', $2::jsonb) RETURNING id
