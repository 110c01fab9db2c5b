-- However many queues are kept by one thing, a round finds those that it can
-- help: of each kind of worker that is waited for the oldest, and of each rate
-- or quota that lets somebody start the oldest as well, by ticket. Of those that
-- wait for the same moment one has a round run when it comes (wake); which of
-- them start then is a matter of their tickets.

-- +goose Up
ALTER TABLE admission_blocked
    ADD COLUMN IF NOT EXISTS need text NOT NULL DEFAULT '', -- the kind of worker, where no scope keeps it
    ADD COLUMN IF NOT EXISTS wake timestamptz;
UPDATE admission_blocked SET wake = until WHERE until IS NOT NULL;
CREATE INDEX IF NOT EXISTS attune_admission_blocked_need ON admission_blocked (need, ticket) WHERE scope_id IS NULL;
CREATE INDEX IF NOT EXISTS attune_admission_blocked_wake ON admission_blocked (wake) WHERE wake IS NOT NULL;
DROP INDEX IF EXISTS attune_admission_blocked_until;

-- attune_blocked is the queues worth trying in a round besides those it is
-- about: those that wait for a worker, of each kind the oldest; of each shared
-- limit with room the oldest that wait for it, as many as there is room for and
-- a few more, in case some of them wait for something else as well; and those
-- whose time has come. maxima is what the policies say of each scope now (-1:
-- what its row says), releases how many of its slots the round gives back.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_blocked(most integer, scopes bigint[], maxima bigint[], releases bigint[]) RETURNS bigint[]
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
DECLARE
    moment timestamptz := clock_timestamp(); -- a value, so that it can be looked up by index
    found  bigint[];
BEGIN
    IF NOT EXISTS (SELECT FROM admission_blocked) THEN
        RETURN '{}';
    END IF;
    found := ARRAY(
        WITH RECURSIVE kinds (need) AS (
            (SELECT b.need FROM admission_blocked b WHERE b.scope_id IS NULL ORDER BY b.need LIMIT 1)
            UNION ALL
            SELECT (SELECT b.need FROM admission_blocked b WHERE b.scope_id IS NULL AND b.need > k.need ORDER BY b.need LIMIT 1)
            FROM kinds k WHERE k.need IS NOT NULL
        )
        SELECT b.state_id
        FROM (SELECT need, count(*) OVER () AS n FROM kinds WHERE need IS NOT NULL) k
        CROSS JOIN LATERAL (
            SELECT q.state_id FROM admission_blocked q WHERE q.scope_id IS NULL AND q.need = k.need ORDER BY q.ticket
            LIMIT greatest(most / k.n, 8)) b);
    found := found || ARRAY(
        SELECT b.state_id FROM admission_blocked b WHERE b.wake <= moment ORDER BY b.wake LIMIT most);
    IF cardinality(scopes) > 0 THEN
        found := found || ARRAY(
            SELECT b.state_id
            FROM unnest(scopes, maxima, releases) AS r (scope_id, allowed, back)
            CROSS JOIN LATERAL (
                SELECT t.*, CASE WHEN r.allowed < 0 THEN t.max_concurrent ELSE r.allowed END AS allowed
                FROM admission_scope t WHERE t.id = r.scope_id OFFSET 0) t
            CROSS JOIN LATERAL (
                SELECT CASE t.kind
                    WHEN 'rate' THEN CASE WHEN t.next_at IS NULL OR t.next_at - make_interval(
                        secs => least((coalesce(t.burst, 1) - 1) * (t.window_seconds::float8 / greatest(t.max_concurrent, 1)), 1e9)) <= moment
                        THEN coalesce(t.burst, 1) ELSE 0 END
                    WHEN 'quota' THEN t.allowed
                        - CASE WHEN t.period_start + make_interval(secs => t.window_seconds) > moment THEN t.used ELSE 0 END
                    ELSE t.allowed + r.back - t.active_count END AS room) s
            CROSS JOIN LATERAL (
                SELECT q.state_id FROM admission_blocked q WHERE q.scope_id = t.id ORDER BY q.ticket
                LIMIT CASE WHEN s.room > 0 THEN least(s.room + 8, most) ELSE 0 END) b);
    END IF;
    RETURN found;
END
$$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_blocked(most integer, scopes bigint[], maxima bigint[], releases bigint[]) RETURNS bigint[]
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
DECLARE
    moment timestamptz := clock_timestamp();
    found  bigint[];
BEGIN
    IF NOT EXISTS (SELECT FROM admission_blocked) THEN
        RETURN '{}';
    END IF;
    found := ARRAY(SELECT b.state_id FROM admission_blocked b WHERE b.scope_id IS NULL ORDER BY b.ticket LIMIT most);
    found := found || ARRAY(
        SELECT b.state_id FROM admission_blocked b WHERE b.until <= moment ORDER BY b.until LIMIT most);
    IF cardinality(scopes) > 0 THEN
        found := found || ARRAY(
            SELECT b.state_id
            FROM unnest(scopes, maxima, releases) AS r (scope_id, allowed, back)
            CROSS JOIN LATERAL (
                SELECT t.id, CASE WHEN r.allowed < 0 THEN t.max_concurrent ELSE r.allowed END + r.back - t.active_count AS room
                FROM admission_scope t WHERE t.id = r.scope_id OFFSET 0) s
            CROSS JOIN LATERAL (
                SELECT q.state_id FROM admission_blocked q WHERE q.scope_id = s.id ORDER BY q.ticket
                LIMIT CASE WHEN s.room > 0 THEN least(s.room + 8, most) ELSE 0 END) b);
    END IF;
    RETURN found;
END
$$;
-- +goose StatementEnd
CREATE INDEX IF NOT EXISTS attune_admission_blocked_until ON admission_blocked (until) WHERE until IS NOT NULL;
ALTER TABLE admission_blocked DROP COLUMN wake, DROP COLUMN need;
