package testkit

import (
	"cmp"
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

	"github.com/attune-go/attune/lab/installation"
	"github.com/attune-go/attune/lab/installation/timescale"
	"github.com/attune-go/attune/lab/query"
	"github.com/attune-go/attune/migrations"
)

// Schema is the schema of the platform's tables in test databases.
const Schema = "attune"

const databasePrefix = "attune_test_"

// Database creates a database for this test, a copy of a fully migrated template, and drops it at the end. It
// returns the URL. Advisory locks are per database, so tests do not share them, and run in Parallel.
//
// With ATTUNE_TEST_SCHEMA=adopted in the environment the schema is the adopted one of an existing
// installation, and with hypertables its history and events are hypertables too: `make test-adopted` runs every
// test so.
func Database(t testing.TB) string {
	t.Helper()
	return copyOf(t, origin(cmp.Or(os.Getenv(schemaVariable), string(own))))
}

// OwnDatabase is Database with the engine's own schema also in a run with adopted ones, for features of our own
// tables, such as partitions.
func OwnDatabase(t testing.TB) string {
	t.Helper()
	return copyOf(t, own)
}

// AdoptedDatabase is Database with the adopted schema of an existing installation.
func AdoptedDatabase(t testing.TB) string {
	t.Helper()
	return copyOf(t, adopted)
}

// HypertableDatabase is AdoptedDatabase with hypertables of the stand-in for TimescaleDB.
func HypertableDatabase(t testing.TB) string {
	t.Helper()
	return copyOf(t, hypertables)
}

// origin says where the schema of a test database comes from.
type origin string

const (
	own         origin = "own"
	adopted     origin = "adopted"
	hypertables origin = "hypertables"
)

const schemaVariable = "ATTUNE_TEST_SCHEMA"

// Adopted reports whether Database has adopted schemas in this run, for tests of intended differences.
func Adopted() bool {
	from := origin(os.Getenv(schemaVariable))
	return from == adopted || from == hypertables
}

func copyOf(t testing.TB, from origin) string {
	t.Helper()
	source, err := template(from)
	require.NoError(t, err, "build the template database")
	return createDatabase(t, fmt.Sprintf("template %s strategy file_copy", source))
}

// Installation creates a database of an existing installation, not adopted yet, and drops it at the end.
func Installation(t testing.TB, shape installation.Shape) string {
	t.Helper()
	databaseURL := EmptyDatabase(t)
	require.NoError(t, withConn(Context(t), databaseURL, func(conn *pgx.Conn) error {
		return installation.Build(Context(t), conn, Schema, shape)
	}))
	return databaseURL
}

// EmptyDatabase creates a database without any table, for tests of migrations, and drops it at the end.
func EmptyDatabase(t testing.TB) string {
	t.Helper()
	return createDatabase(t, "template template0")
}

func createDatabase(t testing.TB, options string) string {
	t.Helper()
	Parallel(t)
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

// templates are the ready templates by their names.
var templates = struct {
	sync.Mutex
	ready map[string]bool
}{ready: map[string]bool{}}

// template returns the name of the migrated template and builds it if it is missing. There is one for each state
// of the migrations folder, each origin and each day, because a migrated database has partitions for the days
// around its creation.
func template(from origin) (string, error) {
	found, err := shared()
	if err != nil {
		return "", err
	}
	name := templatePrefix + migrations.Checksum()
	switch from {
	case own:
	case adopted:
		name += "adopted" + installation.Checksum()
	case hypertables:
		name += "hyper" + timescale.Checksum()
	default:
		return "", fmt.Errorf("%s=%s: want %s or %s", schemaVariable, from, adopted, hypertables)
	}
	name += "_" + day(time.Now())
	templates.Lock()
	defer templates.Unlock()
	if templates.ready[name] {
		return name, nil
	}
	ctx, cancel := cleanupContext()
	defer cancel()
	if err := buildTemplate(ctx, found.database, name, from); err != nil {
		return "", err
	}
	templates.ready[name] = true
	return name, nil
}

// day formats the day in a template's name.
func day(at time.Time) string { return at.UTC().Format("20060102") }

// outlived reports whether a database is a template of a past day that no run uses any more.
func outlived(name string) bool {
	rest, ok := strings.CutPrefix(name, templatePrefix)
	_, made, dated := strings.Cut(rest, "_")
	return ok && (!dated || made < day(time.Now().Add(-48*time.Hour)))
}

// withConn calls do with a connection of its own.
func withConn(ctx context.Context, databaseURL string, do func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // do has reported the errors of its statements
	return do(conn)
}

func execAll(ctx context.Context, conn *pgx.Conn, statements ...string) error {
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

// buildTemplate migrates a database under another name and renames it, under a lock that all test binaries on
// this server share. It ends with the connection.
func buildTemplate(ctx context.Context, admin, name string, from origin) error {
	raw := name + "_raw"
	return withConn(ctx, admin, func(conn *pgx.Conn) error {
		if err := execAll(ctx, conn, "select pg_advisory_lock(hashtext('attune test template'))"); err != nil {
			return err
		}
		var exists bool
		err := conn.QueryRow(ctx, "select exists (select from pg_database where datname = $1)", name).Scan(&exists)
		if err != nil || exists {
			return err
		}
		err = execAll(ctx, conn, "drop database if exists "+raw+" with (force)",
			"create database "+raw+" template template0")
		if err != nil {
			return err
		}
		if from != own { // the schema before adoption, with the rows of a fresh database
			err := withConn(ctx, withDatabase(admin, raw), func(conn *pgx.Conn) error {
				if err := installation.Build(ctx, conn, Schema, installation.Newest); err != nil {
					return err
				}
				if err := execAll(ctx, conn, catalogueRows); err != nil || from == adopted {
					return err
				}
				return timescale.Convert(ctx, conn)
			})
			if err != nil {
				return err
			}
		}
		_, err = migrations.Up(ctx, migrations.Options{URL: withDatabase(admin, raw), Schema: Schema})
		if err != nil {
			return fmt.Errorf("migrate: %w", err)
		}
		return execAll(ctx, conn, "alter database "+raw+" rename to "+name,
			"alter database "+name+" allow_connections false")
	})
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
		return databaseURL // the first connection refuses it with a better message
	}
	parsed.Path = "/" + name
	return parsed.String()
}

// admins are open connections to the servers' first database, by its URL: a new connection costs the server
// more than a test database. Tests closes them.
var admins = struct {
	sync.Mutex
	idle map[string][]*pgx.Conn
}{idle: map[string][]*pgx.Conn{}}

func execute(ctx context.Context, databaseURL, sql string) error {
	admins.Lock()
	var conn *pgx.Conn
	if idle := admins.idle[databaseURL]; len(idle) > 0 {
		conn, admins.idle[databaseURL] = idle[len(idle)-1], idle[:len(idle)-1]
	}
	admins.Unlock()
	if conn == nil {
		var err error
		if conn, err = pgx.Connect(ctx, databaseURL); err != nil {
			return fmt.Errorf("connect to run %q: %w", sql, err)
		}
	}
	if _, err := conn.Exec(ctx, sql); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", sql, err), conn.Close(context.WithoutCancel(ctx)))
	}
	admins.Lock()
	defer admins.Unlock()
	admins.idle[databaseURL] = append(admins.idle[databaseURL], conn)
	return nil
}

// closeAdmins closes the connections that execute keeps.
func closeAdmins() {
	ctx, cancel := cleanupContext()
	defer cancel()
	admins.Lock()
	defer admins.Unlock()
	for _, idle := range admins.idle {
		for _, conn := range idle {
			_ = conn.Close(ctx) // the server may be stopped
		}
	}
	clear(admins.idle)
}

// sweepDatabases drops the databases and logins of killed test binaries on the private server, and outlived
// templates.
func sweepDatabases(ctx context.Context, admin string) error {
	return withConn(ctx, admin, func(conn *pgx.Conn) error {
		names, err := query.Column[string](ctx, conn, "list databases", "select datname::text from pg_database")
		if err != nil {
			return err
		}
		for _, name := range names {
			if abandoned(name, databasePrefix) || outlived(name) {
				if err := execAll(ctx, conn, "drop database if exists "+name+" with (force)"); err != nil {
					return err
				}
			}
		}
		return sweepLogins(ctx, conn)
	})
}
