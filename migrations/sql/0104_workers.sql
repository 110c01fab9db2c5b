-- Under load: brief lock. Adds columns without rewriting to worker and action, and triggers to worker.
--
-- The load of workers, their health, and the work that they did not do.

-- +goose Up
-- No transaction holds two busy tables: each part is committed, and a repetition, Down too, passes over it.
-- heartbeat_seen is the time of the newest heartbeat by the database's clock; last_heartbeat is by the worker's own,
-- which may be wrong. A writer that names heartbeat_seen sets it. deactivated_at says that the heartbeat monitor has
-- marked the worker inactive, and may mark it active again.
ALTER TABLE worker
    ADD COLUMN IF NOT EXISTS draining boolean NOT NULL DEFAULT false,
    ADD COLUMN IF NOT EXISTS incarnation uuid,
    ADD COLUMN IF NOT EXISTS suspect_since timestamptz,
    ADD COLUMN IF NOT EXISTS suspect_reason text,
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
CREATE OR REPLACE TRIGGER attune_10_heartbeat_seen BEFORE INSERT OR UPDATE OF last_heartbeat ON worker
    FOR EACH ROW EXECUTE FUNCTION attune_heartbeat_seen();

-- Every worker has its load row from the start, so that dispatch can lock rows in order without creating them.
CREATE TABLE IF NOT EXISTS worker_load (
    worker   bigint PRIMARY KEY REFERENCES worker (id) ON DELETE CASCADE,
    assigned integer NOT NULL DEFAULT 0
) WITH (fillfactor = 10, autovacuum_vacuum_threshold = 50,
        autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);
CREATE OR REPLACE FUNCTION attune_worker_load() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO worker_load (worker) VALUES (NEW.id) ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;
CREATE OR REPLACE TRIGGER attune_worker_load AFTER INSERT ON worker
    FOR EACH ROW EXECUTE FUNCTION attune_worker_load();
CREATE OR REPLACE FUNCTION attune_holder_without_worker() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE execution_holder SET worker = NULL WHERE worker = OLD.id;
    RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE OR REPLACE TRIGGER attune_holder_without_worker AFTER DELETE ON worker
    FOR EACH ROW EXECUTE FUNCTION attune_holder_without_worker();

-- worker_probe is the result of the newest probe of a worker.
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
COMMIT AND CHAIN;
ALTER TABLE action ADD COLUMN IF NOT EXISTS scheduled_timeout_seconds integer;
-- attune_placement has the fields of an action that restrict its workers, attune_own_placement those of an execution's
-- own, NULL if it has none. Only statements that write rows name their columns.
CREATE OR REPLACE FUNCTION attune_placement(a action) RETURNS jsonb LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT jsonb_build_object('runtime_version', coalesce((a).runtime_version_constraint, ''),
        'required_worker_runtimes', (a).required_worker_runtimes, 'worker_selector', (a).worker_selector,
        'worker_tolerations', (a).worker_tolerations, 'worker_affinity', (a).worker_affinity)
$$;
CREATE OR REPLACE FUNCTION attune_own_placement(e execution) RETURNS jsonb LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN num_nonnulls((e).worker_selector, (e).worker_tolerations, (e).worker_affinity) > 0 THEN
        jsonb_build_object('worker_selector', (e).worker_selector, 'worker_tolerations', (e).worker_tolerations,
        'worker_affinity', (e).worker_affinity) END
$$;

COMMIT AND CHAIN;
-- lost_work has a row for each decision of the engine about work that a worker did not do.
CREATE TABLE IF NOT EXISTS lost_work (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), cause text NOT NULL,
    outcome text NOT NULL, execution bigint NOT NULL, attempt integer NOT NULL, action_ref text NOT NULL,
    worker bigint, age_seconds double precision
);
CREATE INDEX IF NOT EXISTS attune_lost_work_at ON lost_work (at);

-- undelivered_dispatch is written in the transaction that takes a returned message out of the outbox, and deleted in
-- the one that decides about it.
CREATE TABLE IF NOT EXISTS undelivered_dispatch (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, execution bigint NOT NULL, attempt integer NOT NULL,
    worker bigint NOT NULL, reason text NOT NULL, at timestamptz NOT NULL DEFAULT now()
);

-- +goose Down
-- Foreign keys go first: dropping a table waits for the disk with its locks held.
DROP FUNCTION IF EXISTS attune_own_placement(execution), attune_placement(action);
ALTER TABLE action DROP COLUMN IF EXISTS scheduled_timeout_seconds;
COMMIT AND CHAIN;
ALTER TABLE worker
    DROP COLUMN IF EXISTS deactivated_at, DROP COLUMN IF EXISTS heartbeat_seen, DROP COLUMN IF EXISTS suspect_reason,
    DROP COLUMN IF EXISTS suspect_since, DROP COLUMN IF EXISTS incarnation, DROP COLUMN IF EXISTS draining;
DROP FUNCTION IF EXISTS attune_holder_without_worker(), attune_worker_load(), attune_heartbeat_seen() CASCADE;
ALTER TABLE IF EXISTS worker_load DROP CONSTRAINT IF EXISTS worker_load_worker_fkey;
ALTER TABLE IF EXISTS worker_probe DROP CONSTRAINT IF EXISTS worker_probe_worker_fkey;
COMMIT AND CHAIN;
DROP TABLE IF EXISTS undelivered_dispatch, lost_work, worker_probe, worker_load;
