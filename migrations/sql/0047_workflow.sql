-- Where running workflows are.
--
-- workflow_execution.state is what Decide of the package workflow goes on from;
-- version counts the decisions and is repeated by every write, so that none is
-- lost. The published columns are written along with it. deadline is when the
-- workflow has run for longer than it may. open is true until the end of the
-- workflow was drawn its consequences from, whoever has ended it.
--
-- Rows from before are closed and settled, so that none is rewritten here; those of
-- workflows on their way are opened by 0052.
--
-- workflow_source is the definition that a workflow was started with, whatever
-- becomes of workflow_definition meanwhile; equal ones are kept once.
--
-- workflow_task_dispatch.settled says that the end of the child, or of its last
-- repetition, was drawn its consequences from.
--
-- workflow_item keeps the lists of tasks with items that are still to be started;
-- workflow_log what was decided, one row a version.

-- +goose Up
-- No transaction holds two busy tables: each part is committed, and a repetition, Down too, passes over it.
CREATE TABLE IF NOT EXISTS workflow_source (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    digest       text NOT NULL UNIQUE,
    definition   jsonb NOT NULL,
    param_schema jsonb
);
ALTER TABLE workflow_execution
    ADD COLUMN IF NOT EXISTS version  bigint NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS state    jsonb,
    ADD COLUMN IF NOT EXISTS source   bigint REFERENCES workflow_source (id),
    ADD COLUMN IF NOT EXISTS deadline timestamptz,
    ADD COLUMN IF NOT EXISTS open     boolean NOT NULL DEFAULT false;
ALTER TABLE workflow_execution ALTER COLUMN open SET DEFAULT true;
COMMIT AND CHAIN;
ALTER TABLE workflow_task_dispatch
    ADD COLUMN IF NOT EXISTS settled boolean NOT NULL DEFAULT true;
ALTER TABLE workflow_task_dispatch ALTER COLUMN settled SET DEFAULT false;

COMMIT AND CHAIN;
CREATE TABLE IF NOT EXISTS workflow_item (
    workflow_execution bigint NOT NULL REFERENCES workflow_execution (id) ON DELETE CASCADE,
    task_name          text NOT NULL,
    index              integer NOT NULL,
    item               jsonb NOT NULL,
    PRIMARY KEY (workflow_execution, task_name, index)
);

CREATE TABLE IF NOT EXISTS workflow_log (
    workflow_execution bigint NOT NULL REFERENCES workflow_execution (id) ON DELETE CASCADE,
    version            bigint NOT NULL,
    at                 timestamptz NOT NULL DEFAULT now(),
    lines              text[] NOT NULL DEFAULT '{}',
    PRIMARY KEY (workflow_execution, version)
);

-- +goose Down
-- Foreign keys go first: dropping a table waits for the disk with its locks held.
ALTER TABLE IF EXISTS workflow_log DROP CONSTRAINT IF EXISTS workflow_log_workflow_execution_fkey;
COMMIT AND CHAIN;
DROP TABLE IF EXISTS workflow_log;
COMMIT AND CHAIN;
ALTER TABLE IF EXISTS workflow_item DROP CONSTRAINT IF EXISTS workflow_item_workflow_execution_fkey;
COMMIT AND CHAIN;
DROP TABLE IF EXISTS workflow_item;
COMMIT AND CHAIN;
ALTER TABLE workflow_task_dispatch DROP COLUMN IF EXISTS settled;
COMMIT AND CHAIN;
ALTER TABLE workflow_execution
    DROP COLUMN IF EXISTS open, DROP COLUMN IF EXISTS deadline, DROP COLUMN IF EXISTS source, DROP COLUMN IF EXISTS state,
    DROP COLUMN IF EXISTS version;
DROP TABLE IF EXISTS workflow_source;
