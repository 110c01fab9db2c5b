package migrations_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/testkit"
	"github.com/attune-go/attune/migrations"
)

// foreign builds a schema as another Attune installation leaves it: the base
// tables, with indexes and triggers of its own and nothing of ours.
func foreign(t *testing.T) (migrations.Options, *pgx.Conn) {
	t.Helper()
	ctx := testkit.Context(t)
	opts := migrations.Options{URL: testkit.EmptyDatabase(t), Schema: "attune"}
	_, err := migrations.Up(ctx, opts)
	require.NoError(t, err)
	_, err = migrations.Down(ctx, opts, 19)
	require.NoError(t, err)
	conn := connect(t, opts)
	for _, sql := range []string{
		"DROP TABLE attune_schema_version, attune_schema_origin",
		"TRUNCATE identity, pack CASCADE",
		"CREATE INDEX idx_execution_status ON execution (status)",
		"CREATE INDEX idx_execution_status_updated ON execution (status, updated DESC)",
		`CREATE FUNCTION update_updated_column() RETURNS trigger LANGUAGE plpgsql AS
			$$ BEGIN NEW.updated = now(); RETURN NEW; END $$`,
		"CREATE TRIGGER update_execution_updated BEFORE UPDATE ON execution FOR EACH ROW EXECUTE FUNCTION update_updated_column()",
		`CREATE FUNCTION record_execution_history() RETURNS trigger LANGUAGE plpgsql AS
			$$ BEGIN INSERT INTO execution_history (operation, entity_id) VALUES (TG_OP, NEW.id); RETURN NULL; END $$`,
		"CREATE TRIGGER execution_history AFTER INSERT OR UPDATE ON execution FOR EACH ROW EXECUTE FUNCTION record_execution_history()",
		"INSERT INTO pack (ref, label, version) VALUES ('core', 'Core', '0.9.0')",
		`INSERT INTO action (ref, pack, pack_ref, label, entrypoint) SELECT 'core.echo', id, ref, 'Echo', 'echo.sh' FROM pack`,
		"INSERT INTO worker (name, worker_type, worker_role) VALUES ('old', 'remote', 'action')",
		"INSERT INTO execution (action, action_ref) SELECT a.id, a.ref FROM action a, generate_series(1, 4)",
		"INSERT INTO execution_admission_state (action_id, max_concurrent, next_queue_order) SELECT id, 1, 3 FROM action",
		`INSERT INTO execution_admission_entry (state_id, execution_id, status, queue_order)
			SELECT s.id, e.id, CASE WHEN e.id = 1 THEN 'active' ELSE 'queued' END, e.id / 2
			FROM execution_admission_state s, execution e`,
	} {
		exec(t, conn, sql)
	}
	return opts, conn
}

// shape lists every object of the schema by kind and name.
func shape(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	rows, err := conn.Query(testkit.Context(t), `
		SELECT 'relation ' || relname FROM pg_class WHERE relnamespace = 'attune'::regnamespace
		UNION ALL SELECT 'function ' || proname FROM pg_proc WHERE pronamespace = 'attune'::regnamespace
		UNION ALL SELECT 'trigger ' || tgname || ' on ' || c.relname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
			WHERE c.relnamespace = 'attune'::regnamespace AND NOT tgisinternal
		UNION ALL SELECT 'column ' || c.relname || '.' || attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
			WHERE c.relnamespace = 'attune'::regnamespace AND c.relkind IN ('r', 'p') AND attnum > 0 AND NOT attisdropped
		ORDER BY 1`)
	require.NoError(t, err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return names
}

func TestExistingSchemaIsAdoptedAddedToAndHandedBack(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	opts, conn := foreign(t)
	before := shape(t, conn)

	planned, err := migrations.Check(ctx, opts)
	require.NoError(t, err)
	require.True(t, planned.WouldAdopt)
	require.Empty(t, planned.Differences)
	for _, file := range planned.Pending {
		require.GreaterOrEqual(t, file.Version, int64(20), "only what is ours is applied: %s", file.Name)
		require.NotEqual(t, migrations.SafeEmpty, file.Safety, "%s says what it does under load", file.Name)
	}
	require.Equal(t, before, shape(t, conn), "a check changes nothing")

	up, err := migrations.Up(ctx, opts)
	require.NoError(t, err)
	require.True(t, up.Adopted)
	require.Equal(t, migrations.OriginAdopted, up.Origin)
	require.Len(t, up.Applied, len(planned.Pending))
	require.Subset(t, shape(t, conn), before, "nothing that was there is gone")
	require.NotContains(t, shape(t, conn), "column execution.finished_status")

	again, err := migrations.Up(ctx, opts)
	require.NoError(t, err)
	require.False(t, again.Adopted)
	require.Empty(t, again.Applied)

	_, err = migrations.Down(ctx, opts, 0)
	require.NoError(t, err)
	require.Equal(t, before, shape(t, conn), "handed back as it was")
	require.EqualValues(t, 4, one[int64](t, conn, "SELECT count(*) FROM execution"))
}

func TestAdoptedSchemaBehavesLikeOurs(t *testing.T) {
	t.Parallel()
	opts, conn := foreign(t)
	_, err := migrations.Up(testkit.Context(t), opts)
	require.NoError(t, err)

	// The queue kept its order and lost its ambiguity.
	require.Equal(t, "1 2 3 4", one[string](t, conn,
		"SELECT string_agg(execution_id::text, ' ' ORDER BY queue_order) FROM execution_admission_entry"))
	require.EqualValues(t, 5, one[int64](t, conn, "SELECT next_queue_order FROM execution_admission_state"))
	// Its worker has a load row; its pack kept its own actions.
	require.EqualValues(t, 1, one[int64](t, conn, "SELECT count(*) FROM worker_load"))
	require.Equal(t, "core.echo", one[string](t, conn, "SELECT string_agg(ref, ' ') FROM action"))

	// Two updates in one transaction differ, although the schema's own trigger says now().
	exec(t, conn, "BEGIN")
	first := one[time.Time](t, conn, "UPDATE execution SET attempt = 1 WHERE id = 1 RETURNING updated")
	second := one[time.Time](t, conn, "UPDATE execution SET attempt = 2 WHERE id = 1 RETURNING updated")
	exec(t, conn, "COMMIT")
	require.True(t, second.After(first))

	// Its own history is not doubled.
	require.EqualValues(t, 2, one[int64](t, conn, "SELECT count(*) FROM execution_history WHERE entity_id = 1 AND operation = 'UPDATE'"))

	// The same spelling finds what ended and what lives, by index.
	exec(t, conn, "UPDATE execution SET status = 'completed' WHERE id = 1")
	exec(t, conn, "UPDATE execution SET status = 'running' WHERE id = 1")
	require.EqualValues(t, 1, one[int64](t, conn, "SELECT count(*) FROM late_write"))
	require.EqualValues(t, 3, one[int64](t, conn, "SELECT count(*) FROM execution e WHERE e.finished_status IS NULL"))
	exec(t, conn, "SET enable_seqscan = off")
	exec(t, conn, "SET enable_bitmapscan = off")
	require.Contains(t, plan(t, conn, "EXPLAIN SELECT e.id FROM execution e WHERE e.finished_status IS NULL AND e.id > 2 ORDER BY e.id"),
		"attune_execution_live")
	require.Contains(t, plan(t, conn, `EXPLAIN SELECT e.id FROM execution e
		WHERE e.finished_status = 'completed' AND e.finished_status IS NOT NULL ORDER BY e.id DESC LIMIT 5`), "attune_execution_finished")
}

func TestMissingOptionalTablesAreMadeOnAdoption(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	opts, conn := foreign(t)
	exec(t, conn, "DROP TABLE work_queue_dispatch, work_queue_item, work_queue, audit_event")
	up, err := migrations.Up(ctx, opts)
	require.NoError(t, err)
	require.True(t, up.Adopted)
	require.Contains(t, shape(t, conn), "relation work_queue_item")
	state, err := migrations.Status(ctx, opts)
	require.NoError(t, err)
	require.True(t, state.Current())
}

func TestUnfitSchemaIsRefusedWithEveryDifferenceAndLeftAlone(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	opts, conn := foreign(t)
	for _, sql := range []string{
		"ALTER TABLE execution ALTER COLUMN retry_count TYPE text",
		"ALTER TABLE worker DROP COLUMN cordoned",
		"ALTER TYPE inquiry_status_enum ADD VALUE 'lost' BEFORE 'timeout'",
		"DROP INDEX uq_enforcement_rule_event",
		"DROP TABLE work_queue_dispatch",
	} {
		exec(t, conn, sql)
	}
	before := shape(t, conn)

	_, err := migrations.Up(ctx, opts)
	var refused *migrations.IncompatibleError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, []string{
		"type inquiry_status_enum has labels (pending responded lost timeout cancelled), expected (pending responded timeout cancelled)",
		"column execution.retry_count has type text, expected integer",
		"column worker.cordoned is missing",
		"of the tables (work_queue work_queue_item work_queue_dispatch) only (work_queue work_queue_item) exist",
		"no unique index for: one enforcement per rule and event",
	}, refused.Differences)
	require.Equal(t, before, shape(t, conn))

	planned, err := migrations.Check(ctx, opts)
	require.NoError(t, err)
	require.Equal(t, refused.Differences, planned.Differences)
}

func TestMigrationGivesWayWhenItCannotLock(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	opts, conn := foreign(t)
	opts.LockTimeout = 100 * time.Millisecond
	exec(t, conn, "BEGIN")
	exec(t, conn, "LOCK TABLE execution IN ACCESS SHARE MODE")
	done := make(chan error, 1)
	go func() {
		_, err := migrations.Up(ctx, opts)
		done <- err
	}()
	other := connect(t, opts)
	// While it waits and gives way, others read and write as before.
	testkit.Eventually(t, func() bool {
		return one[bool](t, other, "SELECT EXISTS (SELECT FROM pg_class WHERE relname = 'attune_schema_version')")
	}, 10*time.Second)
	exec(t, other, "SET statement_timeout = '2s'")
	exec(t, other, "UPDATE execution SET status = 'cancelled' WHERE id = 1")
	exec(t, conn, "COMMIT")
	require.NoError(t, <-done, "it is tried again")
}
