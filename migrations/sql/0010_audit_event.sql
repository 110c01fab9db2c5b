-- Who did what, with which outcome; partitioned by time.

-- +goose Up
CREATE TABLE audit_event (
    id          bigserial NOT NULL,
    created     timestamptz NOT NULL DEFAULT now(),
    category    audit_category_enum NOT NULL,
    action      text NOT NULL,
    outcome     audit_outcome_enum NOT NULL DEFAULT 'success',
    identity    bigint,
    entity_type text,
    entity_id   bigint,
    entity_ref  text,
    details     jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (id, created)
) PARTITION BY RANGE (created);
CREATE TABLE audit_event_default PARTITION OF audit_event DEFAULT;
CREATE INDEX idx_audit_event_entity ON audit_event (entity_type, entity_id, created DESC);

-- +goose Down
DROP TABLE audit_event;
