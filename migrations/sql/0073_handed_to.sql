-- attune_handed_to is the executions that a worker was handed and that may not have ended.
-- The other engine of an existing installation hands over without a slot what no policy limits.

-- +goose Up
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_handed_to(handed_to bigint) RETURNS SETOF bigint
LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
    SELECT h.execution FROM execution_holder h WHERE h.worker = handed_to
    UNION
    SELECT e.id FROM execution e
    WHERE EXISTS (SELECT FROM attune_schema_origin o WHERE o.origin = 'adopted')
      AND e.worker = handed_to AND e.status IN ('scheduled', 'running', 'canceling')
$$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION IF EXISTS attune_handed_to(bigint);
