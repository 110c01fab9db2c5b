package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// errPooler reports a connection without the settings that it was opened with.
var errPooler = errors.New("a connection pooler drops the settings of connections")

// IsPooler reports whether a connection failed because a pooler such as PgBouncer is in front of the
// database. Connections need their own settings (search_path, time limits, plans), prepared
// statements, notifications and locks that outlive transactions.
func IsPooler(err error) bool {
	var refused *pgconn.PgError
	return errors.Is(err, errPooler) || errors.As(err, &refused) && refused.Code == "08P01" &&
		strings.Contains(refused.Message, "unsupported startup parameter")
}

// prepare runs on every new connection.
func prepare(ctx context.Context, conn *pgx.Conn) error {
	if err := requireSettings(ctx, conn); err != nil {
		return err
	}
	return registerTypes(ctx, conn)
}

// requireSettings fails if a pooler was told to ignore the settings of connections. It sends no
// prepared statement, which another client of the pooler may have prepared on the same connection.
func requireSettings(ctx context.Context, conn *pgx.Conn) error {
	results, err := conn.PgConn().Exec(ctx, "SHOW idle_in_transaction_session_timeout").ReadAll()
	if err != nil {
		return fmt.Errorf("read the settings of a new connection: %w", err)
	}
	if len(results) != 1 || len(results[0].Rows) != 1 || string(results[0].Rows[0][0]) != idleTimeout.String() {
		return errPooler
	}
	return nil
}
