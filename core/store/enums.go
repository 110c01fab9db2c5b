package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// enumTypes are registered with every connection, and so are their arrays, so
// that both can be passed and read.
var enumTypes = []string{
	"execution_status_enum", "enforcement_status_enum", "inquiry_status_enum",
	"worker_status_enum",
}

const untyped = "attune: enum types not known yet"

// registerTypes makes a new connection know the types of states. If the schema does not exist yet, the connection is
// marked, and retryTypes tries again. It reads only two numbers a type: LoadTypes of pgx reads the
// whole catalogue, which costs the server more than most connections do.
func registerTypes(ctx context.Context, conn *pgx.Conn) error {
	types, err := enumsOf(ctx, conn)
	if err != nil {
		return fmt.Errorf("read the types of states: %w", err)
	}
	conn.TypeMap().RegisterTypes(types)
	if len(types) < 2*len(enumTypes) {
		conn.PgConn().CustomData()[untyped] = true
		return nil
	}
	delete(conn.PgConn().CustomData(), untyped)
	return nil
}

// enumsOf are the enums in the connection's search path, and their arrays; missing ones are left
// out.
func enumsOf(ctx context.Context, conn *pgx.Conn) ([]*pgtype.Type, error) {
	rows, err := conn.Query(ctx,
		`SELECT name, t.oid, t.typarray FROM unnest($1::text[]) name JOIN pg_type t ON t.oid = to_regtype(name)`,
		enumTypes)
	if err != nil {
		return nil, err
	}
	var types []*pgtype.Type
	var name string
	var oid, array uint32
	_, err = pgx.ForEachRow(rows, []any{&name, &oid, &array}, func() error {
		enum := &pgtype.Type{Name: name, OID: oid, Codec: &pgtype.EnumCodec{}}
		types = append(types, enum,
			&pgtype.Type{Name: "_" + name, OID: array, Codec: &pgtype.ArrayCodec{ElementType: enum}})
		return nil
	})
	return types, err
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
