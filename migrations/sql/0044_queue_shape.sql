-- attune_queue_shape is by which parameters the executions of an action wait in
-- lines of their own: those of its own concurrency policy; without one, all
-- that the limits it shares with others are counted by, so that a group that
-- has to wait keeps no other waiting. The engine composes the same in code.

-- +goose Up
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_queue_shape(action_id bigint) RETURNS text[]
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
DECLARE
    own policy;
BEGIN
    SELECT p.* INTO own FROM policy p WHERE p.action = action_id AND p.kind = 'concurrency'
    ORDER BY p.created DESC, p.id DESC LIMIT 1;
    RETURN ARRAY(
        SELECT DISTINCT k COLLATE "C"
        FROM (
            SELECT unnest(own.parameters) AS k
            UNION ALL
            SELECT unnest(p.parameters) FROM policy p
            WHERE own.id IS NULL AND p.action = action_id AND p.kind <> 'concurrency'
            UNION ALL
            SELECT unnest(p.parameters) FROM policy p JOIN action a ON a.id = action_id
            WHERE own.id IS NULL AND p.action IS NULL AND (p.pack = a.pack OR p.pack IS NULL)
              AND (p.kind <> 'concurrency' OR p.id = (
                  SELECT n.id FROM policy n
                  WHERE n.action IS NULL AND n.pack IS NOT DISTINCT FROM p.pack AND n.kind = 'concurrency'
                  ORDER BY n.created DESC, n.id DESC LIMIT 1))
        ) u
        ORDER BY 1);
END
$$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION attune_queue_shape(bigint);
