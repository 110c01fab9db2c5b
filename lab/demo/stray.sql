-- Another service requests an action by its ref.
INSERT INTO execution (action_ref, status, config) VALUES ($1, 'requested', $2::jsonb) RETURNING id
