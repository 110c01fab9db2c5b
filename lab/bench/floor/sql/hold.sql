INSERT INTO execution_holder (execution, state_id, worker, attempt, granted_at) SELECT unnest($1::bigint[]), $2, $3, 1, now()
