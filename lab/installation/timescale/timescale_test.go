package timescale_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/installation"
	"github.com/attune-go/attune/lab/installation/timescale"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/migrations"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// converted is an installation with rows of a month on hypertables.
func converted(t *testing.T) (string, *pgx.Conn) {
	t.Helper()
	ctx, url := testkit.Context(t), testkit.EmptyDatabase(t)
	conn, err := pgx.Connect(ctx, url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close(context.Background())) })
	require.NoError(t, installation.Build(ctx, conn, testkit.Schema, installation.Newest))
	_, err = conn.Exec(ctx, `
		INSERT INTO event (trigger_ref, created) SELECT 'core.tick', now() - n * interval '1 day' FROM generate_series(0, 29) n;
		INSERT INTO execution_history (time, operation, entity_id) SELECT now() - n * interval '1 day', 'INSERT', n FROM generate_series(0, 29) n`)
	require.NoError(t, err)
	require.NoError(t, timescale.Convert(ctx, conn))
	return url, conn
}

func count(t *testing.T, conn *pgx.Conn, sql string) (n int) {
	t.Helper()
	require.NoError(t, conn.QueryRow(testkit.Context(t), sql).Scan(&n))
	return n
}

func refused(t *testing.T, conn *pgx.Conn, sql, text string) {
	t.Helper()
	_, err := conn.Exec(testkit.Context(t), sql)
	require.ErrorContains(t, err, text, sql)
}

// The stand-in keeps rows in chunks, and refuses the same statements as TimescaleDB.
func TestTheStandInRefusesTheSameStatements(t *testing.T) {
	_, conn := converted(t)
	ctx := testkit.Context(t)
	require.Equal(t, 5, count(t, conn, "SELECT count(*) FROM timescaledb_information.hypertables WHERE compression_enabled"))
	require.Equal(t, 4, count(t, conn, "SELECT count(*) FROM timescaledb_information.continuous_aggregates"))
	require.Zero(t, count(t, conn, "SELECT count(*) FROM timescaledb_information.jobs WHERE proc_name = 'policy_retention'"))
	require.Equal(t, 30, count(t, conn, "SELECT count(*) FROM event"))
	require.Zero(t, count(t, conn, "SELECT count(*) FROM ONLY event"))
	require.GreaterOrEqual(t, count(t, conn, "SELECT count(*) FROM timescaledb_information.chunks WHERE is_compressed"), 40)
	var id int64
	require.NoError(t, conn.QueryRow(ctx, "INSERT INTO event (trigger_ref) VALUES ('core.tick') RETURNING id").Scan(&id))
	require.Positive(t, id)
	require.Zero(t, count(t, conn, "SELECT count(*) FROM ONLY event"))

	refused(t, conn, "DELETE FROM event WHERE created < now() - interval '20 days'", "as it is compressed")
	refused(t, conn, "CREATE UNIQUE INDEX ON event (id)", "cannot create a unique index without the column")
	refused(t, conn, "CREATE INDEX CONCURRENTLY ON event (source_ref)", "do not support concurrent index creation")
	refused(t, conn, "ALTER TABLE event ALTER COLUMN trigger_ref TYPE varchar(200)", "")
	refused(t, conn, "ALTER TABLE event ADD CONSTRAINT c CHECK (id > 0)", "compression enabled")
	refused(t, conn, `CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
		CREATE TRIGGER t AFTER INSERT ON event REFERENCING NEW TABLE AS n FOR EACH ROW EXECUTE FUNCTION f()`, "ROW triggers")
	refused(t, conn, "SELECT public.create_hypertable('execution', 'created')", "cannot create a unique index")
	_, err := conn.Exec(ctx, "ALTER TABLE event ADD COLUMN note text; CREATE INDEX ON event (source_ref)")
	require.NoError(t, err)

	require.Positive(t, count(t, conn, "SELECT count(*) FROM public.drop_chunks('event', interval '10 days')"))
	require.Less(t, count(t, conn, "SELECT count(*) FROM event"), 15)
}

// Adopting changes no hypertable and hands everything back as it was.
func TestAnInstallationWithHypertablesIsAdoptedAndHandedBack(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	url, conn := converted(t)
	const catalogue = `SELECT md5(string_agg(line, E'\n' ORDER BY line)) FROM (
		SELECT c.oid::regclass || ' ' || a.attname || ' ' || a.atttypid::regtype AS line FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
			WHERE c.oid IN (SELECT relation FROM _timescaledb_catalog.hypertable UNION SELECT relation FROM _timescaledb_catalog.chunk) AND a.attnum > 0
		UNION ALL SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid IN (SELECT relation FROM _timescaledb_catalog.hypertable)
		UNION ALL SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid IN (SELECT relation FROM _timescaledb_catalog.hypertable)
		UNION ALL SELECT job_id || config::text FROM _timescaledb_catalog.job) l`
	read := func() (sum string) {
		require.NoError(t, conn.QueryRow(ctx, catalogue).Scan(&sum))
		return sum
	}
	before, rows := read(), count(t, conn, "SELECT count(*) FROM execution_history")
	opts := migrations.Options{URL: url, Schema: testkit.Schema}
	plan, err := migrations.Check(ctx, opts)
	require.NoError(t, err)
	require.True(t, plan.WouldAdopt)
	require.Empty(t, plan.Differences)
	_, err = migrations.Up(ctx, opts)
	require.NoError(t, err)
	require.Equal(t, before, read(), "up changes no hypertable")
	require.Equal(t, rows, count(t, conn, "SELECT count(*) FROM execution_history"))
	_, err = migrations.Down(ctx, opts, 0)
	require.NoError(t, err)
	require.Equal(t, before, read())
}
