package migrations

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// needsTable has a row for each migration after which older programs fail; see 0108_operators.sql.
const needsTable = "attune_schema_needs"

// firstVersion is the oldest migration. Schemas of commits before the first release have lower versions.
const firstVersion = 101

// UnfitError reports a schema on which this program cannot run. Its text says what to do.
type UnfitError struct {
	Schema  string
	Version int64 // of the schema
	Latest  int64 // that this program knows
	// Needs is the release that a newer schema needs at least, empty for an older schema.
	Needs string
	// Least is the migration that the release knows.
	Least int64
	// Foreign reports an installation that is not adopted.
	Foreign bool
	// Unreleased reports a schema of a commit before the first release, which no migration upgrades.
	Unreleased bool
}

// Error is one line.
func (e *UnfitError) Error() string {
	switch {
	case e.Unreleased:
		return fmt.Sprintf("schema %s was created by a program before the first release, and cannot be upgraded: run "+
			"`attune-lab stack reset` if its servers are private, otherwise save what you need and run `attune-executor "+
			"migrate down --yes` of that program; then run attune-executor migrate up", e.Schema)
	case e.Needs != "":
		return fmt.Sprintf("schema %s is at version %d and needs a program of at least %s, which knows version %d; this "+
			"one knows %d: upgrade this program", e.Schema, e.Version, e.Needs, e.Least, e.Latest)
	case e.Foreign:
		return fmt.Sprintf("schema %s belongs to an installation that is not adopted: run attune-executor migrate check, "+
			"then attune-executor migrate up", e.Schema)
	case e.Version >= e.Latest:
		return fmt.Sprintf("schema %s is at version %d, but lacks migrations of this program: run attune-executor migrate up",
			e.Schema, e.Version)
	}
	return fmt.Sprintf("schema %s is at version %d of %d: run attune-executor migrate up", e.Schema, e.Version, e.Latest)
}

// Querier is a connection or a pool.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Fits returns the version of the schema, or an UnfitError if this program cannot run on it. A program runs on
// a newer schema if it knows the migration that the schema needs at least, and on no older one. Fits takes no
// lock and changes nothing.
func Fits(ctx context.Context, db Querier, schema string) (int64, error) {
	unfit := &UnfitError{Schema: schema, Latest: latest(OriginOwn)}
	var versions, needs bool
	name := func(table string) string { return pgx.Identifier{schema, table}.Sanitize() }
	err := db.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL AND to_regclass($2) IS NOT NULL,
			to_regclass($3) IS NOT NULL, to_regclass($4) IS NOT NULL AND to_regclass($1) IS NULL`,
		name(VersionTable), name("attune_schema_origin"), name(needsTable), name("execution")).
		Scan(&versions, &needs, &unfit.Foreign)
	if err != nil {
		return 0, fmt.Errorf("find the version of schema %s: %w", schema, err)
	}
	if !versions {
		return 0, unfit
	}
	var origin Origin
	var applied []int64
	err = db.QueryRow(ctx, "SELECT (SELECT origin FROM "+name("attune_schema_origin")+"), "+
		"array_agg(DISTINCT version_id) FILTER (WHERE version_id > 0) FROM "+name(VersionTable)).Scan(&origin, &applied)
	if err != nil {
		return 0, fmt.Errorf("read the version of schema %s: %w", schema, err)
	}
	known := map[int64]bool{}
	for _, v := range applied {
		known[v], unfit.Version = true, max(unfit.Version, v)
		unfit.Unreleased = unfit.Unreleased || v < firstVersion
	}
	if unfit.Unreleased {
		return unfit.Version, unfit
	}
	unfit.Latest = latest(origin)
	for _, file := range filesFor(origin) {
		if !known[file.Version] {
			return unfit.Version, unfit
		}
	}
	if !needs {
		return unfit.Version, nil
	}
	err = db.QueryRow(ctx, "SELECT least, program FROM "+name(needsTable)+
		" UNION ALL SELECT 0, '' ORDER BY least DESC LIMIT 1").Scan(&unfit.Least, &unfit.Needs)
	if err != nil {
		return 0, fmt.Errorf("read which programs schema %s needs: %w", schema, err)
	}
	if unfit.Least > unfit.Latest {
		return unfit.Version, unfit
	}
	return unfit.Version, nil
}

// unfit returns why this program cannot run on the schema, or nil.
func (s *session) unfit(ctx context.Context) (unfit *UnfitError, err error) {
	err = s.conn.Raw(func(driver any) error {
		_, err := Fits(ctx, driver.(*stdlib.Conn).Conn(), s.opts.Schema) //nolint:errcheck // connConfig opens it
		return err
	})
	if errors.As(err, &unfit) {
		return unfit, nil
	}
	return nil, err
}

// refuse refuses a schema that this program cannot migrate.
func (s *session) refuse(ctx context.Context) error {
	unfit, err := s.unfit(ctx)
	if unfit != nil && (unfit.Needs != "" || unfit.Unreleased) {
		return unfit
	}
	return err
}

// Latest returns the newest migration that this program knows.
func Latest() int64 { return latest(OriginOwn) }

func latest(origin Origin) int64 {
	files := filesFor(origin)
	return files[len(files)-1].Version
}
