// Package installation builds the database schema of an existing Attune installation, for tests and
// rehearsals. The statements describe the installation's own tables, keys, indexes, triggers and
// notifications as its catalogue shows them. A "foreign" or "adopted" schema in a test is built here.
//
// It needs no TimescaleDB: hypertables are plain tables, and continuous aggregates are views.
package installation

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/attune-go/attune/migrations"
)

//go:embed tables.sql
var tables string

//go:embed functions.sql
var functions string

//go:embed views.sql
var views string

//go:embed triggers.sql
var triggers string

// Build creates the newest schema under the given name and steps back to shape, in one transaction. It
// sets the connection's search_path to the schema.
func Build(ctx context.Context, conn *pgx.Conn, schema string, shape Shape) error {
	name := pgx.Identifier{schema}.Sanitize()
	steps := append([]string{
		"CREATE SCHEMA IF NOT EXISTS " + name, "SET search_path = " + name + ", public", tables,
		functions, views, triggers,
	}, shape.back()...)
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		for _, sql := range steps {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return fmt.Errorf("build the schema of %s: %.80s: %w", shape, sql, err)
			}
		}
		return nil
	})
}

// Open opens a pool whose search_path is the schema. It caches no statement, because the schema may
// change between two of them.
func Open(ctx context.Context, databaseURL, schema, application string) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, migrations.AddressError(err)
	}
	migrations.KeepPassword(cfg.ConnConfig, databaseURL)
	cfg.ConnConfig.RuntimeParams["search_path"] = schema + ", public"
	cfg.ConnConfig.RuntimeParams["application_name"] = application
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	return pool, nil
}

// Checksum returns a checksum of the statements: programs with the same one build the same schema.
func Checksum() string {
	sum := sha256.Sum256([]byte(tables + functions + views + triggers))
	return hex.EncodeToString(sum[:6])
}
