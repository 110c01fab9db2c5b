package store_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// Errors of the installation have a class of their own; errors of data and of constraints do not.
func TestErrorsThatConcernTheInstallationAreAClassOfTheirOwn(t *testing.T) {
	t.Parallel()
	of := func(code string) store.Class {
		return store.ClassOf(fmt.Errorf("batch: statement 2 of 5: %w", &pgconn.PgError{Severity: "ERROR", Code: code}))
	}
	for _, code := range []string{
		"42703", "42P01", "42P02", "42883", "42704", "42501", "42804", "42P10", "42601", "42702", "42846",
		"0A000", "3F000", "3D000", "28000", "28P01",
	} {
		require.Equal(t, store.ClassInstallation, of(code), code)
	}
	for code, want := range map[string]store.Class{
		"22P02": store.ClassFatal, "22021": store.ClassFatal, "22003": store.ClassFatal, "23502": store.ClassRefused,
		"23514": store.ClassRefused,
		"23503": store.ClassRefused, "23505": store.ClassConflict, "54000": store.ClassFatal,
		"P0001": store.ClassRefused,
		"53100": store.ClassUnable, "58030": store.ClassUnable, "25006": store.ClassUnable, "XX000": store.ClassFatal,
		"40001": store.ClassRetryable, "55P03": store.ClassLocked, "57P01": store.ClassUnreachable,
	} {
		require.Equal(t, want, of(code), code)
	}
	require.Equal(t, "installation", store.ClassInstallation.String())
	require.Equal(t, "fatal", store.ClassFatal.String())
}

// A refused login and a missing database are not an outage of the server.
func TestARefusedLoginConcernsTheInstallation(t *testing.T) {
	st := testkit.OpenStore(t, testkit.Database(t), func(c *store.Config) {
		at, err := pgconn.ParseConfig(c.URL)
		require.NoError(t, err)
		c.URL = fmt.Sprintf("host=%s port=%d dbname=no_such_database_%d user=%s sslmode=disable", at.Host, at.Port,
			at.Port, at.User)
	})
	err := st.Ping(testkit.Context(t))
	require.Error(t, err)
	require.Equal(t, store.ClassInstallation, store.ClassOf(err), "%v", err)
}

// Prepared statements do not outlive their columns: after the first error every connection prepares again, and a
// transaction with a stale plan is retried at once.
func TestNoPreparedStatementOutlivesItsColumns(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	admin := open(t)
	st := testkit.OpenStore(t, admin.Pool().Config().ConnString())
	exec := func(sql string) {
		t.Helper()
		_, err := admin.Pool().Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol)
		require.NoError(t, err)
	}
	exec(`CREATE TABLE changing (id bigint, note text); INSERT INTO changing VALUES (1, 'a')`)
	const all, note = `SELECT * FROM changing`, `SELECT note FROM changing`
	warm := func() { // on four connections
		t.Helper()
		for range 4 {
			conn, err := st.Pool().Acquire(ctx)
			require.NoError(t, err)
			defer conn.Release() // not before all are there
			for _, sql := range []string{all, note} {
				require.NoError(t, prepared(ctx, conn, sql))
			}
		}
	}
	read := func(sql string) error {
		return st.Tx(ctx, "read", func(ctx context.Context, tx *store.Tx) error {
			return prepared(ctx, tx, sql)
		})
	}

	warm()
	exec(`ALTER TABLE changing ADD COLUMN more int`)
	require.NoError(t, read(all), "a stale plan is made anew within the transaction's attempts")

	warm()
	exec(`ALTER TABLE changing ADD COLUMN again int`)
	err := prepared(ctx, st.Pool(), all)
	require.Equal(t, store.ClassRetryable, store.ClassOf(err), "%v", err)
	for range 8 {
		require.NoError(t, prepared(ctx, st.Pool(), all), "one error is enough for all connections")
	}

	warm()
	exec(`ALTER TABLE changing DROP COLUMN note`)
	require.Equal(t, store.ClassInstallation, store.ClassOf(read(note)))
	exec(`ALTER TABLE changing ADD COLUMN note int`)
	require.NoError(t, read(note), "of another type")
	require.NoError(t, read(all))
}

// prepared runs a statement that the connection keeps prepared.
func prepared(ctx context.Context, on interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}, sql string,
) error {
	rows, err := on.Query(ctx, sql)
	if err != nil {
		return err
	}
	rows.Close()
	return rows.Err()
}
