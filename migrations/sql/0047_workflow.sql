-- Where running workflows are.
--
-- workflow_execution.state is what Decide of the package workflow goes on from;
-- version counts the decisions and is repeated by every write, so that none is
-- lost. The published columns are written along with it. deadline is when the
-- workflow has run for longer than it may.
--
-- workflow_task_dispatch.settled says that the end of the child, or of its last
-- repetition, was drawn its consequences from.
--
-- workflow_item keeps the lists of tasks with items that are still to be started;
-- workflow_log what was decided, one row a version.

-- +goose Up
ALTER TABLE workflow_execution
    ADD COLUMN IF NOT EXISTS version  bigint NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS state    jsonb,
    ADD COLUMN IF NOT EXISTS deadline timestamptz;
ALTER TABLE workflow_task_dispatch
    ADD COLUMN IF NOT EXISTS settled boolean NOT NULL DEFAULT false;

CREATE INDEX IF NOT EXISTS attune_workflow_live ON workflow_execution (id)
    WHERE status NOT IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned');
CREATE INDEX IF NOT EXISTS attune_workflow_task_open ON workflow_task_dispatch (workflow_execution) WHERE NOT settled;

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
DROP TABLE workflow_log;
DROP TABLE workflow_item;
DROP INDEX attune_workflow_task_open;
DROP INDEX attune_workflow_live;
ALTER TABLE workflow_task_dispatch DROP COLUMN settled;
ALTER TABLE workflow_execution DROP COLUMN deadline, DROP COLUMN state, DROP COLUMN version;
