-- Work queues: items that others add, leased in batches to executions.

-- +goose Up
CREATE TABLE work_queue (
    id              bigserial PRIMARY KEY,
    ref             text NOT NULL UNIQUE,
    pack            bigint REFERENCES pack (id) ON DELETE CASCADE,
    pack_ref        text,
    label           text NOT NULL,
    description     text,
    action          bigint REFERENCES action (id) ON DELETE SET NULL,
    action_ref      text NOT NULL,
    action_params   jsonb NOT NULL DEFAULT '{}',
    enabled         boolean NOT NULL DEFAULT true,
    update_strategy work_queue_update_strategy_enum NOT NULL DEFAULT 'immutable',
    batch_mode      work_queue_batch_mode_enum NOT NULL DEFAULT 'single',
    batch_size      jsonb,
    concurrency     jsonb,
    retry_limit     jsonb,
    created         timestamptz NOT NULL DEFAULT now(),
    updated         timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE work_queue_item (
    id            bigserial PRIMARY KEY,
    queue         bigint NOT NULL REFERENCES work_queue (id) ON DELETE CASCADE,
    item_key      text,
    payload       jsonb NOT NULL DEFAULT '{}',
    priority      integer NOT NULL DEFAULT 0,
    status        work_queue_item_status_enum NOT NULL DEFAULT 'queued',
    attempt_count integer NOT NULL DEFAULT 0,
    lease_until   timestamptz,
    execution     bigint REFERENCES execution (id) ON DELETE SET NULL,
    summary       text,
    error         jsonb,
    created       timestamptz NOT NULL DEFAULT now(),
    updated       timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX idx_work_queue_item_lease ON work_queue_item (queue, priority DESC, created, id)
    WHERE status IN ('queued', 'retry');

CREATE TABLE work_queue_dispatch (
    id        bigserial PRIMARY KEY,
    queue     bigint NOT NULL REFERENCES work_queue (id) ON DELETE CASCADE,
    execution bigint NOT NULL UNIQUE REFERENCES execution (id) ON DELETE CASCADE,
    status    work_queue_dispatch_status_enum NOT NULL DEFAULT 'leased',
    item_ids  bigint[] NOT NULL DEFAULT '{}',
    created   timestamptz NOT NULL DEFAULT now(),
    updated   timestamptz NOT NULL DEFAULT now()
);

-- +goose Down
DROP TABLE work_queue_dispatch;
DROP TABLE work_queue_item;
DROP TABLE work_queue;
