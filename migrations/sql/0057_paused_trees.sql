-- attune_paused_above is the nearest workflow above an execution that is paused: what is
-- nested in it starts nothing either. NULL if there is none.

-- +goose Up
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_paused_above(id bigint) RETURNS bigint
LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
    WITH RECURSIVE up AS (
        SELECT e.parent, 1 AS n FROM execution e
        WHERE e.id = $1 AND e.parent IS NOT NULL AND jsonb_typeof(e.workflow_task) = 'object'
        UNION ALL
        SELECT x.parent, u.n + 1
        FROM up u CROSS JOIN LATERAL (
            SELECT y.parent FROM execution y
            WHERE y.id = u.parent AND y.parent IS NOT NULL AND jsonb_typeof(y.workflow_task) = 'object' OFFSET 0) x
        WHERE u.n < 32
    )
    SELECT u.parent FROM up u
    WHERE EXISTS (SELECT FROM workflow_execution w WHERE w.execution = u.parent AND w.paused AND w.open)
    ORDER BY u.n LIMIT 1
$$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION attune_paused_above(bigint);
