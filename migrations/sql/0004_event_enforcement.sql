-- What happened, and which rules answered it. Events are partitioned by time
-- and never updated; everything later than the made partitions lands in the
-- default one, so an insert never fails for want of a partition.

-- +goose Up
CREATE TABLE event (
    id          bigserial NOT NULL,
    trigger     bigint REFERENCES trigger (id) ON DELETE SET NULL,
    trigger_ref text NOT NULL,
    config      jsonb,
    payload     jsonb,
    source      bigint REFERENCES sensor (id) ON DELETE SET NULL,
    source_ref  text,
    rule        bigint REFERENCES rule (id) ON DELETE SET NULL,
    rule_ref    text,
    created     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (id, created)
) PARTITION BY RANGE (created);
CREATE TABLE event_default PARTITION OF event DEFAULT;
CREATE INDEX idx_event_trigger_ref ON event (trigger_ref, created DESC);

CREATE TABLE enforcement (
    id          bigserial PRIMARY KEY,
    rule        bigint REFERENCES rule (id) ON DELETE SET NULL,
    rule_ref    text NOT NULL,
    trigger_ref text NOT NULL,
    config      jsonb,
    event       bigint,
    status      enforcement_status_enum NOT NULL DEFAULT 'created',
    payload     jsonb NOT NULL,
    condition   enforcement_condition_enum NOT NULL DEFAULT 'all',
    conditions  jsonb NOT NULL DEFAULT '[]',
    created     timestamptz NOT NULL DEFAULT now(),
    resolved_at timestamptz
);
CREATE UNIQUE INDEX uq_enforcement_rule_event ON enforcement (rule, event)
    WHERE rule IS NOT NULL AND event IS NOT NULL;
CREATE INDEX idx_enforcement_event ON enforcement (event);

-- +goose Down
DROP TABLE enforcement;
DROP TABLE event;
