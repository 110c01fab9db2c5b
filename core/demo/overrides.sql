-- What operators have said of the queues of an action: paused, and a limit in place of
-- that of its policy (0: none).
SELECT coalesce(bool_or(s.paused), false), coalesce(min(s.limit_override), 0)
FROM execution_admission_state s JOIN action a ON a.id = s.action_id
WHERE a.ref = $1
