package testkit

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/installation"
	"github.com/attune-go/attune/migrations"
)

// Schema is the schema that test databases hold the platform's tables in.
const Schema = "attune"

const databasePrefix = "attune_test_"

// Database makes a database for this test, a copy of a fully migrated template,
// and drops it at the end. It returns the URL. Advisory locks are per database,
// so tests do not meet there either.
//
// With ATTUNE_TEST_SCHEMA=adopted in the environment the schema is that of an
// existing installation, adopted: `make test-adopted` runs every test so.
func Database(t testing.TB) string {
	t.Helper()
	return copyOf(t, Adopted())
}

// OwnDatabase is Database on a schema of our own, also where tests run on adopted
// ones: for what only our own tables have, such as partitions.
func OwnDatabase(t testing.TB) string {
	t.Helper()
	return copyOf(t, false)
}

// AdoptedDatabase makes a database whose schema an existing installation made and
// migrations.Up adopted, and drops it at the end.
func AdoptedDatabase(t testing.TB) string {
	t.Helper()
	return copyOf(t, true)
}

// Adopted reports whether Database gives adopted schemas in this run. A test asks
// only where an adopted schema differs by design.
func Adopted() bool { return os.Getenv("ATTUNE_TEST_SCHEMA") == "adopted" }

func copyOf(t testing.TB, adopted bool) string {
	t.Helper()
	source, err := template(adopted)
	require.NoError(t, err, "build the template database")
	return createDatabase(t, fmt.Sprintf("template %s strategy file_copy", source))
}

// Installation makes a database as an existing installation of that shape leaves
// it, not adopted yet, and drops it at the end.
func Installation(t testing.TB, shape installation.Shape) string {
	t.Helper()
	databaseURL := EmptyDatabase(t)
	conn, err := pgx.Connect(Context(t), databaseURL)
	require.NoError(t, err)
	err = installation.Build(Context(t), conn, Schema, shape)
	require.NoError(t, errors.Join(err, conn.Close(Context(t))))
	return databaseURL
}

// EmptyDatabase makes a database without any table, for tests of migrations,
// and drops it at the end.
func EmptyDatabase(t testing.TB) string {
	t.Helper()
	return createDatabase(t, "template template0")
}

func createDatabase(t testing.TB, options string) string {
	t.Helper()
	admin := sharedServers(t).database
	name := uniqueName(databasePrefix)
	require.NoError(t, execute(Context(t), admin, "create database "+name+" "+options))
	t.Cleanup(func() {
		ctx, cancel := cleanupContext()
		defer cancel()
		require.NoError(t, execute(ctx, admin, "drop database "+name+" with (force)"))
	})
	return withDatabase(admin, name)
}

const templatePrefix = "attune_template_"

// templates are the templates that this binary has asked for, by their names.
var templates = struct {
	sync.Mutex
	ready map[string]bool
}{ready: map[string]bool{}}

// template returns the name of the migrated template and builds it if it is missing.
// There is one for each state of the migrations folder, each origin and each day,
// because a migrated database has partitions for the days around the one it was
// made on.
func template(adopted bool) (string, error) {
	found, err := shared()
	if err != nil {
		return "", err
	}
	name := templatePrefix + migrations.Checksum()
	if adopted {
		name += "adopted" + installation.Checksum()
	}
	name += "_" + day(time.Now())
	templates.Lock()
	defer templates.Unlock()
	if templates.ready[name] {
		return name, nil
	}
	ctx, cancel := cleanupContext()
	defer cancel()
	if err := buildTemplate(ctx, found.database, name, adopted); err != nil {
		return "", err
	}
	templates.ready[name] = true
	return name, nil
}

// day is how a day stands at the end of a template's name.
func day(at time.Time) string { return at.UTC().Format("20060102") }

// outlived reports whether a database is a template of a day that is over for all.
func outlived(name string) bool {
	rest, ok := strings.CutPrefix(name, templatePrefix)
	_, made, dated := strings.Cut(rest, "_")
	return ok && (!dated || made < day(time.Now().Add(-48*time.Hour)))
}

// buildTemplate migrates beside and renames, under a lock that all test
// binaries on this server share.
func buildTemplate(ctx context.Context, admin, name string, adopted bool) error {
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // gives the lock back
	if _, err := conn.Exec(ctx, "select pg_advisory_lock(hashtext('attune test template'))"); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	var exists bool
	err = conn.QueryRow(ctx, "select exists (select from pg_database where datname = $1)", name).Scan(&exists)
	if err != nil || exists {
		return err
	}
	raw := name + "_raw"
	for _, sql := range []string{"drop database if exists " + raw + " with (force)",
		"create database " + raw + " template template0"} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	if adopted {
		if err := buildInstallation(ctx, withDatabase(admin, raw)); err != nil {
			return err
		}
	}
	if _, err := migrations.Up(ctx, migrations.Options{URL: withDatabase(admin, raw), Schema: Schema}); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	for _, sql := range []string{"alter database " + raw + " rename to " + name,
		"alter database " + name + " allow_connections false"} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

// buildInstallation makes what is there before adoption: the schema, and the
// catalogue rows that tests expect of a fresh database.
func buildInstallation(ctx context.Context, databaseURL string) error {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // nothing is open on it
	if err := installation.Build(ctx, conn, Schema, installation.Newest); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, catalogueRows); err != nil {
		return fmt.Errorf("insert the core pack: %w", err)
	}
	return nil
}

const catalogueRows = `
	INSERT INTO identity (login, display_name) VALUES ('system', 'System');
	INSERT INTO pack (ref, label, description, version, is_standard)
	VALUES ('core', 'Core', 'Actions that every worker can run', '1.0.0', true);
	INSERT INTO action (ref, pack, pack_ref, label, description, entrypoint, output_format, param_schema)
	SELECT v.ref, p.id, p.ref, v.label, v.description, 'native', 'json', v.param_schema::jsonb
	FROM pack p, (VALUES
		('core.echo', 'Echo', 'Returns its message',
		 '{"message": {"type": "string", "description": "What to return", "default": ""}}'),
		('core.noop', 'Nothing', 'Does nothing and succeeds', '{}'),
		('core.sleep', 'Sleep', 'Waits and succeeds',
		 '{"seconds": {"type": "number", "description": "How long to wait", "default": 1}}'),
		('core.fail', 'Fail', 'Fails with its message',
		 '{"message": {"type": "string", "description": "Why it fails", "default": "failed on request"}}')
	) AS v (ref, label, description, param_schema)`

func withDatabase(databaseURL, name string) string {
	parsed, err := url.Parse(databaseURL)
	if err != nil {
		return databaseURL // refused by the first connection, with a better message
	}
	parsed.Path = "/" + name
	return parsed.String()
}

// admins are open connections to the servers' first database, by its URL: a new connection
// costs the server more than a test database does. They end with the test binary.
var admins = struct {
	sync.Mutex
	idle map[string][]*pgx.Conn
}{idle: map[string][]*pgx.Conn{}}

func execute(ctx context.Context, databaseURL, sql string) error {
	conn, err := takeAdmin(ctx, databaseURL)
	if err != nil {
		return fmt.Errorf("connect to run %q: %w", sql, err)
	}
	if _, err = conn.Exec(ctx, sql); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", sql, err), conn.Close(context.WithoutCancel(ctx)))
	}
	admins.Lock()
	defer admins.Unlock()
	admins.idle[databaseURL] = append(admins.idle[databaseURL], conn)
	return nil
}

func takeAdmin(ctx context.Context, databaseURL string) (*pgx.Conn, error) {
	admins.Lock()
	idle := admins.idle[databaseURL]
	if n := len(idle); n > 0 {
		defer admins.Unlock()
		admins.idle[databaseURL] = idle[:n-1]
		return idle[n-1], nil
	}
	admins.Unlock()
	return pgx.Connect(ctx, databaseURL)
}

// sweepDatabases drops what killed test binaries left on the private server, and
// templates of days gone by.
func sweepDatabases(ctx context.Context, admin string) error {
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // nothing is open on it
	rows, err := conn.Query(ctx, "select datname::text from pg_database")
	if err != nil {
		return fmt.Errorf("list databases: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("list databases: %w", err)
	}
	for _, name := range names {
		if abandoned(name, databasePrefix) || outlived(name) {
			if _, err := conn.Exec(ctx, "drop database if exists "+name+" with (force)"); err != nil {
				return fmt.Errorf("drop an abandoned database: %w", err)
			}
		}
	}
	return nil
}
