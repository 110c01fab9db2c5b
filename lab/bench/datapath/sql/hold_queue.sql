-- Holds a queue as an operator's transaction does.
SELECT FROM execution_admission_state WHERE id = (SELECT id FROM execution_admission_state ORDER BY random() LIMIT 1) FOR UPDATE
