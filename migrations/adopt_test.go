package migrations_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/installation"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/migrations"
)

// foreign builds a database as an existing installation of that shape leaves it:
// its schema, and a little of everything in it.
func foreign(t *testing.T, shape installation.Shape) (migrations.Options, *pgx.Conn) {
	t.Helper()
	opts := migrations.Options{URL: testkit.Installation(t, shape), Schema: testkit.Schema}
	conn := connect(t, opts)
	for _, sql := range []string{
		"INSERT INTO pack (ref, label, version) VALUES ('core', 'Core', '0.9.0')",
		`INSERT INTO action (ref, pack, pack_ref, label, entrypoint, description) SELECT 'core.echo', id, ref, 'Echo', 'echo.sh', '' FROM pack`,
		"INSERT INTO worker (name, worker_type, worker_role) VALUES ('old', 'remote', 'action')",
		"INSERT INTO execution (action, action_ref) SELECT a.id, a.ref FROM action a, generate_series(1, 4)",
	} {
		exec(t, conn, sql)
	}
	return opts, conn
}

// queued puts the four executions into a queue with limit 1, the first as the one
// that was let in, with the order numbers that deletions leave.
func queued(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	exec(t, conn, "INSERT INTO execution_admission_state (action_id, max_concurrent, next_queue_order) SELECT id, 1, 3 FROM action")
	exec(t, conn, `INSERT INTO execution_admission_entry (state_id, execution_id, status, queue_order)
		SELECT s.id, e.id, CASE WHEN e.id = 1 THEN 'active' ELSE 'queued' END, e.id / 2 FROM execution_admission_state s, execution e`)
}

// shape lists every object of the schema by kind and name.
func shape(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	return testkit.Column[string](t, conn, `
		SELECT 'relation ' || relname FROM pg_class WHERE relnamespace = 'attune'::regnamespace
		UNION ALL SELECT 'function ' || proname FROM pg_proc WHERE pronamespace = 'attune'::regnamespace
		UNION ALL SELECT 'trigger ' || tgname || ' on ' || c.relname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
			WHERE c.relnamespace = 'attune'::regnamespace AND NOT tgisinternal
		UNION ALL SELECT 'column ' || c.relname || '.' || attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
			WHERE c.relnamespace = 'attune'::regnamespace AND c.relkind IN ('r', 'p') AND attnum > 0 AND NOT attisdropped
		UNION ALL SELECT 'options ' || relname || ' ' || array_to_string(reloptions, ' ') FROM pg_class
			WHERE relnamespace = 'attune'::regnamespace AND reloptions IS NOT NULL
		ORDER BY 1`)
}

// An execution that ended while no executor ran has given back its slot and counts as completed.
func TestExecutionsThatEndedBeforeTheAdoptionAreCounted(t *testing.T) {
	opts, conn := foreign(t, installation.Newest)
	queued(t, conn)
	exec(t, conn, "UPDATE execution SET status = 'completed' WHERE id = 1")
	exec(t, conn, `INSERT INTO queue_stats (action_id, queue_length, active_count, max_concurrent, total_enqueued, total_completed)
		SELECT action_id, 2, 1, 1, 9, 6 FROM execution_admission_state`)
	exec(t, conn, "UPDATE execution_admission_state SET total_completed = 6")
	_, err := migrations.Up(testkit.Context(t), opts)
	require.NoError(t, err)
	require.Equal(t, "7 7 0", one[string](t, conn, `SELECT concat_ws(' ', q.total_completed, s.total_completed, s.active_count)
		FROM queue_stats q JOIN execution_admission_state s USING (action_id)`))
}

func TestExistingSchemaIsAdoptedAddedToAndHandedBack(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	opts, conn := foreign(t, installation.Newest)
	queued(t, conn)
	before := shape(t, conn)

	planned, err := migrations.Check(ctx, opts)
	require.NoError(t, err)
	require.True(t, planned.WouldAdopt)
	require.Empty(t, planned.Differences)
	require.Equal(t, planned.Files, planned.Pending)
	for _, file := range planned.Pending {
		require.Contains(t, []migrations.Safety{migrations.SafeOnline, migrations.SafeBrief}, file.Safety, file.Name)
		require.NotEmpty(t, file.Why, "%s states its effect under load", file.Name)
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
	opts, conn := foreign(t, installation.Newest)
	queued(t, conn)
	exec(t, conn, `INSERT INTO workflow_definition (ref, pack, pack_ref, label, version, definition)
		SELECT 'core.flow', id, ref, 'Flow', '1', '{}' FROM pack LIMIT 1`)
	exec(t, conn, `WITH e AS (INSERT INTO execution (action_ref, status) VALUES ('core.flow', 'canceling'), ('core.flow', 'cancelled') RETURNING id)
		INSERT INTO workflow_execution (execution, workflow_def, task_graph, status) SELECT e.id, d.id, '{}', 'cancelled' FROM e, workflow_definition d`)
	exec(t, conn, `INSERT INTO workflow_task_dispatch (workflow_execution, task_name) SELECT id, 'a' FROM workflow_execution`)
	_, err := migrations.Up(testkit.Context(t), opts)
	require.NoError(t, err)

	// Of its cancelled workflows, those with a live execution are still to be ended.
	require.Equal(t, "canceling true false, cancelled false true", one[string](t, conn, `
		SELECT string_agg(concat_ws(' ', e.status, w.open::text, d.settled::text), ', ' ORDER BY e.id) FROM workflow_execution w
		JOIN execution e ON e.id = w.execution JOIN workflow_task_dispatch d ON d.workflow_execution = w.id`))

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
	exec(t, conn, "UPDATE execution SET started_at = now() WHERE id = 2")
	require.EqualValues(t, 1,
		one[int64](t, conn, "SELECT count(*) FROM execution_history WHERE entity_id = 2 AND operation = 'UPDATE'"))

	// The same condition finds ended and live executions by index.
	exec(t, conn, "UPDATE execution SET status = 'completed' WHERE id = 1")
	exec(t, conn, "UPDATE execution SET status = 'running' WHERE id = 1")
	require.EqualValues(t, 1, one[int64](t, conn, "SELECT count(*) FROM late_write"))
	require.EqualValues(t, 4, one[int64](t, conn, "SELECT count(*) FROM execution e WHERE e.finished_status IS NULL"))
	exec(t, conn, "SET enable_seqscan = off")
	exec(t, conn, "SET enable_bitmapscan = off")
	require.Contains(t, plan(t, conn,
		"EXPLAIN SELECT e.id FROM execution e WHERE e.finished_status IS NULL AND e.id > 2 ORDER BY e.id"),
		"attune_execution_live")
	require.Contains(t, plan(t, conn, `EXPLAIN SELECT e.id FROM execution e
		WHERE e.finished_status = 'completed' AND e.finished_status IS NOT NULL ORDER BY e.id DESC LIMIT 5`), "attune_execution_finished")
}

// An installation without an optional migration is adopted, and handed back without it.
func TestInstallationsWithoutAMigrationAreAdoptedAndHandedBack(t *testing.T) {
	t.Parallel()
	optional := []installation.Migration{
		installation.Audit, installation.History, installation.Supervisor,
		installation.WorkQueues,
	}
	for _, part := range testkit.Some(t, optional, 2) {
		t.Run(string(part), func(t *testing.T) {
			t.Parallel()
			ctx := testkit.Context(t)
			opts, conn := foreign(t,
				installation.Shape{Date: installation.Newest.Date, Without: []installation.Migration{part}})
			before := shape(t, conn)
			up, err := migrations.Up(ctx, opts)
			require.NoError(t, err)
			require.True(t, up.Adopted)
			require.Contains(t, shape(t, conn), "relation execution_history")
			state, err := migrations.Status(ctx, opts)
			require.NoError(t, err)
			require.True(t, state.Current())

			_, err = migrations.Down(ctx, opts, 0)
			require.NoError(t, err)
			require.Equal(t, before, shape(t, conn))
		})
	}
}

// An older installation is refused with a list of missing parts. If adding them is enough, the refusal has the
// statements, and after these the installation is adopted.
func TestOlderInstallationsAreRefusedWithInstructions(t *testing.T) {
	t.Parallel()
	for _, old := range testkit.Some(t, installation.Shapes()[1:], 4) {
		t.Run(old.Date, func(t *testing.T) {
			t.Parallel()
			ctx := testkit.Context(t)
			opts, conn := foreign(t, old)
			before := shape(t, conn)
			planned, err := migrations.Check(ctx, opts)
			require.NoError(t, err)
			require.True(t, planned.WouldAdopt)
			_, err = migrations.Up(ctx, opts)
			refused, ok := errors.AsType[*migrations.IncompatibleError](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, planned.Lack, refused.Lack)
			require.Equal(t, before, shape(t, conn))
			require.Contains(t, refused.Differences,
				"column rule.permission_set_refs is missing; installations have it since 2026-05-29")
			require.Contains(t, refused.Differences,
				"table execution_secret_value is missing; installations have it since 2026-05-29")

			if old.Date < "2026-04-21" { // queues of its own kind, and a role of workers that later ones do not know
				require.Empty(t, refused.Remedies)
				require.Contains(t, err.Error(), "update the existing installation")
				require.Empty(t, refused.Script("attune"))
				return
			}
			require.Len(t, refused.Remedies, len(refused.Differences))
			for _, remedy := range refused.Remedies {
				require.Contains(t, refused.Script("attune"), remedy+";\n")
				exec(t, conn, remedy)
			}
			up, err := migrations.Up(ctx, opts)
			require.NoError(t, err)
			require.True(t, up.Adopted)
		})
	}
}

func TestUnfitSchemaIsRefusedWithEveryDifferenceAndLeftAlone(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	opts, conn := foreign(t, installation.Newest)
	for _, sql := range []string{
		"ALTER TABLE inquiry ALTER COLUMN prompt TYPE jsonb USING to_jsonb(prompt)",
		"ALTER TABLE worker DROP COLUMN cordoned",
		"ALTER TYPE inquiry_status_enum ADD VALUE 'lost' BEFORE 'timeout'",
		"DROP INDEX uq_enforcement_rule_event",
		"DROP TABLE worker_history CASCADE",
	} {
		exec(t, conn, sql)
	}
	before := shape(t, conn)

	_, err := migrations.Up(ctx, opts)
	refused, ok := errors.AsType[*migrations.IncompatibleError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, []string{
		"type inquiry_status_enum has labels (pending responded lost timeout cancelled), expected (pending responded timeout cancelled)",
		"column worker.cordoned is missing; installations have it since 2026-05-07",
		"column inquiry.prompt has type jsonb, expected text",
		"table worker_history is missing while other history tables exist",
		"no unique index for: one enforcement per rule and event",
	}, refused.Differences)
	require.Empty(t, refused.Remedies)
	require.Equal(t, before, shape(t, conn))

	planned, err := migrations.Check(ctx, opts)
	require.NoError(t, err)
	require.Equal(t, refused.Differences, planned.Differences)
}

// A step that fails in the middle leaves nothing behind, and the next try goes
// through once its cause is gone.
func TestAnAdoptionThatFailsLeavesTheSchemaAsItWas(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	opts, conn := foreign(t, installation.Shape{
		Date: installation.Newest.Date, Without: []installation.Migration{installation.History},
	})
	queued(t, conn)
	// The last file updates workers.
	exec(t, conn, `UPDATE worker SET last_heartbeat = now();
		CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'in the way'; END $$;
		CREATE TRIGGER refuse BEFORE UPDATE ON worker FOR EACH ROW EXECUTE FUNCTION refuse()`)
	before := shape(t, conn)
	entries := "SELECT string_agg(execution_id || status || queue_order, ' ' ORDER BY id) FROM execution_admission_entry"

	_, err := migrations.Up(ctx, opts)
	require.ErrorContains(t, err, "in the way")
	require.Equal(t, before, shape(t, conn))
	require.EqualValues(t, 4, one[int64](t, conn, "SELECT count(*) FROM execution_admission_entry"),
		one[string](t, conn, entries))

	exec(t, conn, "DROP FUNCTION refuse() CASCADE")
	up, err := migrations.Up(ctx, opts)
	require.NoError(t, err)
	require.True(t, up.Adopted)
}

func TestMigrationGivesWayWhenItCannotLock(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	opts, conn := foreign(t, installation.Newest)
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
