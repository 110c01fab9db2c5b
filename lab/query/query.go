// Package query reads rows of a database, and the statements of a package's .sql files, for the programs of the
// laboratory.
package query

import (
	"context"
	"embed"
	"fmt"
	"reflect"
	"strings"
	"unicode"

	"github.com/jackc/pgx/v5"
)

// Conn is a connection, a transaction or a pool.
type Conn interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Column reads a column of values. what names the operation in an error.
func Column[T any](ctx context.Context, conn Conn, what, sql string, args ...any) ([]T, error) {
	return Rows(ctx, conn, what, sql, args, func(value *T) []any { return []any{value} })
}

// Rows reads rows. fields returns the destinations of a row.
func Rows[T any](ctx context.Context, conn Conn, what, sql string, args []any, fields func(*T) []any) ([]T, error) {
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (one T, err error) {
		return one, row.Scan(fields(&one)...)
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return list, nil
}

// Statements returns the files of a package in a structure of strings: IncidentEnds has the text of incident_ends.sql.
// A field without a file is a fault of the program.
func Statements[T any](files embed.FS) (statements T) {
	into := reflect.ValueOf(&statements).Elem()
	for i := range into.NumField() {
		var name strings.Builder
		for k, r := range into.Type().Field(i).Name {
			if unicode.IsUpper(r) && k > 0 {
				name.WriteByte('_')
			}
			name.WriteRune(unicode.ToLower(r))
		}
		text, err := files.ReadFile(name.String() + ".sql")
		if err != nil {
			panic(err)
		}
		into.Field(i).SetString(string(text))
	}
	return statements
}
