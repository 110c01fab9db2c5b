// Package sample copies the schema and a sample of the rows of an existing installation into another database,
// with reads only: one read-only transaction with one snapshot, timeouts for statements and locks, and no lock
// stronger than that of a SELECT. A login that may only SELECT is enough.
//
// Definitions (packs, actions, rules, policies, workers, …) are copied as a whole. Of executions, events and
// enforcements it copies the newest ones and all that have not ended, with the rows that they refer to. Sealed
// values stay sealed. Keys, tokens, password hashes and contents of artifacts are not copied.
package sample

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/attune-go/attune/lab/query"
	"github.com/attune-go/attune/migrations"
)

// Config names the two databases. To must be an empty database, and its user a superuser.
type Config struct {
	From, To string
	Schema   string
	// Newest is how many executions, events, enforcements and history rows are copied.
	Newest int
	// Live bounds the executions and enforcements that have not ended.
	Live int
	// Progress receives a line for each step.
	Progress func(line string)
}

// Bounds of what is copied and how long that may take.
const (
	NewestDefault = 500
	LiveDefault   = 5000

	largest          = 100_000 // rows of a definition table
	lockTimeout      = 2 * time.Second
	statementTimeout = 2 * time.Minute
)

// RefusedError says why a database cannot be copied, and what to do.
type RefusedError struct{ Text string }

// Error is one line.
func (e *RefusedError) Error() string { return e.Text }

// UnreachableError reports that the original does not answer or refuses the login.
type UnreachableError struct{ Err error }

// Error names the cause.
func (e *UnreachableError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// Report says what was copied.
type Report struct {
	Server string  `json:"server"` // the version of the original's server
	Tables []Table `json:"tables"`
	// NotCopied are the tables without rows, and LeftOut the objects that this server cannot have.
	NotCopied  []string `json:"not_copied"`
	LeftOut    []string `json:"left_out,omitempty"`
	Extensions []string `json:"missing_extensions,omitempty"`
	// Hypertables are plain tables in the copy.
	Hypertables []string      `json:"hypertables,omitempty"`
	LiveLeft    int64         `json:"live_not_copied,omitempty"` // executions beyond Config.Live
	Took        time.Duration `json:"-"`
}

// Table counts the copied rows of a table.
type Table struct {
	Name  string `json:"name"`
	Rows  int64  `json:"rows"`
	Whole bool   `json:"whole"`
}

// secret are the tables of secrets, of which no row is copied.
var secret = []string{"key", "integration_token", "webhook_event_log", "artifact_version"}

// blank are the columns that the copy has as null.
var blank = map[string][]string{"identity": {"password_hash"}}

// copier is one copy.
type copier struct {
	cfg    Config
	from   *pgx.Conn
	tx     pgx.Tx // of the snapshot
	to     *pgx.Conn
	report Report
}

// Check refuses a database that cannot be copied.
func Check(ctx context.Context, cfg Config) (err error) {
	c := &copier{cfg: cfg}
	if err := c.connect(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.from.Close(context.WithoutCancel(ctx))) }()
	if err := c.check(ctx); err != nil {
		return err
	}
	_, err = findDump(ctx, c.report.Server)
	return err
}

// connect opens the connection to the original.
func (c *copier) connect(ctx context.Context) (err error) {
	c.from, err = open(ctx, c.cfg.From, map[string]string{
		readOnlySetting:     "on",
		"lock_timeout":      milliseconds(lockTimeout),
		"statement_timeout": milliseconds(statementTimeout),
		"search_path":       quoted(c.cfg.Schema) + ", public",
	})
	if err != nil {
		return &UnreachableError{Err: err}
	}
	return nil
}

// Copy copies schema and rows. With an error the report has what was copied before.
func Copy(ctx context.Context, cfg Config) (report Report, err error) {
	begun := time.Now()
	c := &copier{cfg: cfg}
	defer func() {
		c.report.Took = time.Since(begun)
		report = c.report
	}()
	if err := c.connect(ctx); err != nil {
		return c.report, err
	}
	defer func() { err = errors.Join(err, c.from.Close(context.WithoutCancel(ctx))) }()
	if err := c.check(ctx); err != nil {
		return c.report, err
	}
	dump, err := c.dump(ctx)
	if err != nil {
		return c.report, err
	}
	if c.to, err = open(ctx, cfg.To, map[string]string{"client_min_messages": "warning"}); err != nil {
		return c.report, fmt.Errorf("connect to the private database: %w", err)
	}
	defer func() { err = errors.Join(err, c.to.Close(context.WithoutCancel(ctx))) }()
	if err := c.restore(ctx, dump); err != nil {
		return c.report, err
	}
	c.tx, err = c.from.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return c.report, fmt.Errorf("open a snapshot of the original: %w", err)
	}
	defer func() { _ = c.tx.Rollback(context.WithoutCancel(ctx)) }() // it only reads
	if err := c.rows(ctx); err != nil {
		return c.report, err
	}
	return c.report, c.finish(ctx)
}

func milliseconds(d time.Duration) string { return fmt.Sprint(d.Milliseconds()) }

const readOnlySetting = "default_transaction_read_only"

// open connects with settings that make texts of values the same in both databases.
func open(ctx context.Context, url string, settings map[string]string) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, migrations.AddressError(err)
	}
	migrations.KeepPassword(cfg, url)
	for _, param := range []string{
		"DateStyle=ISO", "IntervalStyle=postgres", "TimeZone=UTC", "extra_float_digits=3",
		"bytea_output=hex", "client_encoding=UTF8", "application_name=attune-lab rehearse",
	} {
		name, value, _ := strings.Cut(param, "=")
		cfg.RuntimeParams[name] = value
	}
	maps.Copy(cfg.RuntimeParams, settings)
	if readOnly, ok := settings[readOnlySetting]; ok { // target_session_attrs=read-write would refuse it at the start
		delete(cfg.RuntimeParams, readOnlySetting)
		cfg.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
			return conn.Exec(ctx, "SET "+readOnlySetting+" = "+readOnly).Close()
		}
	}
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec // a pooler between need not keep statements
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = 10 * time.Second
	}
	return pgx.ConnectConfig(ctx, cfg)
}

// check refuses a database without an installation, and one that is adopted.
func (c *copier) check(ctx context.Context) error {
	var execution, versions, readOnly bool
	var origin string
	relation := func(name string) string { return pgx.Identifier{c.cfg.Schema, name}.Sanitize() }
	err := c.from.QueryRow(ctx, `SELECT current_setting('server_version'), to_regclass($1) IS NOT NULL,
			to_regclass($2) IS NOT NULL, current_setting('transaction_read_only')::bool`,
		relation("execution"), relation("attune_schema_version")).
		Scan(&c.report.Server, &execution, &versions, &readOnly)
	refused, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case ok && refused.Code == "42501":
		return &RefusedError{Text: refused.Message + ": grant USAGE on the schema, and SELECT on its tables and sequences, " +
			"to the login of --from"}
	case err != nil:
		return fmt.Errorf("read the version of the server: %w", err)
	case !readOnly: // a pooler may drop the setting
		return &RefusedError{Text: "the connection to the original is not read-only: connect to the server itself, not " +
			"through a pooler"}
	case !execution:
		return &RefusedError{Text: fmt.Sprintf("schema %s has no table execution, so it is no Attune installation: correct "+
			"--from, or database.schema", c.cfg.Schema)}
	case !versions:
		return nil
	}
	err = c.from.QueryRow(ctx, "SELECT coalesce(max(origin), 'own') FROM "+relation("attune_schema_origin")).Scan(&origin)
	if err == nil && origin == "adopted" {
		return &RefusedError{Text: fmt.Sprintf("schema %s is adopted already: there is nothing to rehearse; "+
			"attune-executor migrate check --down shows what a hand-back would do", c.cfg.Schema)}
	}
	return &RefusedError{Text: fmt.Sprintf("schema %s was created by attune-executor: there is nothing to adopt",
		c.cfg.Schema)}
}

// finish sets the sequences behind the copied rows and checks the foreign keys.
func (c *copier) finish(ctx context.Context) error {
	const sequences = `DO $$
	DECLARE one record;
	BEGIN
		FOR one IN SELECT a.attrelid::regclass AS relation, a.attname AS name,
				pg_get_serial_sequence(a.attrelid::regclass::text, a.attname) AS sequence
			FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid AND c.relkind IN ('r', 'p')
			WHERE c.relnamespace = current_schema()::regnamespace AND a.attnum > 0 AND NOT a.attisdropped
			  AND pg_get_serial_sequence(a.attrelid::regclass::text, a.attname) IS NOT NULL
		LOOP
			EXECUTE format('SELECT setval(%L, coalesce(max(%I), 0) + 1, false) FROM %s', one.sequence, one.name, one.relation);
		END LOOP;
	END $$`
	if _, err := c.to.Exec(ctx, sequences); err != nil {
		return fmt.Errorf("set the sequences of the copy: %w", err)
	}
	_, err := c.to.Exec(ctx, "SET session_replication_role = origin; ANALYZE", pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return fmt.Errorf("analyze the copy: %w", err)
	}
	return c.checkKeys(ctx)
}

// checkKeys finds rows whose parent is not there. The copy was written without the checks of the server.
func (c *copier) checkKeys(ctx context.Context) error {
	keys, err := foreignKeys(ctx, c.to)
	if err != nil {
		return err
	}
	var broken []string
	for _, k := range keys {
		var orphans int64
		err := c.to.QueryRow(ctx, fmt.Sprintf("SELECT count(*) FROM %s c WHERE c.%s IS NOT NULL AND NOT EXISTS "+
			"(SELECT FROM %s p WHERE p.%s = c.%s)", quoted(k.table), quoted(k.column), quoted(k.parent),
			quoted(k.parentColumn), quoted(k.column))).Scan(&orphans)
		if err != nil {
			return fmt.Errorf("check the references of %s: %w", k.table, err)
		}
		if orphans > 0 {
			broken = append(broken, fmt.Sprintf("%d rows of %s refer to a missing %s", orphans, k.table, k.parent))
		}
	}
	if len(broken) > 0 {
		slices.Sort(broken)
		return fmt.Errorf("the copy is incomplete: %s", strings.Join(broken, "; "))
	}
	return nil
}

// foreignKey is a foreign key of one column within the schema.
type foreignKey struct{ table, column, parent, parentColumn string }

func foreignKeys(ctx context.Context, conn *pgx.Conn) ([]foreignKey, error) {
	return query.Rows(ctx, conn, "list foreign keys", `SELECT c.relname::text, a.attname::text, p.relname::text, b.attname::text
		FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_class p ON p.oid = k.confrelid
		JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]
		JOIN pg_attribute b ON b.attrelid = k.confrelid AND b.attnum = k.confkey[1]
		WHERE k.contype = 'f' AND cardinality(k.conkey) = 1 AND c.relnamespace = current_schema()::regnamespace
		  AND p.relnamespace = c.relnamespace AND k.conparentid = 0
		ORDER BY 1, 2`, nil,
		func(k *foreignKey) []any { return []any{&k.table, &k.column, &k.parent, &k.parentColumn} })
}

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }
