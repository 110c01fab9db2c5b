-- The overrides of an action's queues: paused, and a limit in place of its policy's (0: none).
SELECT coalesce(bool_or(s.paused), false), coalesce(min(s.limit_override), 0)
FROM execution_admission_state s JOIN action a ON a.id = s.action_id
WHERE a.ref = $1
