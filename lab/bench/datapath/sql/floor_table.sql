-- A lean execution: no triggers, no history, no index but the key.
CREATE TABLE floor (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    action  bigint NOT NULL,
    status  text NOT NULL DEFAULT 'requested',
    config  jsonb,
    result  jsonb,
    created timestamptz NOT NULL DEFAULT now(),
    updated timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50)
