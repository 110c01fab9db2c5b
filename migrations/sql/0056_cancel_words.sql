-- attune_cancel_words is what a result says of who asked for the end of an execution,
-- when and why: an empty object when nobody has said so.

-- +goose Up
CREATE OR REPLACE FUNCTION attune_cancel_words(id bigint) RETURNS jsonb
LANGUAGE sql STABLE SET search_path FROM CURRENT
RETURN coalesce((
    SELECT jsonb_build_object('message', coalesce(n.reason, 'cancelled on request'), 'cancelled_by', n.actor, 'cancelled_at', n.at)
    FROM execution_cancel n WHERE n.execution = $1 AND n.actor IS NOT NULL), '{}'::jsonb);

-- +goose Down
DROP FUNCTION attune_cancel_words(bigint);
