-- attune_schema_needs says which programs may run on the schema. A migration after which older programs
-- fail adds a row in the same transaction, and its Down deletes the row. All other migrations keep older
-- programs running, and add none.

-- +goose Up
CREATE TABLE attune_schema_needs (
    version bigint PRIMARY KEY,                              -- the migration that adds the row
    least   bigint NOT NULL CHECK (least BETWEEN 1 AND version), -- the migration that a program must know
    program text   NOT NULL                                  -- the first release that knows it
);
-- 0072 drops a column of execution.
INSERT INTO attune_schema_needs (version, least, program) VALUES (72, 72, '0.9.0');

-- +goose Down
DROP TABLE IF EXISTS attune_schema_needs;
