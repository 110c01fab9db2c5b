package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// enumTypes are registered with every connection, so that they can be passed
// and read in arrays too.
var enumTypes = []string{
	"execution_status_enum", "_execution_status_enum",
	"enforcement_status_enum", "_enforcement_status_enum",
	"inquiry_status_enum", "_inquiry_status_enum",
	"worker_status_enum", "_worker_status_enum",
}

const untyped = "attune: enum types not known yet"

// registerTypes runs on every new connection. A schema that does not exist yet
// is no failure: the connection is marked and asked again before its next use.
func registerTypes(ctx context.Context, conn *pgx.Conn) error {
	types, err := conn.LoadTypes(ctx, enumTypes)
	if err != nil {
		if conn.IsClosed() || ctx.Err() != nil {
			return err
		}
		conn.PgConn().CustomData()[untyped] = true
		return nil
	}
	conn.TypeMap().RegisterTypes(types)
	delete(conn.PgConn().CustomData(), untyped)
	return nil
}

// retryTypes runs before a pooled connection is used.
func retryTypes(ctx context.Context, conn *pgx.Conn) (bool, error) {
	if conn.PgConn().CustomData()[untyped] == nil {
		return true, nil
	}
	if err := registerTypes(ctx, conn); err != nil {
		return false, err
	}
	return true, nil
}
