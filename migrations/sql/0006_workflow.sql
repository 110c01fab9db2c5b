-- The state of a running workflow and the identity of each task it started.

-- +goose Up
CREATE TABLE workflow_execution (
    id              bigserial PRIMARY KEY,
    execution       bigint NOT NULL REFERENCES execution (id) ON DELETE CASCADE,
    workflow_def    bigint NOT NULL REFERENCES workflow_definition (id) ON DELETE CASCADE,
    current_tasks   text[] DEFAULT '{}',
    completed_tasks text[] DEFAULT '{}',
    failed_tasks    text[] DEFAULT '{}',
    skipped_tasks   text[] DEFAULT '{}',
    variables       jsonb DEFAULT '{}',
    task_graph      jsonb NOT NULL,
    status          execution_status_enum NOT NULL DEFAULT 'requested',
    error_message   text,
    paused          boolean NOT NULL DEFAULT false,
    pause_reason    text,
    created         timestamptz NOT NULL DEFAULT now(),
    updated         timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX uq_workflow_execution_execution ON workflow_execution (execution);

CREATE TABLE workflow_task_dispatch (
    id                 bigserial PRIMARY KEY,
    workflow_execution bigint NOT NULL REFERENCES workflow_execution (id) ON DELETE CASCADE,
    task_name          text NOT NULL,
    task_index         integer,
    execution_id       bigint REFERENCES execution (id) ON DELETE CASCADE,
    created            timestamptz NOT NULL DEFAULT now(),
    updated            timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX uq_workflow_task_dispatch_identity
    ON workflow_task_dispatch (workflow_execution, task_name, (COALESCE(task_index, -1)));
CREATE INDEX idx_workflow_task_dispatch_execution ON workflow_task_dispatch (execution_id);

-- +goose Down
DROP TABLE workflow_task_dispatch;
DROP TABLE workflow_execution;
