package rehearsal

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/installation"
	"github.com/attune-go/attune/lab/installation/timescale"
	"github.com/attune-go/attune/lab/testkit"
)

// original is the database of an installation in the state of the other rehearsal, with hypertables.
type original struct {
	url    string // of the owner
	reader string // of a login that may only SELECT
	conn   *pgx.Conn
}

func messy(t *testing.T) *original {
	t.Helper()
	ctx := testkit.Context(t)
	o := &original{url: testkit.EmptyDatabase(t)}
	var out strings.Builder
	r := &rehearsal{gate: make(chan struct{}), cfg: Config{
		DatabaseURL: o.url, AMQPURL: testkit.VHost(t), ManagementURL: testkit.ManagementURL(t), Schema: "attune",
		Out: &out, Logger: testkit.Logger(t), Timeout: time.Minute,
	}}
	defer r.close()
	require.NoError(t, r.build(ctx))
	require.NoError(t, r.fill(ctx))
	var err error
	cfg, err := pgx.ParseConfig(o.url)
	require.NoError(t, err)
	cfg.RuntimeParams["search_path"] = "attune, public"
	o.conn, err = pgx.ConnectConfig(ctx, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, o.conn.Close(context.Background())) })
	o.exec(t, `INSERT INTO execution (action, action_ref, status, created, updated, result)
		SELECT id, ref, 'completed', now() - n * interval '1 hour', now() - n * interval '1 hour', '{"succeeded": true}'
		FROM action, generate_series(1, 300) n WHERE ref = 'demo.work'`)
	o.exec(t, "UPDATE identity SET password_hash = 'hash-of-system'")
	o.exec(t, `INSERT INTO key (ref, owner_type, name, encrypted, value) VALUES ('system.token', 'system', 'token', false, '"clear"')`)
	require.NoError(t, timescale.Convert(ctx, o.conn))
	name := fmt.Sprintf("reader_%d", time.Now().UnixNano())
	o.exec(t, fmt.Sprintf(`CREATE ROLE %[1]s LOGIN PASSWORD 'only-reads'; GRANT USAGE ON SCHEMA attune TO %[1]s;
		GRANT SELECT ON ALL TABLES IN SCHEMA attune TO %[1]s; GRANT SELECT ON ALL SEQUENCES IN SCHEMA attune TO %[1]s;
		GRANT USAGE ON SCHEMA timescaledb_information, _timescaledb_internal TO %[1]s;
		GRANT SELECT ON ALL TABLES IN SCHEMA timescaledb_information TO %[1]s`, name))
	t.Cleanup(func() {
		_, err := o.conn.Exec(context.Background(), "DROP OWNED BY "+name+"; DROP ROLE "+name,
			pgx.QueryExecModeSimpleProtocol)
		require.NoError(t, err)
	})
	parsed, err := url.Parse(o.url)
	require.NoError(t, err)
	parsed.User = url.UserPassword(name, "only-reads")
	o.reader = parsed.String()
	return o
}

func (o *original) exec(t *testing.T, sql string) {
	t.Helper()
	_, err := o.conn.Exec(testkit.Context(t), sql, pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
}

// state is a checksum of all rows with the transactions that wrote them, and of the catalogue.
func (o *original) state(t *testing.T) map[string]string {
	t.Helper()
	ctx, state := testkit.Context(t), map[string]string{}
	tables := testkit.Column[string](t, o.conn, `SELECT relname::text FROM pg_class WHERE relnamespace = 'attune'::regnamespace AND relkind = 'r'`)
	for _, table := range tables {
		var sum string
		require.NoError(t, o.conn.QueryRow(ctx, fmt.Sprintf(
			`SELECT count(*) || coalesce(md5(string_agg(x.xmin::text || x.xmax::text || x::text, ',' ORDER BY x::text)), '') FROM attune.%q x`,
			table)).Scan(&sum))
		state[table] = sum
	}
	all := testkit.Column[string](t, o.conn, catalogueSQL, "attune")
	state["catalogue"] = strings.Join(all, "\n")
	return state
}

// A copy of an installation with hypertables and work in every state is adopted, serves, and is handed back as it
// was. The original is read by a login that may only SELECT, with no lock that a writer would notice, and does not
// change.
func TestACopyOfAnInstallationIsRehearsedAndTheOriginalIsOnlyRead(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "rehearse with a copy; another test copies")
	ctx, o := testkit.Context(t), messy(t)
	before := o.state(t)
	// This lock refuses every lock but that of a SELECT.
	tx, err := o.conn.Begin(ctx)
	require.NoError(t, err)
	_, err = tx.Exec(ctx, `DO $$ DECLARE t regclass; BEGIN
		FOR t IN SELECT oid::regclass FROM pg_class WHERE relnamespace = 'attune'::regnamespace AND relkind = 'r' LOOP
			EXECUTE format('LOCK TABLE %s IN EXCLUSIVE MODE', t);
		END LOOP; END $$`)
	require.NoError(t, err)

	var out strings.Builder
	cfg := CopyConfig{
		From: o.reader, Newest: 50,
		Config: Config{
			DatabaseURL: testkit.EmptyDatabase(t), AMQPURL: testkit.VHost(t), ManagementURL: testkit.ManagementURL(t),
			Schema: "attune", Out: &out, Logger: testkit.Logger(t), StaleAfter: 20 * time.Second,
		},
	}
	report, err := RunCopy(ctx, cfg)
	require.NoError(t, err, out.String())
	require.NoError(t, tx.Rollback(ctx))
	t.Logf("%s\n%+v", out.String(), report)
	require.True(t, report.OK)
	require.True(t, report.EngineStarted)
	require.True(t, report.HandedBack)
	require.Empty(t, report.Violations)
	require.Empty(t, report.Changed)
	require.NotEmpty(t, report.Requests)
	require.Equal(t, len(report.Requests), report.Completed())
	require.Len(t, report.Copied.Hypertables, 5)
	require.Contains(t, report.Copied.NotCopied, "key")
	require.NotEmpty(t, report.Before)
	require.NotEmpty(t, report.WorkQueues)
	require.Len(t, report.Locks, len(watched))
	require.Equal(t, before, o.state(t), "the original is only read")

	pool, err := pgx.Connect(ctx, cfg.DatabaseURL)
	require.NoError(t, err)
	defer func() { require.NoError(t, pool.Close(ctx)) }()
	var secrets int
	require.NoError(t, pool.QueryRow(ctx, `SELECT (SELECT count(*) FROM attune.identity WHERE password_hash IS NOT NULL)
		+ (SELECT count(*) FROM attune.key)`).Scan(&secrets))
	require.Zero(t, secrets)
}

// A copy of an installation that is too old is checked: its differences are listed with the statements that remove
// them.
func TestACopyOfAnOlderInstallationListsItsDifferences(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	report, err := RunCopy(testkit.Context(t), CopyConfig{
		From: testkit.Installation(t, installation.Shape{Date: "2026-05-12"}),
		Config: Config{
			DatabaseURL: testkit.EmptyDatabase(t), Schema: "attune", Out: &out, Logger: testkit.Logger(t),
		},
	})
	var different *DifferentError
	require.ErrorAs(t, err, &different)
	require.NotEmpty(t, report.Differences)
	require.NotEmpty(t, report.RunFirst)
	require.False(t, report.OK)
	require.False(t, report.EngineStarted)
}
