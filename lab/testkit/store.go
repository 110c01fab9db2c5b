package testkit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/doctor"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/query"
)

// Store opens a store on a fresh database of this test and closes it at the end. Options change the configuration,
// for example for the hot path. OpenStore opens a second store on the same database, like another replica.
func Store(t testing.TB, options ...func(*store.Config)) *store.Store {
	t.Helper()
	return OpenStore(t, Database(t), options...)
}

// OwnStore is Store on an OwnDatabase.
func OwnStore(t testing.TB, options ...func(*store.Config)) *store.Store {
	t.Helper()
	return OpenStore(t, OwnDatabase(t), options...)
}

// EngineConnections is the database.max_connections of engines in tests, the smallest useful number: each
// connection costs the server 20 ms before its first answer.
const EngineConnections = 12

// OpenStore opens a store on the database and closes it at the end of the test.
func OpenStore(t testing.TB, databaseURL string, options ...func(*store.Config)) *store.Store {
	t.Helper()
	cfg := store.Config{
		URL: databaseURL, Schema: Schema, MaxConnections: 8, ConnectTimeout: 10 * time.Second,
		ApplicationName: "attune test",
	}
	for _, option := range options {
		option(&cfg)
	}
	st, err := store.Open(Context(t), cfg, Logger(t))
	require.NoError(t, err)
	t.Cleanup(st.Close)
	return st
}

// Begin opens a transaction that the test holds open. The server does not end it for being idle, as it ends others
// after ten seconds. The test's end rolls it back.
func Begin(t testing.TB, st Pooler) pgx.Tx {
	t.Helper()
	tx, err := st.Pool().Begin(Context(t))
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := cleanupContext()
		defer cancel()
		_ = tx.Rollback(ctx) // it may have ended
	})
	_, err = tx.Exec(Context(t), "SET LOCAL idle_in_transaction_session_timeout = 0")
	require.NoError(t, err)
	return tx
}

// Invariants fails the test when an invariant query returns a row.
func Invariants(t testing.TB, st Pooler) {
	t.Helper()
	violations, err := doctor.Invariants(t.Context(), st.Pool())
	require.NoError(t, err)
	lines := make([]string, len(violations))
	for i, violation := range violations {
		lines[i] = violation.String()
	}
	require.Empty(t, violations, strings.Join(lines, "\n"))
}

// NowhereInDatabase fails if any column of any row of any table contains the text, also an encrypted one.
func NowhereInDatabase(t testing.TB, st Pooler, text string) {
	t.Helper()
	tables, err := query.Column[string](t.Context(), st.Pool(), "list tables", `
		SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY 1`)
	require.NoError(t, err)
	require.Greater(t, len(tables), 10, "there are tables to search")
	for _, table := range tables {
		// to_jsonb writes bytea columns in hex.
		sql := fmt.Sprintf(`SELECT count(*) FROM %s x WHERE position($1 IN to_jsonb(x)::text) > 0
			OR position(encode(convert_to($1, 'UTF8'), 'hex') IN to_jsonb(x)::text) > 0`, table)
		require.Zero(t, Count(t, st, sql, text), "%s is in %s", text, table)
	}
}

// GenericPlan explains a statement as JSON, with the plan that a long-lived connection keeps. Options, such as ANALYZE,
// are those of EXPLAIN.
func GenericPlan(t testing.TB, st Pooler, options, sql string, args ...any) (plan []byte) {
	t.Helper()
	ctx := Context(t)
	require.NoError(t, pgx.BeginFunc(ctx, st.Pool(), func(tx pgx.Tx) error {
		err := execAll(ctx, tx.Conn(), "DEALLOCATE ALL", "SET LOCAL plan_cache_mode = force_generic_plan",
			"PREPARE hot AS "+sql)
		if err != nil {
			return err
		}
		marks := make([]string, len(args))
		for i := range args {
			marks[i] = fmt.Sprintf("$%d", i+1)
		}
		explain := "EXPLAIN (" + options + "FORMAT JSON) EXECUTE hot"
		if len(args) > 0 {
			explain += "(" + strings.Join(marks, ", ") + ")"
		}
		return tx.QueryRow(ctx, explain, append([]any{pgx.QueryExecModeSimpleProtocol}, args...)...).Scan(&plan)
	}), sql)
	return plan
}

// Refuse makes the database refuse each update of a table with a SQLSTATE if the condition on NEW holds, like a
// server with a full disk (53100) or a standby (25006). tries counts the refusals; allow ends them.
func Refuse(t testing.TB, st *store.Store, table, when, sqlState string) (tries func() int, allow func()) {
	t.Helper()
	Exec(t, st, `CREATE SEQUENCE refused`)
	Exec(t, st, fmt.Sprintf(`CREATE FUNCTION refuse_update() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
		BEGIN PERFORM nextval('refused'); RAISE EXCEPTION 'refused by the test' USING ERRCODE = '%s'; END $$`, sqlState))
	Exec(t, st, fmt.Sprintf(`CREATE TRIGGER refuse_update BEFORE UPDATE ON %s FOR EACH ROW WHEN (%s)
		EXECUTE FUNCTION refuse_update()`, table, when))
	tries = func() int {
		t.Helper()
		return Count(t, st, `SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM refused`)
	}
	return tries, func() {
		t.Helper()
		Exec(t, st, fmt.Sprintf(`DROP TRIGGER refuse_update ON %s`, table))
	}
}
