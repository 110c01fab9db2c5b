-- attune_depth is in how many other executions one is nested, counted up to most.

-- +goose Up
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_depth(id bigint, most integer) RETURNS integer
LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
    WITH RECURSIVE up AS (
        SELECT e.parent, 0 AS n FROM execution e WHERE e.id = $1
        UNION ALL
        SELECT x.parent, u.n + 1
        FROM up u CROSS JOIN LATERAL (SELECT y.parent FROM execution y WHERE y.id = u.parent OFFSET 0) x
        WHERE u.n < $2
    )
    SELECT max(u.n) FROM up u
$$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION attune_depth(bigint, integer);
