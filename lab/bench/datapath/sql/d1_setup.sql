-- The queues of all actions.
INSERT INTO execution_admission_state (action_id, max_concurrent)
SELECT id, $1::int FROM action WHERE pack_ref = 'bench'
