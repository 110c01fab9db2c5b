-- What tells whether workers are there, what was decided about work that they
-- did not do, and the alerts that were raised.
--
-- worker.heartbeat_seen is when the newest heartbeat was written, by the clock of
-- the database: last_heartbeat is by the worker's own, which may lie, or be set
-- back an hour. Who writes heartbeat_seen along with a heartbeat has the last word.
-- deactivated_at says that the heartbeat monitor has marked the worker inactive,
-- and not the worker itself; so it may also mark it active again.
--
-- worker_probe is what the newest look at a worker found. lost_work has a row for
-- each decision of the engine about work that a worker did not do.

-- +goose Up
ALTER TABLE worker
    ADD COLUMN IF NOT EXISTS heartbeat_seen timestamptz,
    ADD COLUMN IF NOT EXISTS deactivated_at timestamptz;

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_heartbeat_seen() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF NEW.last_heartbeat IS NULL THEN
        NEW.heartbeat_seen := NULL;
    ELSIF TG_OP = 'INSERT' THEN
        NEW.heartbeat_seen := coalesce(NEW.heartbeat_seen, now());
    ELSIF NEW.last_heartbeat IS DISTINCT FROM OLD.last_heartbeat AND NEW.heartbeat_seen IS NOT DISTINCT FROM OLD.heartbeat_seen THEN
        NEW.heartbeat_seen := now();
    END IF;
    RETURN NEW;
END
$$;
-- +goose StatementEnd
CREATE OR REPLACE TRIGGER attune_10_heartbeat_seen BEFORE INSERT OR UPDATE OF last_heartbeat ON worker
    FOR EACH ROW EXECUTE FUNCTION attune_heartbeat_seen();
UPDATE worker SET heartbeat_seen = least(last_heartbeat, now()) WHERE last_heartbeat IS NOT NULL AND heartbeat_seen IS NULL;

-- attune_task_timeout is how many seconds a task of a workflow may run, as its
-- definition says; NULL when it does not, as one that is not above zero. What is
-- beyond ten years is ten years.
CREATE OR REPLACE FUNCTION attune_task_timeout(task jsonb) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN jsonb_typeof(task -> 'timeout_seconds') = 'number' AND (task ->> 'timeout_seconds')::numeric > 0
            THEN least((task ->> 'timeout_seconds')::numeric, 315360000)::double precision END;

CREATE TABLE IF NOT EXISTS worker_probe (
    worker        bigint PRIMARY KEY REFERENCES worker (id) ON DELETE CASCADE,
    at            timestamptz NOT NULL DEFAULT now(),
    verdict       text NOT NULL,
    reason        text NOT NULL DEFAULT '',
    since         timestamptz NOT NULL DEFAULT now(),
    health        text NOT NULL DEFAULT 'unknown',
    health_reason text NOT NULL DEFAULT '',
    rtt_ms        double precision,
    queue_exists  boolean,
    consumers     integer,
    ready         integer,
    oldest        timestamptz,
    failures      integer NOT NULL DEFAULT 0,
    skew_seconds  double precision,
    replica       uuid,
    details       jsonb NOT NULL DEFAULT '{}'
) WITH (fillfactor = 50);

CREATE TABLE IF NOT EXISTS lost_work (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at          timestamptz NOT NULL DEFAULT now(),
    cause       text NOT NULL,
    outcome     text NOT NULL,
    execution   bigint NOT NULL,
    attempt     integer NOT NULL,
    action_ref  text NOT NULL,
    worker      bigint,
    age_seconds double precision
);
CREATE INDEX IF NOT EXISTS attune_lost_work_at ON lost_work (at);

ALTER TABLE dead_letter
    ADD COLUMN IF NOT EXISTS correlation_id text,
    ADD COLUMN IF NOT EXISTS action_ref text,
    ADD COLUMN IF NOT EXISTS attempt integer,
    ADD COLUMN IF NOT EXISTS died timestamptz,
    ADD COLUMN IF NOT EXISTS detail text;
CREATE INDEX IF NOT EXISTS attune_dead_letter_created ON dead_letter (created);

CREATE TABLE IF NOT EXISTS alert (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    rule     text NOT NULL,
    target   text NOT NULL DEFAULT '',
    severity text NOT NULL,
    summary  text NOT NULL,
    hint     text NOT NULL DEFAULT '',
    value    double precision NOT NULL,
    since    timestamptz NOT NULL DEFAULT now(),
    fired    timestamptz,
    cleared  timestamptz,
    seen     timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX IF NOT EXISTS attune_alert_open ON alert (rule, target) WHERE cleared IS NULL;
CREATE INDEX IF NOT EXISTS attune_alert_since ON alert (since);

-- +goose Down
DROP TABLE alert;
DROP INDEX attune_dead_letter_created;
ALTER TABLE dead_letter DROP COLUMN detail, DROP COLUMN died, DROP COLUMN attempt, DROP COLUMN action_ref, DROP COLUMN correlation_id;
DROP TABLE lost_work;
DROP TABLE worker_probe;
DROP FUNCTION attune_task_timeout(jsonb);
DROP FUNCTION attune_heartbeat_seen() CASCADE;
ALTER TABLE worker DROP COLUMN deactivated_at, DROP COLUMN heartbeat_seen;
