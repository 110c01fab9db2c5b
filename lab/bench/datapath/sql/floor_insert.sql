INSERT INTO floor (action, config) VALUES ($1, '{}') RETURNING id
