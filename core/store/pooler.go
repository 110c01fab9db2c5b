package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// errPooler reports a connection without the settings that it was opened with.
var errPooler = errors.New("a connection pooler drops the settings of connections")

// IsPooler reports whether a connection failed because a pooler such as PgBouncer is in front of the
// database. Connections need their own settings (search_path, time limits, plans), prepared
// statements, notifications and locks that outlive transactions.
//
// A pooler refuses the settings as a violation of the protocol, before any statement.
func IsPooler(err error) bool {
	return errors.Is(err, errPooler) || codeOf(err) == brokenProtocol && isRefusedConnection(err)
}

// prepare runs on every new connection.
func (c Config) prepare(ctx context.Context, conn *pgx.Conn) error {
	if err := c.requireSettings(ctx, conn); err != nil {
		return err
	}
	return registerTypes(ctx, conn)
}

// requireSettings fails if a pooler was told to ignore the settings of connections, and makes those settings that a
// connection cannot begin with: a read-only pool would not be accepted by target_session_attrs=read-write, and servers
// before version 17 do not know transaction_timeout. It sends no prepared statement, which another client of the pooler
// may have prepared on the same connection.
func (c Config) requireSettings(ctx context.Context, conn *pgx.Conn) error {
	sql := "SHOW idle_in_transaction_session_timeout"
	if c.ReadOnly {
		sql += "; SET default_transaction_read_only = on"
	}
	major, _, _ := strings.Cut(conn.PgConn().ParameterStatus("server_version"), ".")
	if len(major) == 2 && major >= "17" {
		sql += "; SET transaction_timeout = 0"
	}
	results, err := conn.PgConn().Exec(ctx, sql).ReadAll()
	if err != nil {
		return fmt.Errorf("set up a new connection: %w", err)
	}
	if len(results) == 0 || len(results[0].Rows) != 1 || string(results[0].Rows[0][0]) != idleTimeout.String() {
		return errPooler
	}
	return nil
}
