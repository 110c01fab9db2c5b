// Package installation builds the database schema that an existing Attune
// installation has, for tests and rehearsals. Nothing of it is ours: the
// statements describe the installation's own tables, keys, indexes, triggers and
// notifications as its catalogue shows them. A test that says "foreign" or
// "adopted" means a schema from here.
//
// What only TimescaleDB does (hypertables, continuous aggregates, compression)
// is not built: those tables are plain tables here, and those aggregates views.
package installation

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"

	"github.com/jackc/pgx/v5"
)

//go:embed tables.sql
var tables string

//go:embed functions.sql
var functions string

//go:embed views.sql
var views string

//go:embed triggers.sql
var triggers string

// Build makes the newest schema under the given name, steps back to shape, and
// leaves the connection's search_path on it. All of it is one transaction.
func Build(ctx context.Context, conn *pgx.Conn, schema string, shape Shape) error {
	name := pgx.Identifier{schema}.Sanitize()
	tx, err := conn.Begin(ctx)
	if err != nil {
		return fmt.Errorf("begin building an installation: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // ends nothing after a commit
	steps := []string{"CREATE SCHEMA IF NOT EXISTS " + name, "SET search_path = " + name + ", public", tables,
		functions, views, triggers}
	for _, sql := range append(steps, shape.back()...) {
		if _, err := tx.Exec(ctx, sql); err != nil {
			return fmt.Errorf("build the schema of %s: %.80s: %w", shape, sql, err)
		}
	}
	if err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("commit an installation: %w", err)
	}
	return nil
}

// Checksum names the state of the statements: two programs with the same one
// build the same schema.
func Checksum() string {
	sum := sha256.Sum256([]byte(tables + functions + views + triggers))
	return hex.EncodeToString(sum[:6])
}
